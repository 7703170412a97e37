import { readFileSync } from 'node:fs';
import { Ajv, type ErrorObject, type ValidateFunction } from 'ajv';
import addFormats from 'ajv-formats';
import { OPERATIONS, type OperationId } from './operations.ts';

interface Parameter {
  readonly name: string;
  readonly in: 'path' | 'query' | 'header';
  readonly required: boolean;
  readonly schema: Record<string, unknown>;
}

/** One operation of GitHub's description as committed in github-openapi.json. */
export interface Operation {
  readonly method: string;
  readonly path: string;
  readonly parameters: readonly Parameter[];
  readonly bodyRequired: boolean;
  readonly body: Record<string, unknown> | null;
  readonly responses: Readonly<Record<string, Record<string, unknown> | null>>;
}

interface Description {
  readonly operations: Readonly<Record<OperationId, Operation>>;
  readonly webhooks: Readonly<Record<string, Record<string, unknown>>>;
  readonly schemas: Readonly<Record<string, unknown>>;
}

const text = readFileSync(new URL('./github-openapi.json', import.meta.url), 'utf8');
const description = JSON.parse(text.replaceAll('"#/schemas/', '"github#/schemas/')) as Description;

// Compiling the pull request payloads took 1.1 s of each test process; without inlining and optimising it is a third.
const settings = {
  strict: false,
  allErrors: true,
  logger: false,
  verbose: true,
  inlineRefs: false,
  code: { optimize: false },
} as const;
const ajv = new Ajv(settings);
addFormats.default(ajv);
ajv.addSchema({ $id: 'github', schemas: description.schemas });
const coercing = new Ajv({ ...settings, coerceTypes: 'array', useDefaults: true });
addFormats.default(coercing);

const compiled = new Map<string, ValidateFunction>();

function validator(key: string, make: () => ValidateFunction): ValidateFunction {
  const known = compiled.get(key);
  if (known !== undefined) return known;
  const fresh = make();
  compiled.set(key, fresh);
  return fresh;
}

/** The description of one operation. */
export function operationOf(id: OperationId): Operation {
  return description.operations[id];
}

/** Every operation, the ones with the most literal path segments first, so that the first match is the right one. */
export const operationsByPath: readonly (readonly [OperationId, Operation])[] = OPERATIONS.map(
  (id) => [id, description.operations[id]] as const,
).sort((a, b) => literalSegments(b[1].path) - literalSegments(a[1].path));

function literalSegments(path: string): number {
  return path.split('/').filter((segment) => segment !== '' && !segment.startsWith('{')).length;
}

function messages(errors: readonly ErrorObject[] | null | undefined): string[] {
  return (errors ?? []).map((error) => {
    if (error.keyword === 'required') return `"${String(error.params['missingProperty'])}" wasn't supplied.`;
    return `For '${error.instancePath.slice(1) || 'body'}', ${error.message ?? 'is not valid'}.`;
  });
}

/** The parameters of one place with types and defaults applied, or GitHub's complaints about them. */
export function checkParameters(
  id: OperationId,
  place: 'path' | 'query',
  given: Readonly<Record<string, string>>,
): { values: Record<string, unknown>; faults: string[]; unknown: string[] } {
  const declared = operationOf(id).parameters.filter((parameter) => parameter.in === place);
  const validate = validator(`${id} ${place}`, () =>
    coercing.compile({
      type: 'object',
      properties: Object.fromEntries(declared.map((parameter) => [parameter.name, parameter.schema])),
      required: declared.filter((parameter) => parameter.required).map((parameter) => parameter.name),
    }),
  );
  const values: Record<string, unknown> = { ...given };
  const faults = validate(values) ? [] : messages(validate.errors);
  const unknown = Object.keys(given).filter((name) => !declared.some((parameter) => parameter.name === name));
  return { values, faults, unknown };
}

/** GitHub's complaints about a request body; `unknown` lists top-level fields GitHub would silently ignore. */
export function checkBody(id: OperationId, body: unknown): { faults: string[]; unknown: string[] } {
  const { body: schema, bodyRequired } = operationOf(id);
  if (body === undefined)
    return { faults: bodyRequired ? ['The request body is missing.'] : [], unknown: [] };
  if (schema === null) return { faults: [], unknown: [] };
  const validate = validator(`${id} body`, () => ajv.compile(schema));
  const faults = validate(body) ? [] : messages(validate.errors);
  const known = schema['properties'];
  const unknown =
    typeof known === 'object' && known !== null && typeof body === 'object' && body !== null
      ? Object.keys(body).filter((name) => !(name in known))
      : [];
  return { faults, unknown };
}

/** Why an answer is not one that GitHub's description allows; empty when it is. Errors (≥ 400) are always allowed. */
export function checkAnswer(id: OperationId, status: number, body: unknown): string[] {
  const { responses } = operationOf(id);
  if (!(String(status) in responses)) return status >= 400 ? [] : [`${id}: GitHub never answers ${status}`];
  const schema = responses[String(status)];
  if (schema === null || schema === undefined) return [];
  const validate = validator(`${id} ${status}`, () => ajv.compile(schema));
  return validate(body) ? [] : describe(`${id} ${status}`, validate.errors);
}

/** Why a webhook payload is not shaped as GitHub describes it; empty when it is. */
export function checkWebhook(event: string, action: string | null, payload: unknown): string[] {
  const name = [event, action]
    .filter((part) => part !== null)
    .join('-')
    .replaceAll('_', '-');
  const schema = description.webhooks[name];
  if (schema === undefined) return [`webhook ${name} is not in the description`];
  const validate = validator(`webhook ${name}`, () => ajv.compile(schema));
  return validate(payload) ? [] : describe(`webhook ${name}`, validate.errors);
}

// Where facts/github.md knows better than the description: head.repo is null once a fork is deleted (§15), and GitHub
// itself concludes old runs as `stale` (§1).
function isKnownDeparture(error: ErrorObject): boolean {
  if (error.data === null) return error.instancePath.endsWith('/head/repo');
  return error.data === 'stale' && error.instancePath.endsWith('/conclusion');
}

function describe(what: string, errors: readonly ErrorObject[] | null | undefined): string[] {
  return (errors ?? [])
    .filter((error) => !isKnownDeparture(error))
    .map(
      (error) =>
        `${what}: ${error.instancePath || '/'} ${error.message ?? ''} ${JSON.stringify(error.params)}`,
    );
}
