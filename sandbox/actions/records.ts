import type { Json, User } from '../model.ts';
import { jobJson, runJson, workflowJson } from '../render/actions.ts';
import type { Repository } from '../repository.ts';
import { createCheckRun } from '../rest/check-runs.ts';
import { newSuite } from '../rest/suites.ts';
import type { World } from '../world.ts';
import type { Job, WorkflowFile, WorkflowRun } from './run.ts';
import type { JobDefinition } from './workflow.ts';

/** The app that workflows act for (facts/github.md §1). */
export const ACTIONS_APP_ID = 15368;

/** How it is registered; it signs nothing here and hears of nothing. */
export const ACTIONS_APP = {
  slug: 'github-actions',
  id: ACTIONS_APP_ID,
  botId: 41_898_282,
  key: false,
  permissions: {},
  events: [],
} as const;

/** A queued run with a check suite of its own. */
export function newRun(
  world: World,
  init: {
    repository: Repository;
    file: WorkflowFile;
    event: string;
    ref: string;
    sha: string;
    head: { readonly sha: string; readonly branch: string; readonly repository: Repository | null };
    base: string;
    actor: User;
    inputs: Readonly<Record<string, string>>;
    number: number;
    title: string;
  },
): WorkflowRun {
  const { repository, file, event, ref, sha, head, base, actor, inputs, number, title } = init;
  // facts/github.md §2, §15: suites of forks' heads have no branch here
  const branch = head.repository === repository ? head.branch : null;
  const actions = world.apps.find((app) => app.id === ACTIONS_APP_ID);
  if (actions === undefined) throw new Error('no github-actions app');
  return {
    id: world.id('workflowRun'),
    repository,
    workflow: file,
    number,
    attempt: 1,
    event,
    ref,
    commit: sha,
    headSha: head.sha,
    headBranch: head.branch,
    headRepository: head.repository,
    baseRef: base,
    actor,
    inputs,
    // Unlike other apps', each workflow run has a suite of its own.
    suite: newSuite(world, repository, actions, head.sha, branch, null),
    displayTitle: title,
    status: 'queued',
    conclusion: null,
    failure: null,
    group: null,
    createdAt: world.stamp(),
    updatedAt: world.stamp(),
    startedAt: world.stamp(),
    jobs: [],
    cancelled: 'no',
    lost: false,
  };
}

/** A queued job with its check run; sends `workflow_job.queued`. */
export async function createJob(run: WorkflowRun, definition: JobDefinition, name: string): Promise<Job> {
  const { suite, repository } = run;
  const { world } = repository;
  const checkRun = await createCheckRun(
    world,
    repository,
    suite.app,
    run.headSha,
    { name, status: 'queued' },
    suite,
  );
  const job: Job = {
    id: checkRun.id,
    checkRun,
    key: definition.id,
    attempt: run.attempt,
    name,
    labels: definition.runsOn,
    environment: definition.environment,
    status: 'queued',
    conclusion: null,
    createdAt: world.stamp(),
    startedAt: world.stamp(),
    completedAt: null,
    steps: definition.steps.map((step, index) => ({
      number: index + 1,
      name: step.name,
      status: 'queued',
      conclusion: null,
      startedAt: null,
      completedAt: null,
    })),
    log: '',
    summary: '',
    outputs: {},
    annotations: [],
    process: null,
  };
  run.jobs.push(job);
  await announceJob(run, job, 'queued');
  return job;
}

/** Sends a `workflow_run` event. */
export async function announceRun(
  run: WorkflowRun,
  action: 'requested' | 'in_progress' | 'completed',
): Promise<void> {
  run.updatedAt = run.repository.world.stamp();
  const workflow = workflowJson(run.repository, run.workflow);
  await emit(run, 'workflow_run', action, async () => ({
    workflow,
    workflow_run: await runJson(run),
  }));
}

/** Sends a `workflow_job` event. */
export async function announceJob(
  run: WorkflowRun,
  job: Job,
  action: 'queued' | 'in_progress' | 'completed',
): Promise<void> {
  await emit(run, 'workflow_job', action, () => ({ workflow_job: jobJson(run, job) }));
}

async function emit(
  run: WorkflowRun,
  event: string,
  action: string,
  payload: () => Promise<Json> | Json,
): Promise<void> {
  await run.repository.world.emit({ event, action, repository: run.repository, sender: run.actor, payload });
}
