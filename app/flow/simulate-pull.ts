/**
 * What would become of a pull request (GAT-1, OPS-9): its blocks, owners, levels, reviewers, tickets and
 * verdict, under the base's policy or another one. Where a run of this head is recorded its verified rows
 * decide, so what reviewers found and people did counts; nothing is recorded, published or spent.
 *
 * Reads: repository, run, verified rows, blocks, reviews of other runs. Writes: nothing but git's cache.
 * Calls: GitHub (pull, branch, merge base, a read token) and git. May fail with: `not_found`,
 * `ledger_invalid`, `ledger_unverifiable`, `git_unavailable`, `no_merge_base`, GitHub's.
 */
import { createHash } from 'node:crypto';
import { listBlocks } from '../../db/store/block.ts';
import type { Repository } from '../../db/store/installation.ts';
import { listReviewsElsewhere } from '../../db/store/reuse.ts';
import { findNewestRun, findRun, productNow, type Run } from '../../db/store/run.ts';
import { findRepositoryByAddress } from '../../db/store/simulate.ts';
import type { AnyRow } from '../domain/ledger/row.ts';
import { POLICY_PATH, type Policy, type PolicyReading, parsePolicy } from '../domain/policy.ts';
import { decideProposed, type Preview } from '../domain/preview.ts';
import { reviewsOf } from '../domain/reuse.ts';
import { presentHead } from '../domain/run-state/state.ts';
import { planTickets, type TicketPlan } from '../domain/simulate/tickets.ts';
import { Fault, Refusal } from '../errors.ts';
import type { PullInfo } from '../github/port.ts';
import type { Deps } from './deps.ts';
import { heldPolicy } from './held-policy.ts';
import { type Judged, judgeRun } from './judge-run.ts';
import { noFacts, openingOf, standing } from './preview-policy.ts';
import { type HeadPlan, planHead } from './sync-run/plan.ts';
import {
  type BasePolicy,
  type Content,
  readAttributes,
  readBasePolicy,
  readEntryModes,
  readLines,
  type Source,
  sourceOf,
} from './sync-run/read.ts';
import { readHistory } from './sync-run/read-history.ts';
import { verifyRun } from './verify-run.ts';

/** Which pull request, and the bytes of a policy to take instead of the base's. */
export interface SimulatePullInput {
  readonly owner: string;
  readonly name: string;
  readonly pull: string;
  readonly policy: Buffer | null;
}

/** A pull request with no policy to decide it by: none on its base, or one that is not valid. */
export interface NoPolicy {
  readonly kind: 'no_policy';
  readonly pull: PullInfo;
  readonly errors: Extract<PolicyReading, { ok: false }>['errors'];
}

/** What would become of it. */
export interface SimulatedPull {
  readonly kind: 'simulated';
  readonly pull: PullInfo;
  readonly mergeBase: string;
  /** SHA-256 of the policy that was taken, and whether it is the base's own. */
  readonly policy: { readonly hash: string; readonly isBase: boolean };
  /** The recorded run of this head with its last verified row; null: none is. */
  readonly recorded: { readonly run: string; readonly seq: number } | null;
  readonly plan: HeadPlan;
  readonly preview: Preview;
  readonly tickets: TicketPlan;
}

/** Most (run, key) pairs that are looked at, newest first. */
const MOST_PAIRS = 20_000;

/** Simulates it. */
export async function simulatePull(deps: Deps, input: SimulatePullInput): Promise<NoPolicy | SimulatedPull> {
  const { db } = deps.database;
  const repository = await findRepositoryByAddress(db, input.owner, input.name);
  if (repository === null || repository.status !== 'active')
    throw new Refusal(
      'not_found',
      `${input.owner}/${input.name} is no repository that this server knows: install the App on it, with a server running`,
    );
  const github = await deps.github.installation(repository.installationId);
  const pull = await github.getPull(repository, input.pull);
  const source = await sourceOf(deps, github, repository);
  const base = (await github.getBranchHead(repository, pull.baseRef)) ?? pull.base;
  const reading = await source.git.readPull({
    repository,
    cloneUrl: source.url,
    token: source.token,
    pull: pull.number,
    head: pull.head,
    base,
    mergeBase: await github.getMergeBase(repository, base, pull.head),
    commits: pull.commits,
  });
  const present = await readBasePolicy(source, base);
  const chosen = await choose(source, present, input.policy);
  if ('errors' in chosen) return { kind: 'no_policy', pull, errors: chosen.errors };
  const basePolicy = present.state === 'valid' ? present.policy : null;
  const content: Content = {
    reading,
    attributes: await readAttributes(source, reading),
    lines: new Map([
      ...(await readLines(source, chosen.policy, reading)),
      ...(basePolicy === null ? [] : await readLines(source, basePolicy, reading)),
    ]),
    entryModes: await readEntryModes(source, reading),
    unseen: [],
    ancestor: null,
  };
  const now = await productNow(db);
  const run = await recordedRun(deps, repository, pull);
  const judged = run === null ? null : await judgeRun(deps, db, run, now);
  if (judged?.facts.ledger != null)
    throw new Fault(
      judged.facts.ledger.code,
      `the rows of run ${run?.id} decide nothing: ${judged.facts.ledger.detail}`,
    );
  const rows: readonly AnyRow[] = run === null ? [] : (await verifyRun(deps, run)).rows;
  const stored = run === null ? [] : await listBlocks(db, run.id);
  const history = await readHistory(db, repository.id, chosen.policy, content.reading);
  const plan = planHead(content, chosen.policy, chosen.hash, pull.body, stored, rows, history);
  const preview = decided(repository, pull, content, { judged, basePolicy, chosen, plan, rows, now });
  const state = judged?.state ?? null;
  const open = plan.files.flatMap(({ key }) =>
    key === null || state?.keys.get(key)?.counted === true ? [] : [key],
  );
  const elsewhere = await reviewedElsewhere(deps, repository, run?.id ?? '', chosen.policy, open);
  return {
    kind: 'simulated',
    pull,
    mergeBase: reading.mergeBase,
    policy: { hash: chosen.hash, isBase: present.state === 'valid' && present.hash === chosen.hash },
    recorded: run === null || state === null ? null : { run: run.id, seq: state.seq },
    plan,
    preview,
    tickets: planTickets({
      policy: chosen.policy,
      files: plan.files,
      treatments: preview.after.map(({ treatment }) => treatment),
      keys: state?.keys ?? new Map(),
      elsewhere,
    }),
  };
}

