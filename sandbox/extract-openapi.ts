/**
 * Makes sandbox/github-openapi.json: GitHub's own description (MIT, npm package @octokit/openapi), cut down to the
 * operations and webhook payloads the sandbox knows. The package is 385 MB unpacked (facts/stack.md §10), so it is
 * fetched into a temporary folder and is never a dependency:
 *
 *   cd "$(mktemp -d)" && npm pack @octokit/openapi@23.0.2 && tar xzf octokit-openapi-*.tgz
 *   npx tsx sandbox/extract-openapi.ts package/generated/api.github.com.json package/LICENSE
 *
 * OpenAPI 3.0's `nullable` becomes JSON Schema's type null; prose, examples and discriminators are dropped.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { OPERATIONS } from './operations.ts';

type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
type Node = { [key: string]: Json };

const WEBHOOKS = [
  /^check-run-/,
  /^check-suite-/,
  /^pull-request-(assigned|closed|converted-to-draft|dequeued|edited|enqueued|labeled|opened|ready-for-review|reopened|synchronize|unlabeled)$/,
  /^pull-request-review-(submitted|edited|dismissed)$/,
  /^pull-request-review-comment-created$/,
  /^issue-comment-(created|deleted|edited)$/,
  /^installation-(created|deleted|suspend|unsuspend|new-permissions-accepted)$/,
  /^installation-repositories-(added|removed)$/,
  /^repository-(renamed|transferred|deleted)$/,
  /^merge-group-/,
  /^workflow-run-/,
  /^workflow-job-/,
  /^workflow-dispatch$/,
  /^push$/,
  /^ping$/,
];

const DROPPED = new Set([
  'description',
  'example',
  'examples',
  'externalDocs',
  'deprecated',
  'title',
  'discriminator',
  'xml',
  'readOnly',
  'writeOnly',
]);

const [descriptionFile, licenceFile] = process.argv.slice(2);
if (descriptionFile === undefined || licenceFile === undefined)
  throw new Error('usage: extract-openapi.ts api.github.com.json LICENSE');
const document = JSON.parse(readFileSync(descriptionFile, 'utf8')) as Node;
const wanted: string[] = [];

function isNode(value: Json | undefined): value is Node {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function at(node: Json | undefined, ...keys: string[]): Json | undefined {
  let here: Json | undefined = node;
  for (const key of keys) here = isNode(here) ? here[key] : undefined;
  return here;
}

function resolve(node: Json | undefined): Node {
  const ref = at(node, '$ref');
  const target = typeof ref === 'string' ? at(document, ...ref.split('/').slice(1)) : node;
  return isNode(target) ? target : {};
}

function convert(node: Json, isPropertyMap = false): Json {
  if (Array.isArray(node)) return node.map((item) => convert(item));
  if (!isNode(node)) return node;
  if (!isPropertyMap && typeof node['$ref'] === 'string') {
    const name = node['$ref'].split('/').pop() ?? '';
    wanted.push(name);
    const ref: Node = { $ref: `#/schemas/${name}` };
    return node['nullable'] === true ? { anyOf: [ref, { type: 'null' }] } : ref;
  }
  const out: Node = {};
  for (const [key, value] of Object.entries(node)) {
    if (!isPropertyMap && (DROPPED.has(key) || key === 'nullable' || key.startsWith('x-'))) continue;
    const verbatim = !isPropertyMap && (key === 'enum' || key === 'default' || key === 'required');
    out[key] = verbatim ? value : convert(value, !isPropertyMap && key === 'properties');
  }
  if (isPropertyMap || node['nullable'] !== true) return out;
  if (Array.isArray(out['enum']) && !out['enum'].includes(null)) out['enum'] = [...out['enum'], null];
  if (typeof out['type'] !== 'string') return { anyOf: [out, { type: 'null' }] };
  out['type'] = [out['type'], 'null'];
  return out;
}

function operation(method: string, path: string, item: Node, op: Node): Node {
  const list = [...((item['parameters'] as Json[]) ?? []), ...((op['parameters'] as Json[]) ?? [])];
  const parameters = list.map(resolve).map((parameter) => ({
    name: parameter['name'] ?? '',
    in: parameter['in'] ?? '',
    required: parameter['required'] === true,
    schema: convert(parameter['schema'] ?? {}),
  }));
  const body = resolve(op['requestBody']);
  const json = at(body, 'content', 'application/json', 'schema');
  const responses: Node = {};
  for (const [code, raw] of Object.entries(resolve(op['responses']))) {
    const content = at(resolve(raw), 'content');
    const kinds = isNode(content) ? Object.keys(content) : [];
    const kind = kinds.includes('application/json')
      ? 'application/json'
      : kinds.find((k) => k.startsWith('application/'));
    const schema = kind === undefined ? undefined : at(content, kind, 'schema');
    responses[code] = schema === undefined ? null : convert(schema);
  }
  return {
    method: method.toUpperCase(),
    path,
    parameters,
    bodyRequired: body['required'] === true,
    body: json === undefined ? null : convert(json),
    responses,
  };
}

const operations: Node = {};
for (const [path, item] of Object.entries(resolve(document['paths']))) {
  for (const [method, op] of Object.entries(resolve(item))) {
    const id = at(op, 'operationId');
    if (typeof id === 'string' && (OPERATIONS as readonly string[]).includes(id) && isNode(op))
      operations[id] = operation(method, path, resolve(item), op);
  }
}
for (const id of OPERATIONS) if (operations[id] === undefined) throw new Error(`GitHub describes no ${id}`);

// GitHub's description demands that an account listed here is a user AND an enterprise; elsewhere it is either.
operations['apps/list-installations'] = {
  ...resolve(operations['apps/list-installations']),
  responses: { 200: { type: 'array', items: { $ref: '#/schemas/installation' } } },
};

const webhooks: Node = {};
for (const [name, hook] of Object.entries(resolve(document['x-webhooks']))) {
  if (!WEBHOOKS.some((pattern) => pattern.test(name))) continue;
  const schema = at(hook, 'post', 'requestBody', 'content', 'application/json', 'schema');
  if (schema !== undefined) webhooks[name] = convert(schema);
}

const schemas: Node = {};
for (let name = wanted.pop(); name !== undefined; name = wanted.pop()) {
  if (schemas[name] !== undefined) continue;
  schemas[name] = {};
  schemas[name] = convert(at(document, 'components', 'schemas', name) ?? {});
}

// GitHub writes the same objects out again in every webhook. Said once, they compile in a quarter of the time.
const SHARED_FROM = 200;
const seen = new Map<string, number>();
const shared = new Map<string, string>();

function eachSchema(node: Json, isPropertyMap: boolean, visit: (schema: Node) => void): void {
  if (Array.isArray(node)) for (const item of node) eachSchema(item, false, visit);
  if (!isNode(node)) return;
  if (!isPropertyMap) visit(node);
  for (const [key, value] of Object.entries(node))
    eachSchema(value, !isPropertyMap && key === 'properties', visit);
}

function share(node: Json, isPropertyMap: boolean, isRoot: boolean): Json {
  if (Array.isArray(node)) return node.map((item) => share(item, false, false));
  if (!isNode(node)) return node;
  const text = JSON.stringify(node);
  const repeated = !isPropertyMap && !isRoot && text.length >= SHARED_FROM && (seen.get(text) ?? 0) > 1;
  const known = shared.get(text);
  if (repeated && known !== undefined) return { $ref: `#/schemas/${known}` };
  const name = `shared-${shared.size + 1}`;
  if (repeated) shared.set(text, name);
  const inner = Object.fromEntries(
    Object.entries(node).map(([key, value]) => [
      key,
      share(value, !isPropertyMap && key === 'properties', false),
    ]),
  );
  if (!repeated) return inner;
  schemas[name] = inner;
  return { $ref: `#/schemas/${name}` };
}

const roots = [
  ...Object.values(operations).flatMap(rootsOf),
  ...Object.values(webhooks),
  ...Object.values(schemas),
];
for (const root of roots)
  eachSchema(root, false, (schema) => {
    const text = JSON.stringify(schema);
    if (text.length >= SHARED_FROM) seen.set(text, (seen.get(text) ?? 0) + 1);
  });

function rootsOf(entry: Json): Json[] {
  const { body = null, responses = null } = resolve(entry);
  return [body, ...(isNode(responses) ? Object.values(responses) : [])];
}

for (const [name, schema] of Object.entries(schemas)) schemas[name] = share(schema, false, true);
for (const [name, schema] of Object.entries(webhooks)) webhooks[name] = share(schema, false, true);
for (const [id, entry] of Object.entries(operations)) {
  const { responses = {}, ...rest } = resolve(entry);
  const answers = Object.entries(resolve(responses)).map(([code, schema]) => [
    code,
    share(schema, false, true),
  ]);
  operations[id] = { ...rest, responses: Object.fromEntries(answers) };
}

const version = String(at(document, 'info', 'version'));
writeFileSync(
  new URL('./github-openapi.json', import.meta.url),
  `${JSON.stringify({
    source: `@octokit/openapi@${version} api.github.com, cut by sandbox/extract-openapi.ts`,
    license: readFileSync(licenceFile, 'utf8').trim(),
    operations,
    webhooks,
    schemas,
  })}\n`,
);
