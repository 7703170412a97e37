import { listBlocks } from '../../db/store/block.ts';
import { findRepository, type Repository } from '../../db/store/installation.ts';
import { addJob } from '../../db/store/job.ts';
import { dropPreview, putPreview } from '../../db/store/preview.ts';
import { findNewestRun, LIVE_STATUSES, productNow, type Run } from '../../db/store/run.ts';
import { PREVIEW_NAME, publishKey } from '../domain/check.ts';
import type { GateFacts } from '../domain/gate/decide.ts';
import type { AnyRow } from '../domain/ledger/row.ts';
import { pathKey } from '../domain/path.ts';
import { POLICY_PATH, type Policy, parsePolicy } from '../domain/policy.ts';
import { type DecidedSet, decideProposed, type PreviewInput } from '../domain/preview.ts';
import { presentHead } from '../domain/run-state/state.ts';
import { heldWords } from '../domain/setting/hold.ts';
import { invalidPreview, type PreviewText, validPreview } from '../domain/summary/preview.ts';
import type { GitHub, PullInfo } from '../github/port.ts';
import type { Deps } from './deps.ts';
import { heldPolicy } from './held-policy.ts';
import { type Judged, judgeRun } from './judge-run.ts';
import { type HeadPlan, planHead } from './sync-run/plan.ts';
import {
  type Content,
  readAttributes,
  readBasePolicy,
  readEntryModes,
  readLines,
  type Source,
  sourceOf,
} from './sync-run/read.ts';
import { readHistory } from './sync-run/read-history.ts';
import { openedData } from './sync-run/record-blocks.ts';
import { verifyRun } from './verify-run.ts';

/** Which pull request. */
export interface PreviewPolicyInput {
  readonly repository: string;
  readonly pull: string;
}

/** What came of it; `none`: the pull request is closed, or brings no policy. */
export interface PreviewPolicyOutcome {
  readonly kind: 'previewed' | 'unchanged' | 'none';
  readonly conclusion: 'success' | 'failure' | null;
}

/**
 * Says of a pull request that adds or changes the policy whether it is valid, and what it would decide
 * for this very pull request (RUN-9): by the same gate, over the present rows. It needs no run: a branch
 * that is not enrolled yet has none. Nothing is recorded and nothing spent.
 *
 * Reads: repository, run, verified rows, blocks. Writes: the preview, a job that publishes it. Calls:
 * GitHub (pull, branch, merge base) and git. May fail with: `git_unavailable`, `no_merge_base`, GitHub's.
 */
export async function previewPolicy(deps: Deps, input: PreviewPolicyInput): Promise<PreviewPolicyOutcome> {
  const { db } = deps.database;
  const repository = await findRepository(db, input.repository);
  if (repository === null || repository.status !== 'active') return { kind: 'none', conclusion: null };
  const github = await deps.github.installation(repository.installationId);
  const pull = await github.getPull(repository, input.pull);
  if (pull.state === 'closed') return { kind: 'none', conclusion: null };
  const text = await previewText(deps, repository, github, pull);
  const changed = await deps.database.transaction(async (tx) => {
    if (text === null) return dropPreview(tx, repository.id, pull.number);
    const put = await putPreview(tx, {
      repositoryId: repository.id,
      pull: pull.number,
      sha: pull.head,
      ...text,
    });
    const unit = { repository: repository.id, sha: pull.head, name: PREVIEW_NAME };
    const key = publishKey(repository.id, pull.head, PREVIEW_NAME);
    await addJob(tx, 'publish-checks', unit, { key, priority: 4 });
    return put;
  });
  const kind = text === null ? 'none' : changed ? 'previewed' : 'unchanged';
  deps.log.info({ repository: repository.id, pull: pull.number, kind }, 'preview-policy');
  return { kind, conclusion: text?.conclusion ?? null };
}

