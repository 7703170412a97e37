/** Paths that blocks claimed (OWN-4…OWN-7): a projection of claim rows, which alone are authoritative (OWN-6). */
import { and, eq, sql } from 'drizzle-orm';
import type { Tx } from '../client.ts';
import { claim } from '../schema/run.ts';

/** A claim as stored; `path` is bytes. */
export type StoredClaim = typeof claim.$inferSelect;

/** Adds claims; a path claimed by another block before changes hands (last row wins, OWN-6). */
export async function putClaims(tx: Tx, claims: readonly StoredClaim[]): Promise<void> {
  if (claims.length === 0) return;
  const rows = claims.map((c) => ({
    run_id: c.runId,
    block_id: c.blockId,
    path: `\\x${c.path.toString('hex')}`,
    entry: c.entry,
    auto: c.auto,
    seq: c.seq,
  }));
  await tx.execute(sql`
    insert into claim (run_id, block_id, path, entry, auto, seq)
    select run_id, block_id, path, entry, auto, seq
      from json_populate_recordset(null::claim, ${JSON.stringify(rows)}::json)
    on conflict (run_id, sha256(path)) do update
      set block_id = excluded.block_id, entry = excluded.entry, auto = excluded.auto, seq = excluded.seq`);
}

/** Removes a released claim; false when the block had none on that path. */
export async function removeClaim(tx: Tx, runId: string, blockId: string, path: Buffer): Promise<boolean> {
  const removed = await tx
    .delete(claim)
    .where(
      and(eq(claim.runId, runId), eq(claim.blockId, blockId), sql`sha256(${claim.path}) = sha256(${path})`),
    )
    .returning({ seq: claim.seq });
  return removed.length > 0;
}
