import {
  type Answer,
  type Call,
  type Handler,
  notFound,
  paged,
  Refused,
  repositoryOf,
} from '../http/call.ts';
import type { App, CheckRun } from '../model.ts';
import type { OperationId } from '../operations.ts';
import { checkRunJson, suiteJson } from '../render/checks.ts';
import { checkOutput, createCheckRun, rerequestCheck, setCheck } from './check-runs.ts';
import { commitOf } from './repos.ts';

/** Check runs and suites (facts/github.md §1, §2). */
export const checkHandlers = {
  'checks/create': async (call) => {
    const { world, body } = call;
    const repository = repositoryOf(call);
    const app = creatorOf(call);
    checkOutput(body, null);
    const sha = String(body['head_sha']);
    // Case 7: a commit that has not reached this repository yet.
    if (!/^([0-9a-f]{40}|[0-9a-f]{64})$/.test(sha) || (await repository.git.commitId(sha)) === null)
      throw new Refused(422, `No commit found for SHA: ${sha}`);
    const run = await createCheckRun(world, repository, app, sha, body);
    return { status: 201, body: checkRunJson(world, repository, run) };
  },

  'checks/update': async (call) => {
    const { world, body } = call;
    const repository = repositoryOf(call);
    const app = creatorOf(call);
    const run = runOf(call);
    if (run.app !== app)
      throw new Refused(
        403,
        `Invalid app_id \`${app.id}\` - check run can only be modified by the GitHub App that created it.`,
      );
    checkOutput(body, run);
    await setCheck(world, repository, run, body);
    return { status: 200, body: checkRunJson(world, repository, run) };
  },

  'checks/get': (call) => ({ status: 200, body: checkRunJson(call.world, repositoryOf(call), runOf(call)) }),

  'checks/list-annotations': (call) => {
    const run = runOf(call);
    const { items, headers } = paged(call, run.annotations);
    const repository = repositoryOf(call);
    return {
      status: 200,
      headers,
      body: items.map((one) => ({
        path: one.path,
        blob_href: `${call.world.url}/${repository.fullName}/blob/${run.headSha}/${encodeURI(one.path)}`,
        start_line: one.start_line,
        end_line: one.end_line,
        start_column: one.start_column ?? null,
        end_column: one.end_column ?? null,
        annotation_level: one.annotation_level,
        title: one.title ?? null,
        message: one.message,
        raw_details: one.raw_details ?? null,
      })),
    };
  },

  'checks/list-for-ref': listForRef,

  'checks/list-suites-for-ref': async (call) => {
    const { world, query } = call;
    const repository = repositoryOf(call);
    const sha = await commitOf(repository, String(call.path['ref']));
    const all = world.suites.filter(
      (suite) =>
        suite.repositoryId === repository.id &&
        suite.headSha === sha &&
        (query['app_id'] === undefined || suite.app.id === query['app_id']),
    );
    const { items, headers } = paged(call, all);
    const suites = await Promise.all(items.map((suite) => suiteJson(world, repository, suite)));
    return { status: 200, headers, body: { total_count: all.length, check_suites: suites } };
  },

  'checks/rerequest-run': async (call) => {
    const run = runOf(call);
    const sender = call.bearer.kind === 'token' ? call.bearer.token.user : run.app.bot;
    await rerequestCheck(call.world, repositoryOf(call), run, sender);
    return { status: 201, body: {} };
  },
} satisfies Partial<Record<OperationId, Handler>>;

/** The app that a token acts for; a workflow's GITHUB_TOKEN acts for github-actions (facts/github.md §1). */
function creatorOf(call: Call): App {
  if (call.bearer.kind !== 'token') throw new Refused(401, 'Requires authentication');
  const { installation, user } = call.bearer.token;
  const app = installation?.app ?? call.world.apps.find((one) => one.bot === user);
  if (app === undefined) throw new Refused(403, 'You must authenticate via a GitHub App.');
  return app;
}

function runOf(call: Call): CheckRun {
  const repository = repositoryOf(call);
  const id = Number(call.path['check_run_id']);
  const run = call.world.checkRuns.find((one) => one.id === id && one.repositoryId === repository.id);
  if (run === undefined) throw notFound();
  return run;
}

/** filter=latest (default): the newest created of each app, suite and name; all: every one (facts/github.md §1). */
async function listForRef(call: Call): Promise<Answer> {
  const { world, query } = call;
  const repository = repositoryOf(call);
  const sha = await commitOf(repository, String(call.path['ref']));
  const latest = (query['filter'] ?? 'latest') === 'latest';
  const all = world.checkRuns
    .filter((run) => run.repositoryId === repository.id && run.headSha === sha)
    .filter((run) => query['check_name'] === undefined || run.name === query['check_name'])
    .filter((run) => query['app_id'] === undefined || run.app.id === query['app_id'])
    .filter((run, _, runs) => !latest || !runs.some((one) => newerTwin(run, one)))
    .filter((run) => query['status'] === undefined || run.status === query['status'])
    .sort((a, b) => b.id - a.id);
  const { items, headers } = paged(call, all);
  const check_runs = items.map((run) => checkRunJson(world, repository, run));
  return { status: 200, headers, body: { total_count: all.length, check_runs } };
}

function newerTwin(run: CheckRun, other: CheckRun): boolean {
  return other.suite === run.suite && other.name === run.name && other.id > run.id;
}
