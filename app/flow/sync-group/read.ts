/** What GitHub and git say of a merge group (GAT-5): before any transaction. */
import type { Repository } from '../../../db/store/installation.ts';
import { productNow, type Run } from '../../../db/store/run.ts';
import { decideFiles, pairFiles } from '../../domain/file-set.ts';
import type { DecidedPath } from '../../domain/ledger/row-fields.ts';
import { compileGuard } from '../../domain/ownership/guard.ts';
import { pathKey } from '../../domain/path.ts';
import type { Policy } from '../../domain/policy.ts';
import type { RunState } from '../../domain/run-state/state.ts';
import { Fault } from '../../errors.ts';
import type { GroupReading, PullReading } from '../../github/port/git.ts';
import type { GitHub, MergeQueue } from '../../github/port.ts';
import { PROMPT_VERSION } from '../../protocol/runner.ts';
import type { Deps } from '../deps.ts';
import {
  type BasePolicy,
  readAttributes,
  readBasePolicy,
  readLines,
  type Source,
  sourceOf,
} from '../sync-run/read.ts';
import { readHistory } from '../sync-run/read-history.ts';

/** A pull request of the group with the head that was queued. */
export interface QueuedMember {
  readonly pull: string;
  readonly head: string;
}

/** A merge group as it is. */
export interface GroupTruth {
  readonly head: string;
  readonly base: string;
  readonly policy: BasePolicy;
  /** From the front of the queue to the entry that is ours; null where they could not be listed. */
  readonly members: readonly QueuedMember[] | null;
  readonly timeoutMs: number | null;
  readonly tree: string;
  readonly merged: string | null;
  readonly reading: PullReading;
  /** The paths of base…head, decided; null where the base has no valid policy. */
  readonly files: readonly DecidedPath[] | null;
  readonly lines: ReadonlyMap<string, number>;
}

/** The one block of a group's paths: a group has none of its own. */
export const GROUP_BLOCK = 'group';

/** How long GitHub may not list a group that it has just asked a check for. */
const LAG_MS = 60_000;

/**
 * Reads a merge group; null where it was read before and its members are still not to be had. The base is
 * the branch as it is now, so that the paths of every member ahead are looked at too: under HEADGREEN
 * nobody else looks at theirs.
 */
export async function readGroupTruth(
  deps: Deps,
  run: Run,
  repository: Repository,
  state: RunState,
): Promise<GroupTruth | null> {
  const head = run.toldHead;
  const github = await deps.github.installation(run.installationId);
  const queue = await askQueue(github, repository, run.baseRef);
  const members = queue.queue === null ? null : membersOf(queue.queue, head);
  if (members === null && queue.mayCome && !(await isLate(deps, run)))
    throw new Fault('github_unavailable', `the queue does not show ${head} yet`, { retryable: true });
  if (members === null && state.group !== null && state.heads.length > 0) return null;
  const timeoutMs = queue.queue?.timeoutMs ?? (await github.getQueueTimeout(repository, run.baseRef));
  const source = await sourceOf(deps, github, repository);
  const base = state.heads.at(-1)?.base ?? (await github.getBranchHead(repository, run.baseRef));
  if (base === null)
    throw new Fault('git_unavailable', `the branch ${run.baseRef} is gone`, { retryable: true });
  const group = await readGit(source, head, base, members ?? []);
  const policy = await readBasePolicy(source, base);
  const { reading, tree, merged } = group;
  const told = { head, base, policy, members, timeoutMs, tree, merged, reading };
  if (policy.state !== 'valid') return { ...told, files: null, lines: new Map() };
  const lines = await readLines(source, policy.policy, reading);
  const attributes = await readAttributes(source, reading);
  const history = await readHistory(deps.database.db, repository.id, policy.policy, reading);
  return { ...told, files: decide(policy.policy, reading, attributes, lines, history), lines };
}

async function readGit(
  { git, repository, url, token }: Source,
  head: string,
  base: string,
  members: readonly QueuedMember[],
): Promise<GroupReading> {
  return git.readGroup({ repository, cloneUrl: url, token, head, base, members });
}

/** The queue, and whether it may still come to list the group. */
async function askQueue(
  github: GitHub,
  repository: Repository,
  branch: string,
): Promise<{ readonly queue: MergeQueue | null; readonly mayCome: boolean }> {
  try {
    return { queue: await github.getQueue(repository, branch), mayCome: true };
  } catch (error) {
    // not permitted, or a server that does not know queues: every path must then be known by its key
    if (error instanceof Fault && !error.retryable) return { queue: null, mayCome: false };
    throw error;
  }
}

/** Entries from the front to the one whose commit is ours; null unless all of them are told. */
function membersOf({ entries }: MergeQueue, head: string): QueuedMember[] | null {
  const last = entries.findIndex((entry) => entry.groupHead === head);
  if (last < 0) return null;
  const members = entries
    .slice(0, last + 1)
    .flatMap(({ pull, head: queued }) => (pull === null || queued === null ? [] : [{ pull, head: queued }]));
  return members.length === last + 1 ? members : null;
}

async function isLate(deps: Deps, run: Run): Promise<boolean> {
  return (await productNow(deps.database.db)).getTime() - run.headAt.getTime() > LAG_MS;
}

/** Levels and review keys as a pull request without blocks would have them. */
function decide(
  policy: Policy,
  reading: PullReading,
  attributes: Parameters<typeof decideFiles>[0]['attributes'],
  lines: ReadonlyMap<string, number>,
  history: ReadonlySet<string>,
): DecidedPath[] {
  const files = pairFiles(reading.files, reading.renames);
  const guarded = compileGuard(policy);
  const owners = new Map(
    files.map((file) => {
      const isGuarded = guarded(file.path) || (file.from !== null && guarded(file.from));
      const ownership = isGuarded ? ('guarded' as const) : ('owned' as const);
      return [pathKey(file.path), { block: GROUP_BLOCK, ownership, reason: null, claim: null }];
    }),
  );
  return decideFiles({
    policy,
    files,
    ownership: { owners, contributions: [] },
    blocks: new Map([[GROUP_BLOCK, { docsOnly: false, trailer: null, clauses: [] }]]),
    attributes,
    lines,
    decided: new Map(),
    promptVersion: PROMPT_VERSION,
    history,
  });
}
