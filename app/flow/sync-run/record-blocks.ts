/** Blocks of a planned head: opened, said again, attempted anew, dropped (BLK-2…BLK-4). */
import { createHash } from 'node:crypto';
import { putBlocks, type StoredBlock } from '../../../db/store/block.ts';
import { putTexts, textRef } from '../../../db/store/text.ts';
import type { RowData } from '../../domain/ledger/row-kinds.ts';
import type { RunUnit } from '../append-rows.ts';
import type { HeadPlan, PlannedBlock } from './plan.ts';
import type { Append } from './record.ts';

/** As many commits as leave a block's row room for all it declares; the count beside says how many there are. */
const MOST_COMMITS = 150;

/** Appends what changed of the blocks and stores them; true when a row was appended. */
export async function recordBlocks(
  unit: RunUnit,
  append: Append,
  plan: HeadPlan,
  stored: readonly StoredBlock[],
): Promise<boolean> {
  const before = new Map(stored.map((block) => [block.id, block]));
  const changed: StoredBlock[] = [];
  const texts = new Set<string>();
  let appended = false;
  for (const [position, planned] of plan.blocks.entries()) {
    const { block, detail } = planned;
    const prior = before.get(block.id);
    const data = openedData(planned);
    const stated = digest({ ...data, attempt: 0, commits: [], commit_count: 0 });
    const risen = prior !== undefined && block.attempt > prior.attempt;
    const sameCommits = prior !== undefined && prior.commits.join() === block.commits.join();
    const sameWords = (prior?.detail as { stated?: string } | undefined)?.stated === stated;
    if (risen) {
      append('block.attempt', block.id, {
        block: block.id,
        attempt: block.attempt,
        commits: block.commits.slice(0, MOST_COMMITS),
        commit_count: block.commits.length,
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
    if (
      prior === undefined ||
      !sameWords ||
      !sameCommits ||
      prior.status === 'dropped' ||
      prior.position !== position
    )
      changed.push(storedBlock(unit, planned, position, stated, prior));
  }
  for (const block of plan.dropped) {
    append('block.ended', block.id, { block: block.id, status: 'dropped' });
    changed.push({ ...block, status: 'dropped' });
    appended = true;
  }
  await putTexts(unit.tx, [...texts]);
  await putBlocks(unit.tx, changed);
  return appended;
}

function openedData({ block, kind, level, detail }: PlannedBlock): RowData<'block.opened'> {
  return {
    block: block.id,
    title: textRef(block.title),
    attempt: block.attempt,
    kind,
    level,
    named: block.named,
    identity: block.identity,
    commits: block.commits.slice(0, MOST_COMMITS),
    commit_count: block.commits.length,
    owns: [...detail.owns],
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
  stated: string,
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
    status: 'open',
    attempt: block.attempt,
    commits: [...block.commits],
    detail: { ...detail, stated },
    startedAt: prior?.startedAt ?? unit.now,
  };
}

function digest(value: unknown): string {
  return createHash('sha256').update(JSON.stringify(value)).digest('hex');
}