/** What is to be said of the head; null where it brings no policy. */
async function previewText(
  deps: Deps,
  repository: Repository,
  github: GitHub,
  pull: PullInfo,
): Promise<PreviewText | null> {
  const source = await sourceOf(deps, github, repository);
  const base = (await github.getBranchHead(repository, pull.baseRef)) ?? pull.base;
  const { git, url, token } = source;
  const reading = await git.readPull({
    repository,
    cloneUrl: url,
    token,
    pull: pull.number,
    head: pull.head,
    base,
    mergeBase: await github.getMergeBase(repository, base, pull.head),
    commits: pull.commits,
  });
  if (!reading.files.some((file) => pathKey(file.path) === POLICY_PATH && file.blobHead !== null))
    return null;
  const bytes = await git.readPath(repository, url, token, pull.head, POLICY_PATH);
  if (bytes === null) return null;
  const own = parsePolicy(bytes);
  if (!own.ok) return invalidPreview(own.errors, pull.baseRef);
  const { bytes: counts, held } = await heldPolicy(deps.database.db, repository.installationId, bytes);
  const proposed = parsePolicy(counts);
  if (!proposed.ok) return invalidPreview(proposed.errors, pull.baseRef);
  const present = await readBasePolicy(source, base);
  const content: Content = {
    reading,
    attributes: await readAttributes(source, reading),
    lines: new Map([
      ...(await readLines(source, proposed.policy, reading)),
      ...(present.state === 'valid' ? await readLines(source, present.policy, reading) : []),
    ]),
    entryModes: await readEntryModes(source, reading),
    unseen: [],
    ancestor: null,
  };
  const preview = decideProposed(
    await inputOf(
      deps,
      source,
      pull,
      content,
      proposed.policy,
      present.state === 'valid' ? present.policy : null,
    ),
  );
  return validPreview(
    preview,
    [...own.notes.map((note) => note.message), ...held.map(heldWords)],
    pull.baseRef,
  );
}

async function inputOf(
  deps: Deps,
  { repository }: Source,
  pull: PullInfo,
  content: Content,
  policy: Policy,
  basePolicy: Policy | null,
): Promise<PreviewInput> {
  const { db } = deps.database;
  const now = await productNow(db);
  const run = await liveRun(deps, repository, pull);
  const judged = run === null ? null : await judgeRun(deps, db, run, now);
  // rows that do not verify count for nothing here either
  const rows: readonly AnyRow[] =
    run === null || judged?.verified == null ? [] : (await verifyRun(deps, run)).rows;
  const stored = run === null ? [] : await listBlocks(db, run.id);
  const hash = 'proposed';
  const history = await readHistory(db, repository.id, policy, content.reading);
  const plan = planHead(content, policy, hash, pull.body, stored, rows, history);
  const read = judged !== null && presentHead(judged.state)?.head === pull.head;
  const { head, mergeBase, commits } = content.reading;
  return {
    rows,
    opening: read ? [] : openingOf(repository, pull, plan),
    present: read && basePolicy !== null ? standing(judged, basePolicy) : null,
    proposed: { policy, hash, files: plan.files },
    head: {
      head,
      base_ref: pull.baseRef,
      base: content.reading.base,
      merge_base: mergeBase,
      prior: null,
      ancestor: null,
      draft: pull.draft,
      commits: commits.length,
    },
    facts: judged?.facts ?? noFacts(pull, policy, now),
    lines: content.lines,
    now: now.getTime(),
  };
}

async function liveRun(deps: Deps, repository: Repository, pull: PullInfo): Promise<Run | null> {
  const run = await findNewestRun(deps.database.db, repository.id, pull.number);
  const live = LIVE_STATUSES.some((status) => status === run?.status);
  return run !== null && live && run.toldHead === pull.head && run.baseRef === pull.baseRef ? run : null;
}

/** What stands of a run that was read, to compare with. */
export function standing(judged: Judged, policy: Policy): DecidedSet & { decision: Judged['decision'] } {
  return { policy, files: [...judged.state.files.values()], decision: judged.decision };
}

/** What the first reading of a run would say of blocks and consent. */
export function openingOf(repository: Repository, pull: PullInfo, plan: HeadPlan): PreviewInput['opening'] {
  const consent = { rule: 'same_repository', scope: 'author', head: pull.head };
  return [
    ...plan.blocks.map((planned) => ({
      kind: 'block.opened' as const,
      data: openedData(planned),
      block: planned.block.id,
    })),
    ...(pull.headRepositoryId === repository.id
      ? [{ kind: 'run.allowed' as const, data: consent, block: null }]
      : []),
  ];
}

/** The operational facts of a pull request that has no run. */
export function noFacts(pull: PullInfo, policy: Policy, now: Date): GateFacts {
  return {
    head: pull.head,
    baseRef: pull.baseRef,
    headAtMs: now.getTime(),
    draft: pull.draft,
    mode: policy.mode,
    openTickets: 0,
    reasons: [],
    ledger: null,
  };
}
