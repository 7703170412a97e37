import { parse } from 'yaml';

/** An input of `workflow_dispatch`. */
export interface WorkflowInput {
  readonly required: boolean;
  readonly default: string | null;
  readonly type: string;
  readonly options: readonly string[];
}

/** One step: `uses` or `run`. */
export interface Step {
  readonly id: string | null;
  readonly name: string;
  readonly uses: string | null;
  readonly run: string | null;
  readonly with: Readonly<Record<string, string>>;
  readonly env: Readonly<Record<string, string>>;
  readonly if: string | undefined;
  readonly workingDirectory: string | null;
  readonly continueOnError: boolean;
  /** `shell: bash` was asked for, which adds pipefail to the default. */
  readonly bash: boolean;
}

/** One job. */
export interface JobDefinition {
  readonly id: string;
  readonly name: string;
  readonly runsOn: readonly string[];
  readonly needs: readonly string[];
  readonly if: string | undefined;
  readonly permissions: Readonly<Record<string, string>> | null;
  readonly env: Readonly<Record<string, string>>;
  readonly steps: readonly Step[];
  readonly environment: string | null;
  readonly timeoutMinutes: number;
}

/** A workflow file that GitHub would start. */
export interface Workflow {
  readonly name: string;
  readonly runName: string | null;
  readonly permissions: Readonly<Record<string, string>> | null;
  readonly env: Readonly<Record<string, string>>;
  readonly concurrency: { readonly group: string; readonly cancelInProgress: boolean } | null;
  readonly jobs: readonly JobDefinition[];
}

/** A workflow file that GitHub cannot start: the run ends as `startup_failure` with no job (facts/github.md §7). */
export class BadWorkflow extends Error {}

type Map = Record<string, unknown>;

function asMap(value: unknown, what: string): Map {
  if (value === undefined || value === null) return {};
  if (typeof value !== 'object' || Array.isArray(value)) throw new BadWorkflow(`${what} is not a mapping`);
  return value as Map;
}

function asTexts(value: unknown, what: string): Record<string, string> {
  return Object.fromEntries(Object.entries(asMap(value, what)).map(([key, one]) => [key, String(one ?? '')]));
}

function asList(value: unknown): string[] {
  return value === undefined || value === null ? [] : [value].flat().map(String);
}

/** A workflow file as a mapping; throws BadWorkflow when it is no YAML mapping. */
function read(text: string): Map {
  try {
    return asMap(parse(text), 'the workflow');
  } catch (error) {
    throw new BadWorkflow(error instanceof Error ? error.message : 'not YAML');
  }
}

/** The inputs of a file's `workflow_dispatch` trigger, or null when it has none. */
export function dispatchInputs(text: string): Readonly<Record<string, WorkflowInput>> | null {
  const on = read(text)['on'];
  if (on === 'workflow_dispatch' || (Array.isArray(on) && on.includes('workflow_dispatch'))) return {};
  if (typeof on !== 'object' || on === null || Array.isArray(on) || !('workflow_dispatch' in on)) return null;
  const inputs = asMap(asMap(on.workflow_dispatch, 'workflow_dispatch')['inputs'], 'inputs');
  return Object.fromEntries(
    Object.entries(inputs).map(([name, raw]) => {
      const input = asMap(raw, name);
      const fallback = input['default'];
      return [
        name,
        {
          required: input['required'] === true,
          default: fallback === undefined || fallback === null ? null : String(fallback),
          type: String(input['type'] ?? 'string'),
          options: asList(input['options']),
        },
      ];
    }),
  );
}

/** The name a file gives itself, else its path. */
export function workflowName(text: string, path: string): string {
  try {
    const { name } = read(text);
    return typeof name === 'string' ? name : path;
  } catch {
    return path;
  }
}

// What GitHub knows and this runner does not (defaults, strategy, services, outputs, job concurrency) is refused, not ignored.
const TOP = new Set(['name', 'run-name', 'on', 'permissions', 'env', 'concurrency', 'jobs']);
const JOB = new Set('name permissions needs if runs-on environment env steps timeout-minutes'.split(' '));
const STEP = new Set('id if name uses run working-directory shell with env continue-on-error'.split(' '));

