import { dirname, join } from 'node:path';
import type { World } from '../world.ts';
import type { Scope, Value } from './expressions.ts';
import type { Job, WorkflowRun } from './run.ts';

/** What GitHub's runner puts into every step's environment, besides PATH and the command files. */
export function baseEnvironment(
  world: World,
  run: WorkflowRun,
  job: Job,
  directory: string,
  workspace: string,
): Record<string, string> {
  const { repository, actor, workflow } = run;
  return {
    CI: 'true',
    HOME: join(directory, 'home'),
    LANG: 'C.UTF-8',
    GITHUB_ACTION: '__run',
    GITHUB_ACTIONS: 'true',
    GITHUB_ACTOR: actor.login,
    GITHUB_ACTOR_ID: String(actor.id),
    GITHUB_API_URL: world.apiUrl,
    GITHUB_BASE_REF: run.baseRef,
    GITHUB_EVENT_NAME: run.event,
    GITHUB_EVENT_PATH: join(directory, 'event.json'),
    GITHUB_GRAPHQL_URL: `${world.url}/api/graphql`,
    GITHUB_HEAD_REF: run.baseRef === '' ? '' : run.headBranch,
    GITHUB_JOB: job.key,
    GITHUB_REF: run.ref,
    GITHUB_REF_NAME: refName(run),
    GITHUB_REF_PROTECTED: 'false',
    GITHUB_REF_TYPE: run.ref.startsWith('refs/tags/') ? 'tag' : 'branch',
    GITHUB_REPOSITORY: repository.fullName,
    GITHUB_REPOSITORY_ID: String(repository.id),
    GITHUB_REPOSITORY_OWNER: repository.owner.login,
    GITHUB_REPOSITORY_OWNER_ID: String(repository.owner.id),
    GITHUB_RETENTION_DAYS: '90',
    GITHUB_RUN_ATTEMPT: String(run.attempt),
    GITHUB_RUN_ID: String(run.id),
    GITHUB_RUN_NUMBER: String(run.number),
    GITHUB_SERVER_URL: world.url,
    GITHUB_SHA: run.commit,
    GITHUB_TRIGGERING_ACTOR: actor.login,
    GITHUB_WORKFLOW: workflow.name,
    GITHUB_WORKFLOW_REF: `${repository.fullName}/${workflow.path}@${run.ref}`,
    GITHUB_WORKFLOW_SHA: run.commit,
    GITHUB_WORKSPACE: workspace,
    RUNNER_ARCH: process.arch === 'arm64' ? 'ARM64' : 'X64',
    RUNNER_ENVIRONMENT: job.labels.includes('self-hosted') ? 'self-hosted' : 'github-hosted',
    RUNNER_NAME: 'Sandbox Runner 1',
    RUNNER_OS: 'Linux',
    RUNNER_TEMP: join(directory, 'temp'),
    RUNNER_TOOL_CACHE: join(directory, 'tools'),
    RUNNER_WORKSPACE: dirname(workspace),
  };
}

// D:variables: of a pull request `N/merge`.
function refName(run: WorkflowRun): string {
  return run.ref.replace(/^refs\/(heads|tags|pull)\//, '');
}

/** The contexts that exist before a job does: run-name, concurrency and job `if`. */
export function runContexts(run: WorkflowRun, payload: Value): Scope['contexts'] {
  return { github: githubContext(run, payload), inputs: run.inputs, vars: run.repository.variables };
}

/** The `github` context, without token, job and workspace. */
export function githubContext(run: WorkflowRun, payload: Value): { readonly [key: string]: Value } {
  const { world } = run.repository;
  return {
    event: payload,
    event_name: run.event,
    ref: run.ref,
    ref_name: refName(run),
    sha: run.commit,
    base_ref: run.baseRef,
    head_ref: run.baseRef === '' ? '' : run.headBranch,
    actor: run.actor.login,
    actor_id: String(run.actor.id),
    triggering_actor: run.actor.login,
    repository: run.repository.fullName,
    repository_id: String(run.repository.id),
    repository_owner: run.repository.owner.login,
    repository_owner_id: String(run.repository.owner.id),
    run_id: String(run.id),
    run_number: String(run.number),
    run_attempt: String(run.attempt),
    workflow: run.workflow.name,
    server_url: world.url,
    api_url: world.apiUrl,
  };
}
