/** Changed paths of a run's present head: a projection of its decision rows (BLK-6). */
import { and, asc, eq, sql } from 'drizzle-orm';
import type { Reader, Tx } from '../client.ts';
import { file } from '../schema/run.ts';

/** A changed path as stored; `path` and `fromPath` are bytes. */
export type StoredFile = typeof file.$inferSelect;

/** Files of the present head in order of path bytes. */
export async function listFiles(tx: Reader, runId: string): Promise<StoredFile[]> {
  return tx.select().from(file).where(eq(file.runId, runId)).orderBy(asc(file.path));
}

/** One file of the present head, or null. */
export async function findFile(tx: Reader, runId: string, path: Buffer): Promise<StoredFile | null> {
  const [found] = await tx
    .select()
    .from(file)
    .where(and(eq(file.runId, runId), sql`sha256(${file.path}) = sha256(${path})`))
    .limit(1);
  return found ?? null;
}

/** Adds or replaces files by path. */
export async function putFiles(tx: Tx, files: readonly StoredFile[]): Promise<void> {
  if (files.length === 0) return;
  const rows = files.map((f) => ({
    run_id: f.runId,
    path: hex(f.path),
    from_path: f.fromPath === null ? null : hex(f.fromPath),
    status: f.status,
    mode_base: f.modeBase,
    mode_head: f.modeHead,
    blob_base: f.blobBase,
    blob_head: f.blobHead,
    kind: f.kind,
    level: f.level,
    asked: f.asked,
    reason: f.reason,
    lines: f.lines,
    block_id: f.blockId,
    ownership: f.ownership,
    key: f.key,
  }));
  // one parameter: 4,000 files of 15 columns would pass Postgres's 65,535 parameters
  await tx.execute(sql`
    insert into file (run_id, path, from_path, status, mode_base, mode_head, blob_base, blob_head, kind, level,
                      asked, reason, lines, block_id, ownership, key)
    select run_id, path, from_path, status, mode_base, mode_head, blob_base, blob_head, kind, level,
           asked, reason, lines, block_id, ownership, key
      from json_populate_recordset(null::file, ${JSON.stringify(rows)}::json)
    on conflict (run_id, sha256(path)) do update set
      from_path = excluded.from_path, status = excluded.status, mode_base = excluded.mode_base,
      mode_head = excluded.mode_head, blob_base = excluded.blob_base, blob_head = excluded.blob_head,
      kind = excluded.kind, level = excluded.level, asked = excluded.asked, reason = excluded.reason, lines = excluded.lines,
      block_id = excluded.block_id, ownership = excluded.ownership, key = excluded.key`);
}

/** Removes files that are no longer changed. */
export async function removeFiles(tx: Tx, runId: string, paths: readonly Buffer[]): Promise<void> {
  if (paths.length === 0) return;
  await tx.execute(sql`
    delete from file where run_id = ${runId} and path in
      (select decode(value, 'hex') from json_array_elements_text(${JSON.stringify(
        paths.map((p) => p.toString('hex')),
      )}::json) as value)`);
}

/** Postgres's text form of bytes. */
function hex(bytes: Buffer): string {
  return `\\x${bytes.toString('hex')}`;
}
