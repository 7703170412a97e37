import type { CheckRun, CheckSuite, Json } from '../model.ts';
import type { Pull } from '../pull.ts';
import type { Repository } from '../repository.ts';
import { nodeId, type World } from '../world.ts';
import { appJson } from './accounts.ts';
import { simpleCommitJson } from './commits.ts';
import { repositoryJson } from './repositories.ts';

/** Open pull requests of this repository whose head is a commit; EMPTY for fork pull requests (facts/github.md §1). */
function pullsOf(repository: Repository, sha: string): Json[] {
  return repository.pulls
    .filter((pull) => pull.state === 'open' && pull.head.sha === sha && pull.head.repository === repository)
    .map((pull) => minimalPull(pull));
}

function minimalPull(pull: Pull): Json {
  const { repository, base, head } = pull;
  const api = `${repository.world.apiUrl}/repos/${repository.fullName}`;
  const repo = { id: repository.id, url: api, name: repository.name };
  return {
    id: pull.id,
    number: pull.number,
    url: `${api}/pulls/${pull.number}`,
    head: { ref: head.ref, sha: head.sha, repo },
    base: { ref: base.ref, sha: base.sha, repo },
  };
}

/** A check suite without its repository, as nested in check run webhooks. */
export function simpleSuiteJson(world: World, repository: Repository, suite: CheckSuite): Json {
  return {
    id: suite.id,
    node_id: nodeId('CS', suite.id),
    head_branch: suite.headBranch,
    head_sha: suite.headSha,
    status: suite.status,
    conclusion: suite.conclusion,
    url: `${world.apiUrl}/repos/${repository.fullName}/check-suites/${suite.id}`,
    before: suite.before,
    after: suite.headSha,
    pull_requests: pullsOf(repository, suite.headSha),
    app: appJson(world, suite.app),
    created_at: suite.createdAt,
    updated_at: suite.updatedAt,
  };
}

/** A check suite as GitHub's `check-suite`. */
export async function suiteJson(world: World, repository: Repository, suite: CheckSuite): Promise<Json> {
  const url = `${world.apiUrl}/repos/${repository.fullName}/check-suites/${suite.id}/check-runs`;
  return {
    ...simpleSuiteJson(world, repository, suite),
    head_commit: await simpleCommitJson(repository, suite.headSha),
    repository: repositoryJson(world, repository),
    latest_check_runs_count: world.checkRuns.filter((run) => run.suite === suite).length,
    check_runs_url: url,
    rerequestable: true,
    runs_rerequestable: true,
  };
}

/** A check run as GitHub's `check-run`. */
export function checkRunJson(world: World, repository: Repository, run: CheckRun): Json {
  const url = `${world.apiUrl}/repos/${repository.fullName}/check-runs/${run.id}`;
  const html = `${world.url}/${repository.fullName}/runs/${run.id}`;
  return {
    id: run.id,
    node_id: nodeId('CR', run.id),
    head_sha: run.headSha,
    external_id: run.externalId,
    url,
    html_url: html,
    details_url: run.detailsUrl ?? html,
    status: run.status,
    conclusion: run.conclusion,
    started_at: run.startedAt,
    completed_at: run.completedAt,
    output: {
      title: run.title,
      summary: run.summary,
      text: run.text,
      annotations_count: run.annotations.length,
      annotations_url: `${url}/annotations`,
    },
    name: run.name,
    check_suite: { id: run.suite.id },
    app: appJson(world, run.app),
    pull_requests: pullsOf(repository, run.headSha),
  };
}

/** A check run as webhooks carry it: with its suite, without the repository in it. */
export function checkRunEventJson(world: World, repository: Repository, run: CheckRun): Json {
  return {
    ...checkRunJson(world, repository, run),
    check_suite: simpleSuiteJson(world, repository, run.suite),
  };
}
