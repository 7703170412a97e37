import type { WorkflowFile, WorkflowRun } from '../actions/run.ts';
import type { Actions } from '../actions/service.ts';
import { BadWorkflow, dispatchInputs, type WorkflowInput } from '../actions/workflow.ts';
import {
  type Answer,
  type Call,
  type Handler,
  notFound,
  paged,
  Refused,
  repositoryOf,
} from '../http/call.ts';
import type { Json } from '../model.ts';
import type { OperationId } from '../operations.ts';
import { jobJson, runJson, workflowJson } from '../render/actions.ts';
import { actorOf } from './issues.ts';

// facts/github.md §7: inputs are at most 65,535 characters in all.
const MAX_INPUTS = 65_535;
// facts/github.md §8: listing with filters gives at most 1,000.
const MAX_LISTED = 1000;

/** Workflows, dispatch, runs (facts/github.md §7, §8). */
export function actionsHandlers(actions: Actions) {
  const fileOf = async (call: Call): Promise<WorkflowFile> => {
    const file = await actions.files.file(repositoryOf(call), String(call.path['workflow_id']));
    if (file === null) throw notFound();
    return file;
  };
  const runOf = (call: Call): WorkflowRun => {
    const repository = repositoryOf(call);
    const run = actions.runs.find((one) => one.id === call.path['run_id'] && one.repository === repository);
    if (run === undefined) throw notFound();
    return run;
  };
  const cancel = async (call: Call, force: boolean): Promise<Answer> => {
    const run = runOf(call);
    if (run.status === 'completed') throw new Refused(409, 'Cannot cancel a workflow run that is completed.');
    await actions.cancel(run, force);
    return { status: 202, body: {} };
  };
  // facts/github.md §8: 201; the wording of the refusal is not established.
  const rerun = async (run: WorkflowRun, only: ReadonlySet<string> | null): Promise<Answer> => {
    if (run.status !== 'completed') throw new Refused(403, 'This workflow is already running');
    await actions.rerun(run, only);
    return { status: 201, body: {} };
  };
  const list = async (call: Call, file: WorkflowFile | null): Promise<Answer> => {
    const { query } = call;
    const repository = repositoryOf(call);
    const all = actions.runs
      .filter((run) => run.repository === repository && (file === null || run.workflow === file))
      .filter((run) => query['event'] === undefined || run.event === query['event'])
      .filter((run) => query['branch'] === undefined || run.headBranch === query['branch'])
      .filter((run) => query['head_sha'] === undefined || run.headSha === query['head_sha'])
      .filter((run) => query['actor'] === undefined || run.actor.login === query['actor'])
      .filter((run) => query['status'] === undefined || isInState(run, String(query['status'])))
      .reverse()
      .slice(0, MAX_LISTED);
    const { items, headers } = paged(call, all);
    const workflow_runs = await Promise.all(items.map(runJson));
    return { status: 200, headers, body: { total_count: all.length, workflow_runs } };
  };

  return {
    'actions/get-workflow': async (call) => ({
      status: 200,
      body: workflowJson(repositoryOf(call), await fileOf(call)),
    }),
    'actions/create-workflow-dispatch': async (call) => dispatch(call, actions, await fileOf(call)),
    'actions/get-workflow-run': async (call) => ({ status: 200, body: await runJson(runOf(call)) }),
    'actions/list-workflow-runs': async (call) => list(call, await fileOf(call)),
    'actions/list-workflow-runs-for-repo': (call) => list(call, null),
    'actions/list-jobs-for-workflow-run': (call) => {
      const run = runOf(call);
      const { items, headers } = paged(call, run.jobs);
      const jobs = items.map((job) => jobJson(run, job));
      return { status: 200, headers, body: { total_count: run.jobs.length, jobs } };
    },
    'actions/cancel-workflow-run': (call) => cancel(call, false),
    'actions/force-cancel-workflow-run': (call) => cancel(call, true),
    'actions/re-run-workflow': (call) => rerun(runOf(call), null),
    'actions/re-run-workflow-failed-jobs': (call) => {
      const run = runOf(call);
      const failed = run.jobs.filter((job) => job.conclusion !== 'success' && job.conclusion !== 'skipped');
      if (failed.length === 0) throw new Refused(403, 'The workflow run has no failed jobs to re-run');
      return rerun(run, new Set(failed.map((job) => job.name)));
    },
    'actions/re-run-job-for-workflow-run': (call) => {
      const repository = repositoryOf(call);
      const id = call.path['job_id'];
      for (const run of actions.runs) {
        const job = run.repository === repository ? run.jobs.find((one) => one.id === id) : undefined;
        if (job !== undefined) return rerun(run, new Set([job.name]));
      }
      throw notFound();
    },
  } satisfies Partial<Record<OperationId, Handler>>;
}