function refuseUnknown(map: Map, known: ReadonlySet<string>, where: string): void {
  for (const key of Object.keys(map))
    if (!known.has(key)) throw new BadWorkflow(`Unexpected value '${key}' in ${where}`);
}

/** A workflow file in full; throws BadWorkflow. Matrices, services, containers and reusable workflows are not run here. */
export function parseWorkflow(text: string, path: string): Workflow {
  const top = read(text);
  refuseUnknown(top, TOP, 'the workflow');
  const jobs = Object.entries(asMap(top['jobs'], 'jobs')).map(([id, raw]) => parseJob(id, asMap(raw, id)));
  if (jobs.length === 0) throw new BadWorkflow('No jobs were run: `jobs` is empty');
  for (const job of jobs)
    for (const need of job.needs)
      if (!jobs.some((one) => one.id === need))
        throw new BadWorkflow(`Job '${job.id}' depends on unknown job '${need}'`);
  const group = top['concurrency'];
  const concurrency = typeof group === 'string' ? { group } : asMap(group, 'concurrency');
  return {
    name: typeof top['name'] === 'string' ? top['name'] : path,
    runName: typeof top['run-name'] === 'string' ? top['run-name'] : null,
    permissions: parsePermissions(top['permissions']),
    env: asTexts(top['env'], 'env'),
    concurrency:
      group === undefined
        ? null
        : {
            group: String(concurrency.group),
            cancelInProgress: asMap(concurrency, 'concurrency')['cancel-in-progress'] === true,
          },
    jobs,
  };
}

function parseJob(id: string, job: Map): JobDefinition {
  refuseUnknown(job, JOB, `job '${id}'`);
  const steps = (Array.isArray(job['steps']) ? job['steps'] : []).map((raw) => parseStep(asMap(raw, 'step')));
  if (job['runs-on'] === undefined) throw new BadWorkflow(`Job '${id}' has no runs-on`);
  if (steps.length === 0) throw new BadWorkflow(`Job '${id}' has no steps`);
  const environment = job['environment'];
  return {
    id,
    name: String(job['name'] ?? id),
    runsOn: asList(job['runs-on']),
    needs: asList(job['needs']),
    if: job['if'] === undefined ? undefined : String(job['if']),
    permissions: parsePermissions(job['permissions']),
    env: asTexts(job['env'], 'env'),
    steps,
    environment:
      environment === undefined
        ? null
        : String(typeof environment === 'string' ? environment : asMap(environment, 'environment')['name']),
    timeoutMinutes: Number(job['timeout-minutes'] ?? 360),
  };
}

function parseStep(step: Map): Step {
  refuseUnknown(step, STEP, 'a step');
  const text = (key: string): string | null => (step[key] === undefined ? null : String(step[key]));
  const [uses, run] = [text('uses'), text('run')];
  if (step['shell'] !== undefined && step['shell'] !== 'bash')
    throw new BadWorkflow('Only `shell: bash` is run here');
  if ((uses === null) === (run === null)) throw new BadWorkflow('A step needs either `uses` or `run`');
  return {
    id: text('id'),
    name: text('name') ?? (uses === null ? `Run ${run?.split('\n')[0]}` : `Run ${uses}`),
    uses,
    run,
    with: asTexts(step['with'], 'with'),
    env: asTexts(step['env'], 'env'),
    if: text('if') ?? undefined,
    workingDirectory: text('working-directory'),
    continueOnError: step['continue-on-error'] === true,
    bash: step['shell'] === 'bash',
  };
}

const SCOPES =
  'actions attestations checks contents deployments discussions id-token issues packages pages pull-requests security-events statuses'.split(
    ' ',
  );

// Absent: null, the repository's default. Given: what is not named is none.
function parsePermissions(value: unknown): Readonly<Record<string, string>> | null {
  if (value === undefined) return null;
  if (value === 'read-all' || value === 'write-all') {
    const level = value === 'read-all' ? 'read' : 'write';
    return Object.fromEntries(SCOPES.map((scope) => [scope, level]));
  }
  const given = asTexts(value, 'permissions');
  for (const [scope, level] of Object.entries(given))
    if (!SCOPES.includes(scope) || !['read', 'write', 'none'].includes(level))
      throw new BadWorkflow(`Unexpected permission '${scope}: ${level}'`);
  return given;
}
