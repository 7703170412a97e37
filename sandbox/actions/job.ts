import { mkdir, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { issueToken } from '../http/authenticate.ts';
import type { Level, Permissions } from '../model.ts';
import type { OidcIssuer } from '../oidc.ts';
import type { World } from '../world.ts';
import { inputEnvironment, isOurs, readActionFile, TREE } from './action-file.ts';
import { baseEnvironment, githubContext, runContexts } from './contexts.ts';
import { BadExpression, condition, interpolate, type Scope, type Value } from './expressions.ts';
import { type CommandFiles, commandFiles } from './files.ts';
import { StepLog } from './log.ts';
import { startProcess } from './process.ts';
import { ACTIONS_APP_ID } from './records.ts';
import { isFromFork, type Job, type StepResult, type WorkflowRun } from './run.ts';
import type { JobDefinition, Step, Workflow } from './workflow.ts';

const DEFAULT_JOB_PERMISSIONS: Readonly<Record<string, string>> = { contents: 'read', packages: 'read' };

/** What GitHub gives a run of the repository's secrets: none to a fork's pull request (facts/github.md §15). */
const secretsOf = (run: WorkflowRun) => (isFromFork(run) ? {} : run.repository.secrets);

const isCheckout = (uses: string) => /^actions\/checkout@\S+$/.test(uses);
// What actions/checkout does by default: the commit of the run, detached, one deep, by the job's token, which it keeps nowhere here.
const CHECKOUT = `git init --quiet .
basic=$(printf 'x-access-token:%s' "$TOKEN" | base64 -w0)
git -c http.extraHeader="Authorization: Basic $basic" fetch --quiet --no-tags --depth=1 "$REMOTE" "$GITHUB_SHA"
git -c advice.detachedHead=false checkout --quiet --force FETCH_HEAD`;

interface Execution {
  readonly world: World;
  readonly oidc: OidcIssuer;
  readonly run: WorkflowRun;
  readonly job: Job;
  readonly workflow: Workflow;
  readonly definition: JobDefinition;
  readonly directory: string;
  readonly workspace: string;
  readonly base: Readonly<Record<string, string>>;
  readonly masks: Set<string>;
  readonly env: Record<string, string>;
  paths: string[];
  readonly token: string;
  readonly payload: Value;
  status: Scope['status'];
}

/** Runs the steps of one job for real, each in a process that is given only what GitHub's runner would give it. */
export async function executeJob(
  world: World,
  oidc: OidcIssuer,
  run: WorkflowRun,
  job: Job,
  workflow: Workflow,
  definition: JobDefinition,
  payload: Value,
): Promise<'success' | 'failure' | 'cancelled'> {
  const directory = join(world.root, 'jobs', `${run.id}-${run.attempt}-${job.key}`);
  const workspace = join(directory, 'work', run.repository.name, run.repository.name);
  await mkdir(workspace, { recursive: true });
  for (const name of ['home', 'temp', 'tools', 'commands'])
    await mkdir(join(directory, name), { recursive: true });
  await writeFile(join(directory, 'event.json'), JSON.stringify(payload));
  const permissions = definition.permissions ?? workflow.permissions ?? DEFAULT_JOB_PERMISSIONS;
  const actions = world.apps.find((app) => app.id === ACTIONS_APP_ID);
  if (actions === undefined) throw new Error('no github-actions app');
  const token = issueToken(world, {
    kind: 'job',
    appId: actions.id,
    installation: null,
    user: actions.bot,
    permissions: tokenPermissions(permissions, isFromFork(run)),
    repositoryIds: new Set([run.repository.id]),
    lifetime: definition.timeoutMinutes * 60_000,
  });
  const mints = permissions['id-token'] === 'write' && !isFromFork(run);
  const identity = mints ? oidc.admit(run, job) : null;
  const execution: Execution = {
    world,
    oidc,
    run,
    job,
    workflow,
    definition,
    directory,
    workspace,
    base: {
      ...baseEnvironment(world, run, job, directory, workspace),
      ...(identity === null
        ? {}
        : { ACTIONS_ID_TOKEN_REQUEST_URL: identity.url, ACTIONS_ID_TOKEN_REQUEST_TOKEN: identity.token }),
    },
    masks: new Set([token.token, ...Object.values(secretsOf(run)), ...(identity ? [identity.token] : [])]),
    env: {},
    paths: [],
    token: token.token,
    payload,
    status: 'success',
  };
  try {
    for (const [name, value] of Object.entries({ ...workflow.env, ...definition.env }))
      execution.env[name] = interpolate(value, scopeOf(execution, execution.env));
    for (const [index, step] of definition.steps.entries()) {
      const result = job.steps[index];
      if (result !== undefined) await executeStep(execution, step, result);
      if (run.lost) return 'failure';
    }
  } finally {
    world.tokens.delete(token.token);
    oidc.dismiss(job);
    await rm(directory, { recursive: true, force: true, maxRetries: 3 });
  }
  return execution.status;
}

// GITHUB_TOKEN's names are those of the app permissions with dashes; id-token is none of them.
// A fork's pull request has a read-only token, whatever the file asks for (facts/github.md §15).
function tokenPermissions(permissions: Readonly<Record<string, string>>, readOnly: boolean): Permissions {
  const entries = Object.entries(permissions).filter(
    ([name, level]) => name !== 'id-token' && level !== 'none',
  );
  return Object.fromEntries(
    entries.map(([name, level]) => [name.replaceAll('-', '_'), readOnly ? 'read' : (level as Level)]),
  );
}

async function executeStep(execution: Execution, step: Step, result: StepResult): Promise<void> {
  const { job, run, world } = execution;
  if (run.cancelled !== 'no') execution.status = 'cancelled';
  const scope = scopeOf(execution, execution.env);
  // A forced cancel passes over always() (facts/github.md §8).
  if (run.cancelled === 'forced' || !condition(step.if, scope)) {
    result.status = 'completed';
    result.conclusion = 'skipped';
    return;
  }
  result.status = 'in_progress';
  result.startedAt = world.stamp();
  let code: number;
  try {
    code = await runStep(execution, step, result.number);
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    job.log += `##[error]${error.message}\n`;
    if (!(error instanceof BadExpression) && !(error instanceof Unresolvable))
      world.violations.push(String(error.stack));
    code = 1;
  }
  const stopped = run.cancelled !== 'no' && code !== 0;
  result.status = 'completed';
  result.completedAt = world.stamp();
  result.conclusion = stopped ? 'cancelled' : code === 0 ? 'success' : 'failure';
  if (stopped) execution.status = 'cancelled';
  else if (code !== 0 && !step.continueOnError && execution.status === 'success')
    execution.status = 'failure';
}

/** A `uses:` that this GitHub does not have. */
class Unresolvable extends Error {}

async function runStep(execution: Execution, step: Step, number: number): Promise<number> {
  const { job, directory, workspace, masks } = execution;
  const files = await commandFiles(join(directory, 'commands'), number);
  const stepEnv: Record<string, string> = {};
  for (const [name, value] of Object.entries(step.env))
    stepEnv[name] = interpolate(value, scopeOf(execution, execution.env));
  const scope = scopeOf(execution, { ...execution.env, ...stepEnv });
  const env = environmentOf(execution, stepEnv, files);
  const log = new StepLog(job, masks);
  const start = async (): Promise<ReturnType<typeof startProcess>> => {
    const cwd = join(workspace, interpolate(step.workingDirectory ?? '.', scope));
    const onLine = (line: string) => log.line(line);
    if (step.uses === null) {
      const script = join(directory, 'temp', `${number}.sh`);
      await writeFile(script, interpolate(step.run ?? '', scope));
      // The runner's default on Linux; `shell: bash` is stricter.
      const flags = step.bash ? ['--noprofile', '--norc', '-eo', 'pipefail'] : ['-e'];
      return startProcess('bash', [...flags, script], { cwd, env, onLine });
    }
    if (isCheckout(step.uses)) {
      const { url } = execution.world;
      const remote = `${url}/${execution.run.repository.fullName}.git`;
      return startProcess('bash', ['-e', '-c', CHECKOUT], {
        cwd: workspace,
        env: { ...env, REMOTE: remote, TOKEN: execution.token },
        onLine,
      });
    }
    if (!isOurs(step.uses))
      throw new Unresolvable(`Unable to resolve action ${step.uses}, repository not found`);
    const action = await readActionFile();
    const given = Object.entries(step.with).map(([name, value]) => [
      name.toLowerCase(),
      interpolate(value, scope),
    ]);
    const defaults = Object.entries(action.defaults).map(([name, value]) => [
      name,
      interpolate(value, scope),
    ]);
    const unexpected = given.flatMap(([name = '']) => (action.inputs.includes(name) ? [] : [`'${name}'`]));
    if (unexpected.length > 0) log.line(`::warning::Unexpected input(s) ${unexpected.join(', ')}`);
    const inputs = inputEnvironment(Object.fromEntries([...defaults, ...given]));
    const [, version = ''] = step.uses.split('@');
    const place = { GITHUB_ACTION_REPOSITORY: step.uses.replace(/@.*/, ''), GITHUB_ACTION_REF: version };
    return startProcess(process.execPath, [join(TREE, action.main)], {
      cwd,
      env: { ...env, ...place, ...inputs },
      onLine,
    });
  };
  const { process: child, ended } = await start();
  job.process = child;
  const code = await ended;
  job.process = null;
  const written = await files.collect();
  if (step.id !== null) job.outputs[step.id] = written.outputs;
  Object.assign(execution.env, written.env);
  execution.paths = [...written.paths, ...execution.paths];
  job.summary += written.summary ?? '';
  if (written.summary === null)
    log.line('::error::$GITHUB_STEP_SUMMARY upload aborted, supports content up to a size of 1024k');
  return code;
}

function environmentOf(
  execution: Execution,
  stepEnv: Readonly<Record<string, string>>,
  files: CommandFiles,
): Record<string, string> {
  // From nothing: what the test's own process has in its environment is never seen by a job.
  const path = [
    ...execution.paths,
    join(TREE, 'node_modules/.bin'),
    dirname(process.execPath),
    '/usr/local/bin',
    '/usr/bin',
    '/bin',
  ].join(':');
  return { PATH: path, ...execution.env, ...stepEnv, ...execution.base, ...files.env };
}

function scopeOf(execution: Execution, env: Readonly<Record<string, string>>): Scope {
  const { run, job, token, payload, status } = execution;
  const steps = Object.fromEntries(
    execution.definition.steps.flatMap((step, index) => {
      const result = job.steps[index];
      if (step.id === null || result === undefined) return [];
      return [
        [
          step.id,
          { outputs: job.outputs[step.id] ?? {}, conclusion: result.conclusion, outcome: result.conclusion },
        ],
      ];
    }),
  );
  return {
    status,
    contexts: {
      ...runContexts(run, payload),
      github: { ...githubContext(run, payload), token, job: job.key, workspace: execution.workspace },
      env,
      steps,
      secrets: { ...secretsOf(run), GITHUB_TOKEN: token },
      job: { status },
      runner: { os: 'Linux', arch: 'X64', name: 'Sandbox Runner 1', temp: join(execution.directory, 'temp') },
    },
  };
}
