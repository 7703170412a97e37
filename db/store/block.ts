/** Blocks of a run: a projection of its rows (BLK-1…BLK-6). */
import { asc, eq, sql } from 'drizzle-orm';
import type { Reader, Tx } from '../client.ts';
import { block } from '../schema/run.ts';

/** A block as stored. */
export type StoredBlock = typeof block.$inferSelect;

/** Blocks of a run in order of position, dropped ones last. */
export async function listBlocks(tx: Reader, runId: string): Promise<StoredBlock[]> {
  return tx
    .select()
    .from(block)
    .where(eq(block.runId, runId))
    .orderBy(sql`${block.status} = 'dropped'`, asc(block.position), asc(block.id));
}

/** Statuses of a run's blocks by id, without all that is told of them. */
export async function listStatuses(tx: Reader, runId: string): Promise<Map<string, StoredBlock['status']>> {
  const rows = await tx
    .select({ id: block.id, status: block.status })
    .from(block)
    .where(eq(block.runId, runId));
  return new Map(rows.map((row) => [row.id, row.status]));
}

/** Adds or replaces blocks by id; `started_at` of a known block stays what it was (LSE-1 orders by it). */
export async function putBlocks(tx: Tx, blocks: readonly StoredBlock[]): Promise<void> {
  if (blocks.length === 0) return;
  // one parameter however many blocks: a list of 300 would cost 4,000 of Postgres's 65,535
  await tx.execute(sql`
    insert into block (run_id, id, position, identity, title, named, kind, level, status, attempt, commits, detail, started_at)
    select run_id, id, position, identity, title, named, kind, level, status, attempt, commits, detail, started_at
      from json_populate_recordset(null::block, ${JSON.stringify(blocks.map(record))}::json)
    on conflict (run_id, id) do update set
      position = excluded.position, identity = excluded.identity, title = excluded.title, named = excluded.named,
      kind = excluded.kind, level = excluded.level, status = excluded.status, attempt = excluded.attempt,
      commits = excluded.commits, detail = excluded.detail`);
}

/** Changes nothing but the status of blocks (BLK-5). */
export async function setStatuses(
  tx: Tx,
  runId: string,
  statuses: readonly (readonly [id: string, status: StoredBlock['status']])[],
): Promise<void> {
  if (statuses.length === 0) return;
  await tx.execute(sql`
    update block set status = s.value from jsonb_each_text(${JSON.stringify(Object.fromEntries(statuses))}::jsonb) s
    where block.run_id = ${runId} and block.id = s.key`);
}

function record(b: StoredBlock): Record<string, unknown> {
  return {
    run_id: b.runId,
    id: b.id,
    position: b.position,
    identity: b.identity,
    title: b.title,
    named: b.named,
    kind: b.kind,
    level: b.level,
    status: b.status,
    attempt: b.attempt,
    commits: b.commits,
    detail: b.detail,
    started_at: b.startedAt.toISOString(),
  };
}
