/** Blocks of a planned head: opened, said again, attempted anew, dropped (BLK-2…BLK-5). Rows first, then their projection. */
import { putBlocks, type StoredBlock } from '../../../db/store/block.ts';
import { putTexts, textRef } from '../../../db/store/text.ts';
import { waitingBlocks } from '../../domain/block/dependency.ts';
import { commitsDigest } from '../../domain/block/prior.ts';
import type { RowData } from '../../domain/ledger/row-kinds.ts';
import type { RunUnit } from '../append-rows.ts';
import type { HeadPlan, PlannedBlock } from './plan.ts';
import type { Append } from './record.ts';

/** As many commits as leave a block's row room for all it declares; their digest proves the rest of the list. */
const MOST_COMMITS = 100;

/** What was said of blocks. */
export interface SaidBlocks {
  readonly appended: boolean;
  /** Blocks whose words or commits changed. */
  readonly pushed: ReadonlySet<string>;
  /** Texts that the rows name by digest. */
  readonly texts: ReadonlySet<string>;
}

/** Appends what changed of the blocks and stores them; true when a row was appended. */
export async function recordBlocks(
  unit: RunUnit,
  append: Append,
  plan: HeadPlan,
  stored: readonly StoredBlock[],
): Promise<boolean> {
  const before = new Map(stored.map((block) => [block.id, block]));
  const { appended, pushed, texts } = sayBlocks(append, plan);
  await putTexts(unit.tx, [...texts]);
  await putBlocks(unit.tx, [...project(unit, plan, before, pushed)]);
  return appended;
}

/** Appends the rows of a planned head's blocks; the same head again says nothing. */
export function sayBlocks(append: Append, plan: Pick<HeadPlan, 'blocks' | 'dropped'>): SaidBlocks {
  const texts = new Set<string>();
  const pushed = new Set<string>();
  let appended = false;
  for (const planned of plan.blocks) {
    const { block, detail, known } = planned;
    const data = openedData(planned);
    const sameWords = known !== null && wordsOf(known.said) === wordsOf(data);
    const sameCommits = known !== null && known.commits.join() === block.commits.join();
    const risen = known !== null && block.attempt > known.attempt;
    if (risen) {
      append('block.attempt', block.id, {
        block: block.id,
        attempt: block.attempt,
        ...commitsOf(planned),
        kept_claims: planned.keptClaims,
      });
      appended = true;
    }
    // said again whenever it changed; an attempt says its commits itself
    if (block.known !== 'open' || !sameWords || (!sameCommits && !risen)) {
      for (const text of [block.title, ...detail.accept, ...detail.accept_human]) texts.add(text);
      append('block.opened', block.id, data);
      appended = true;
    }
    if (block.known !== 'open' || !sameWords || !sameCommits) pushed.add(block.id);
  }
  for (const block of plan.dropped) {
    append('block.ended', block.id, { block: block.id, status: 'dropped' });
    appended = true;
  }
  return { appended, pushed, texts };
}

/** What differs from what is stored. A push opens a block again; decide-gate says what becomes of it (BLK-5). */
function* project(
  unit: RunUnit,
  plan: HeadPlan,
  before: ReadonlyMap<string, StoredBlock>,
  pushed: ReadonlySet<string>,
): Generator<StoredBlock> {
  const statusOf = (id: string): StoredBlock['status'] => {
    const status = before.get(id)?.status ?? 'open';
    return pushed.has(id) || status === 'dropped' ? 'open' : status;
  };
  const waiting = waitingBlocks(
    plan.blocks.map(({ block, detail }) => ({ id: block.id, after: detail.after })),
    (id) => statusOf(id) === 'passed',
  );
  for (const [position, planned] of plan.blocks.entries()) {
    const { id } = planned.block;
    const prior = before.get(id);
    const status = waiting.has(id) ? 'waiting' : statusOf(id);
    const now = storedBlock(unit, planned, position, status, prior);
    if (prior === undefined || JSON.stringify(comparable(prior)) !== JSON.stringify(comparable(now)))
      yield now;
  }
  for (const { id } of plan.dropped) {
    const prior = before.get(id);
    if (prior !== undefined) yield { ...prior, status: 'dropped' };
  }
}

/** Order of keys is Postgres's own in a jsonb. */
function comparable(block: StoredBlock): unknown {
  const detail = Object.entries(block.detail).sort(([a], [b]) => (a < b ? -1 : 1));
  const { id, position, identity, title, named, kind, level, status, attempt, commits } = block;
  return [id, position, identity, title, named, kind, level, status, attempt, commits, detail];
}

/** What a block's row says beside its attempt and commits. */
function wordsOf(data: RowData<'block.opened'>): string {
  const { block, title, kind, level, named, identity, owns, was, after, accept, accept_human, notes } = data;
  const told = notes.map((note) => [note.code, note.detail]);
  return JSON.stringify([
    block,
    title,
    kind,
    level,
    named,
    identity,
    owns,
    was ?? null,
    after,
    accept,
    accept_human,
    told,
  ]);
}

function commitsOf({
  block,
}: PlannedBlock): Pick<RowData<'block.attempt'>, 'commits' | 'commit_count' | 'commits_digest' | 'seed'> {
  const { commits, seed } = block;
  return {
    commits: commits.slice(0, MOST_COMMITS),
    commit_count: commits.length,
    ...(commits.length > MOST_COMMITS ? { commits_digest: commitsDigest(commits) } : {}),
    ...(seed.author === null ? {} : { seed: { ...seed, author: seed.author } }),
  };
}

/** A planned block as its row says it. */
export function openedData(planned: PlannedBlock): RowData<'block.opened'> {
  const { block, kind, level, detail } = planned;
  return {
    block: block.id,
    title: textRef(block.title),
    attempt: block.attempt,
    kind,
    level,
    named: block.named,
    identity: block.identity,
    ...commitsOf(planned),
    owns: [...detail.owns],
    was: [...detail.was],
    after: [...detail.after],
    accept: detail.accept.map(textRef),
    accept_human: detail.accept_human.map(textRef),
    notes: detail.notes.map((note) => ({ ...note })),
  };
}

function storedBlock(
  unit: RunUnit,
  { block, kind, level, detail }: PlannedBlock,
  position: number,
  status: StoredBlock['status'],
  prior: StoredBlock | undefined,
): StoredBlock {
  return {
    runId: unit.run.id,
    id: block.id,
    position,
    identity: block.identity,
    title: block.title,
    named: block.named,
    kind,
    level,
    status,
    attempt: block.attempt,
    commits: [...block.commits],
    detail: { ...detail },
    startedAt: prior?.startedAt ?? unit.now,
  };
}
