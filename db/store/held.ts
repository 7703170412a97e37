/** Tickets of blocks that wait for another block (BLK-5, LSE-1): `held` until it passed, so that no lease looks for them. */
import { sql } from 'drizzle-orm';
import type { Reader, Tx } from '../client.ts';

/** Takes pending tickets out of the queue until what their block comes after has passed. Their lanes are free: call `fillWindows` after. */
export async function holdTickets(tx: Tx, ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return;
  await tx.execute(sql`
    update ticket set state = 'held', lane = null
    where id = any(${sql.param(ids)}::text[]) and state = 'pending'`);
}

/** Puts held tickets into the queue; they wait from now. Call `fillWindows` after. */
export async function freeTickets(tx: Tx, ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return;
  await tx.execute(sql`
    update ticket set state = 'pending', queued_at = cs_now()
    where id = any(${sql.param(ids)}::text[]) and state = 'held'`);
}

/**
 * Whether a run's tickets are not as its blocks stand: one can be leased whose block waits, one is held
 * whose block does not, or a path that may go on has none, since it was leased when others were cut.
 */
export async function isLoose(reader: Reader, runId: string): Promise<boolean> {
  const { rows } = await reader.execute<{ found: boolean }>(sql`
    select exists (
      select from file f join block b on b.run_id = f.run_id and b.id = f.block_id
        left join ticket t on t.run_id = f.run_id and t.key = f.key
      where f.run_id = ${runId} and f.level <> 'L0' and f.key is not null
        and case when b.status = 'waiting' then t.state = 'pending'
            when t.id is null then true
            else t.state = 'held' and not exists (select from ticket l where l.run_id = t.run_id
              and l.state = 'leased' and sha256(l.path) = sha256(t.path)) end) as found`);
  return rows[0]?.found === true;
}