interface Chosen {
  readonly policy: Policy;
  readonly hash: string;
}

async function choose(
  source: Source,
  present: BasePolicy,
  given: Buffer | null,
): Promise<Chosen | { readonly errors: NoPolicy['errors'] }> {
  if (given === null && present.state === 'valid') return present;
  if (given === null && present.state === 'absent') return { errors: [] };
  const { git, repository, url, token } = source;
  const file = given ?? (await git.readPath(repository, url, token, present.commit, POLICY_PATH));
  const own = parsePolicy(file ?? Buffer.alloc(0));
  if (file === null || !own.ok) return { errors: own.ok ? [] : own.errors };
  const { bytes } = await heldPolicy(source.deps.database.db, repository.installationId, file);
  const reading = parsePolicy(bytes);
  if (!reading.ok) return { errors: reading.errors };
  return {
    policy: reading.policy,
    hash: createHash('sha256').update(bytes).digest('hex'),
  };
}

/** The newest run of the pull request, if what it was last told of is this head into this base. */
async function recordedRun({ database }: Deps, repository: Repository, pull: PullInfo): Promise<Run | null> {
  const run = await findNewestRun(database.db, repository.id, pull.number);
  return run !== null && run.toldHead === pull.head && run.baseRef === pull.baseRef ? run : null;
}

/**
 * Keys that other runs of the repository were reviewed with, by rows that verify (TKT-4). What is taken over
 * is held against GitHub besides; this only says what need not be paid for again.
 */
async function reviewedElsewhere(
  deps: Deps,
  { id, installationId }: Repository,
  runId: string,
  policy: Policy,
  keys: readonly string[],
): Promise<Set<string>> {
  const found = new Set<string>();
  if (policy.review.reuse === 'off') return found;
  const { db } = deps.database;
  const wanted = new Map<string, Set<string>>();
  const place = { installationId, repositoryId: id, runId };
  for (const one of await listReviewsElsewhere(db, place, keys, MOST_PAIRS))
    wanted.set(one.runId, (wanted.get(one.runId) ?? new Set<string>()).add(one.key));
  for (const [there, keysThere] of wanted) {
    const run = await findRun(db, there);
    if (run === null || run.next !== null) continue;
    const { verdict, rows } = await verifyRun(deps, run);
    if (verdict.kind !== 'intact') continue;
    for (const [key] of reviewsOf(rows, keysThere, 'stays_open')) found.add(key);
  }
  return found;
}

interface Known {
  readonly judged: Judged | null;
  readonly basePolicy: Policy | null;
  readonly chosen: Chosen;
  readonly plan: HeadPlan;
  readonly rows: readonly AnyRow[];
  readonly now: Date;
}

/** The verdict as the rows decide it, or as if the chosen policy were the base's. */
function decided(
  repository: Repository,
  pull: PullInfo,
  { reading, lines }: Content,
  { judged, basePolicy, chosen, plan, rows, now }: Known,
): Preview {
  const isRead = judged !== null && presentHead(judged.state)?.head === pull.head;
  const preview = decideProposed({
    rows,
    opening: isRead ? [] : openingOf(repository, pull, plan),
    present: isRead && basePolicy !== null ? standing(judged, basePolicy) : null,
    proposed: { policy: chosen.policy, hash: chosen.hash, files: plan.files },
    head: {
      head: reading.head,
      base_ref: pull.baseRef,
      base: reading.base,
      merge_base: reading.mergeBase,
      prior: null,
      ancestor: null,
      draft: pull.draft,
      commits: reading.commits.length,
    },
    facts: judged?.facts ?? noFacts(pull, chosen.policy, now),
    lines,
    now: now.getTime(),
  });
  // under the very policy of the rows they decide as they stand: their deadlines do not begin anew
  const same = isRead && judged.state.policy?.hash === chosen.hash;
  return same
    ? {
        ...preview,
        decision: judged.decision,
        difference: { decision: judged.decision, paths: [], come: [], go: [] },
      }
    : preview;
}