function isInState(run: WorkflowRun, state: string): boolean {
  return run.status === state || run.conclusion === state;
}

async function dispatch(call: Call, actions: Actions, file: WorkflowFile): Promise<Answer> {
  const { world, body, version } = call;
  const repository = repositoryOf(call);
  const name = String(body['ref']);
  const ref = await refOf(call, name);
  const sha = ref === null ? null : await repository.git.commitId(ref);
  if (ref === null || sha === null) throw new Refused(422, `No ref found for: ${name}`);
  const text = await actions.files.read(repository, sha, file.path);
  const declared = text === null ? null : declaredInputs(text);
  if (text === null || declared === null)
    throw new Refused(422, "Workflow does not have 'workflow_dispatch' trigger");
  const inputs = checkedInputs(declared, (body['inputs'] ?? {}) as Json);
  const { user } = actorOf(call);
  await world.emit({
    event: 'workflow_dispatch',
    action: null,
    repository,
    sender: user,
    payload: () => ({ inputs, ref, workflow: file.path }),
  });
  const run = await actions.start({ repository, file, text, ref, sha, actor: user, inputs });
  // 2022-11-28: 204, or 200 with return_run_details since 2026-02-19; 2026-03-10: always 200.
  if (body['return_run_details'] !== true && version !== '2026-03-10') return { status: 204 };
  return {
    status: 200,
    body: {
      workflow_run_id: run.id,
      run_url: `${world.apiUrl}/repos/${repository.fullName}/actions/runs/${run.id}`,
      html_url: `${world.url}/${repository.fullName}/actions/runs/${run.id}`,
    },
  };
}

async function refOf(call: Call, name: string): Promise<string | null> {
  const { git } = repositoryOf(call);
  const candidates = /^refs\/(heads|tags)\//.test(name)
    ? [name]
    : [`refs/heads/${name}`, `refs/tags/${name}`];
  for (const ref of candidates) if ((await git.objectId(ref)) !== null) return ref;
  return null;
}

// A file that is no YAML is refused at once (GK); other mistakes come later as startup_failure.
function declaredInputs(text: string): Readonly<Record<string, WorkflowInput>> | null {
  try {
    return dispatchInputs(text);
  } catch (error) {
    if (error instanceof BadWorkflow) throw new Refused(422, `failed to parse workflow: ${error.message}`);
    throw error;
  }
}

function checkedInputs(
  declared: Readonly<Record<string, WorkflowInput>>,
  given: Json,
): Record<string, string> {
  const unexpected = Object.keys(given).filter((name) => !(name in declared));
  if (unexpected.length > 0)
    throw new Refused(422, `Unexpected inputs provided: ${JSON.stringify(unexpected)}`);
  if (JSON.stringify(given).length > MAX_INPUTS) throw new Refused(422, 'inputs are too large.');
  const inputs: Record<string, string> = {};
  for (const [name, input] of Object.entries(declared)) {
    const value = given[name] === undefined ? input.default : String(given[name]);
    // The wording of this refusal is not established (facts/github.md §21).
    if (input.required && (value === null || value === ''))
      throw new Refused(422, `Required input '${name}' not provided`);
    if (input.type === 'choice' && value !== null && !input.options.includes(value))
      throw new Refused(
        422,
        `Provided value '${value}' for input '${name}' not in the list of allowed values`,
      );
    inputs[name] = value ?? '';
  }
  return inputs;
}
