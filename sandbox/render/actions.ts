import type { Job, WorkflowFile, WorkflowRun } from '../actions/run.ts';
import type { Json } from '../model.ts';
import type { Repository } from '../repository.ts';
import { nodeId } from '../world.ts';
import { userJson } from './accounts.ts';
import { simpleCommitJson } from './commits.ts';
import { repositoryJson } from './repositories.ts';

/** A workflow file as GitHub's `workflow`. */
export function workflowJson(repository: Repository, file: WorkflowFile): Json {
  const { world, fullName, defaultBranch } = repository;
  return {
    id: file.id,
    node_id: nodeId('W', file.id),
    name: file.name,
    path: file.path,
    state: 'active',
    created_at: file.createdAt,
    updated_at: file.createdAt,
    url: `${world.apiUrl}/repos/${fullName}/actions/workflows/${file.id}`,
    html_url: `${world.url}/${fullName}/blob/${defaultBranch}/${file.path}`,
    badge_url: `${world.url}/${fullName}/workflows/${encodeURIComponent(file.name)}/badge.svg`,
  };
}

/** A run as GitHub's `workflow-run`, also in `workflow_run` events. */
export async function runJson(run: WorkflowRun): Promise<Json> {
  const { repository, suite, actor } = run;
  const { world, fullName } = repository;
  const api = `${world.apiUrl}/repos/${fullName}`;
  const self = `${api}/actions/runs/${run.id}`;
  const repo = repositoryJson(world, repository);
  return {
    id: run.id,
    name: run.workflow.name,
    node_id: nodeId('WFR', run.id),
    check_suite_id: suite.id,
    check_suite_node_id: nodeId('CS', suite.id),
    head_branch: run.headBranch,
    head_sha: run.headSha,
    path: run.workflow.path,
    run_number: run.number,
    run_attempt: run.attempt,
    referenced_workflows: [],
    event: run.event,
    display_title: run.displayTitle,
    status: run.status,
    conclusion: run.conclusion,
    workflow_id: run.workflow.id,
    url: self,
    html_url: `${world.url}/${fullName}/actions/runs/${run.id}`,
    pull_requests: [],
    created_at: run.createdAt,
    updated_at: run.updatedAt,
    actor: userJson(world, actor),
    triggering_actor: userJson(world, actor),
    run_started_at: run.startedAt,
    jobs_url: `${self}/jobs`,
    logs_url: `${self}/logs`,
    check_suite_url: `${api}/check-suites/${suite.id}`,
    artifacts_url: `${self}/artifacts`,
    cancel_url: `${self}/cancel`,
    rerun_url: `${self}/rerun`,
    previous_attempt_url: run.attempt > 1 ? `${self}/attempts/${run.attempt - 1}` : null,
    workflow_url: `${api}/actions/workflows/${run.workflow.id}`,
    head_commit: await simpleCommitJson(repository, run.headSha),
    repository: repo,
    head_repository: run.headRepository === null ? null : repositoryJson(world, run.headRepository),
    ...(run.headRepository === null ? {} : { head_repository_id: run.headRepository.id }),
  };
}

/** A job as GitHub's `job`, also in `workflow_job` events. */
export function jobJson(run: WorkflowRun, job: Job): Json {
  const { world, fullName } = run.repository;
  const api = `${world.apiUrl}/repos/${fullName}`;
  const placed = job.status !== 'queued';
  return {
    id: job.id,
    run_id: run.id,
    run_url: `${api}/actions/runs/${run.id}`,
    run_attempt: job.attempt,
    node_id: nodeId('CR', job.id),
    head_sha: run.headSha,
    head_branch: run.headBranch,
    workflow_name: run.workflow.name,
    url: `${api}/actions/jobs/${job.id}`,
    html_url: `${world.url}/${fullName}/actions/runs/${run.id}/job/${job.id}`,
    status: job.status,
    conclusion: job.conclusion,
    created_at: job.createdAt,
    started_at: job.startedAt,
    completed_at: job.completedAt,
    name: job.name,
    steps: job.steps.map((step) => ({
      name: step.name,
      status: step.status,
      conclusion: step.conclusion,
      number: step.number,
      started_at: step.startedAt,
      completed_at: step.completedAt,
    })),
    check_run_url: `${api}/check-runs/${job.id}`,
    labels: job.labels,
    runner_id: placed ? 1 : null,
    runner_name: placed ? 'Sandbox Runner 1' : null,
    runner_group_id: placed ? 0 : null,
    runner_group_name: placed ? (job.labels.includes('self-hosted') ? 'Default' : 'GitHub Actions') : null,
  };
}
