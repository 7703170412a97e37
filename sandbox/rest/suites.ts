import type { App, CheckSuite, User } from '../model.ts';
import { appJson } from '../render/accounts.ts';
import { simpleSuiteJson } from '../render/checks.ts';
import { simpleCommitJson } from '../render/commits.ts';
import type { Repository } from '../repository.ts';
import type { World } from '../world.ts';

/** The app's suite of a commit, made when missing: one per app and commit (facts/github.md §2). */
export function suiteOf(
  world: World,
  repository: Repository,
  app: App,
  headSha: string,
  branch: string | null,
  before: string | null,
): { suite: CheckSuite; created: boolean } {
  const known = world.suites.find(
    (suite) => suite.app === app && suite.repositoryId === repository.id && suite.headSha === headSha,
  );
  if (known !== undefined) return { suite: known, created: false };
  return { suite: newSuite(world, repository, app, headSha, branch, before), created: true };
}

/** A new suite, whatever suites the commit has. */
export function newSuite(
  world: World,
  repository: Repository,
  app: App,
  headSha: string,
  branch: string | null,
  before: string | null,
): CheckSuite {
  const suite: CheckSuite = {
    id: world.id('suite'),
    app,
    repositoryId: repository.id,
    headSha,
    headBranch: branch,
    status: 'queued',
    conclusion: null,
    before,
    createdAt: world.stamp(),
    updatedAt: world.stamp(),
  };
  world.suites.push(suite);
  return suite;
}

/**
 * After a push: `check_suite.requested` to every app with checks:write, unless the commit's last trailers say
 * `skip-checks: true` (facts/github.md §2).
 */
export async function requestSuites(
  world: World,
  repository: Repository,
  sha: string,
  branch: string,
  before: string | null,
  sender: User,
): Promise<void> {
  const message = repository.git.objects.commit(sha)?.message;
  const trailers =
    message === undefined || /skip-checks/i.test(message)
      ? await repository.git.text(['log', '-1', '--format=%(trailers:key=skip-checks,valueonly)', sha])
      : '';
  if (trailers.trim().toLowerCase() === 'true') return;
  for (const installation of world.installationsOn(repository)) {
    if (installation.permissions['checks'] !== 'write') continue;
    const { suite, created } = suiteOf(world, repository, installation.app, sha, branch, before);
    if (created) await announceSuite(world, repository, suite, 'requested', sender);
  }
}

/** Sends a `check_suite` event: completed to all that may read checks, the others to the suite's own app. */
export async function announceSuite(
  world: World,
  repository: Repository,
  suite: CheckSuite,
  action: 'requested' | 'rerequested' | 'completed',
  sender: User,
): Promise<void> {
  await world.emit({
    event: 'check_suite',
    action,
    repository,
    sender,
    ...(action === 'completed' ? {} : { onlyApp: suite.app }),
    payload: async () => ({
      check_suite: {
        ...simpleSuiteJson(world, repository, suite),
        // this one payload's schema lists the events of an App by name, from before merge groups
        app: {
          ...appJson(world, suite.app),
          events: suite.app.events.filter((event) => event !== 'merge_group'),
        },
        head_commit: await simpleCommitJson(repository, suite.headSha),
        latest_check_runs_count: world.checkRuns.filter((run) => run.suite === suite).length,
        check_runs_url: `${world.apiUrl}/repos/${repository.fullName}/check-suites/${suite.id}/check-runs`,
        rerequestable: true,
        runs_rerequestable: true,
      },
    }),
  });
}

// facts/github.md §2: the suite's conclusion is that of its highest-priority run.
const PRIORITY = [
  'action_required',
  'timed_out',
  'cancelled',
  'failure',
  'neutral',
  'success',
  'skipped',
  'stale',
] as const;

/** Brings a suite's status to what its runs say. */
export function settleSuite(world: World, suite: CheckSuite): void {
  const runs = world.checkRuns.filter((run) => run.suite === suite);
  suite.updatedAt = world.stamp();
  if (runs.length > 0 && runs.every((run) => run.status === 'completed')) {
    suite.status = 'completed';
    suite.conclusion = PRIORITY.find((one) => runs.some((run) => run.conclusion === one)) ?? null;
    return;
  }
  suite.status = runs.some((run) => run.status !== 'queued') ? 'in_progress' : 'queued';
  suite.conclusion = null;
}
