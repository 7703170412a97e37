/** What resident pools run of verify commands (VER-1): what waits for their runners, and how it is given out. */
import { and, eq, sql } from 'drizzle-orm';
import type { Reader, Tx } from '../client.ts';
import { receipt } from '../schema/receipt.ts';
import type { StoredReceipt } from './receipt.ts';
import { findReceiptLease, type ReceiptLease } from './receipt-lease.ts';
import { SPENDS } from './waiting.ts';

/** A receipt that a pool may run now, with what tells where it is. */
export interface ReceiptWork {
  readonly runId: string;
  readonly blockId: string;
  readonly id: string;
  readonly head: string;
  readonly commands: readonly string[];
  readonly definition: string;
  readonly installationId: string;
  readonly repositoryId: string;
  readonly pull: string | null;
  readonly base: string;
  readonly policyHash: string | null;
  readonly generation: number;
}

/** What has to hold for a receipt to be given to a runner of the pool: `c` the receipt, `r` its run. */
const leasable = (pool: string) => sql`
  c.pool = ${pool} and c.lease_id is null and c.state in ('reserved', 'waiting')
  and (c.not_before is null or c.not_before <= cs_now())
  and r.id = c.run_id and r.head = c.head and ${SPENDS}
  and not exists (select from setting k where k.key = 'kill' and k.installation_id in (0, r.installation_id))`;

/**
 * What a pool may run now, at most `limit`: of the installations it is registered for the one that was served
 * longest ago first, then runs in order of their start.
 */
export async function listReceiptWork(reader: Reader, pool: string, limit: number): Promise<ReceiptWork[]> {
  const { rows } = await reader.execute<{
    run_id: string;
    block_id: string;
    id: string;
    head: string;
    commands: string[];
    definition: string;
    installation_id: string;
    repository_id: string;
    pull: string | null;
    base: string;
    policy_hash: string | null;
    generation: string;
  }>(sql`
    select c.run_id, c.block_id, c.id, c.head, c.commands, c.definition, r.installation_id::text, r.repository_id::text,
           r.pull::text, r.base, r.policy_hash, r.generation::text
    from receipt c, run r
      join resident_scope s on s.installation_id = r.installation_id
        and (s.repositories is null or s.repositories ? r.repository_id::text)
      join repository p on p.id = r.repository_id and p.setup_cause is null and p.status = 'active'
    where ${leasable(pool)} and s.pool = ${pool} and r.base is not null
    order by s.served_at nulls first, r.opened_at, c.reserved_at, c.run_id, c.block_id, c.id limit ${limit}`);
  return rows.map((row) => ({
    runId: row.run_id,
    blockId: row.block_id,
    id: row.id,
    head: row.head,
    commands: row.commands,
    definition: row.definition,
    installationId: row.installation_id,
    repositoryId: row.repository_id,
    pull: row.pull,
    base: row.base,
    policyHash: row.policy_hash,
    generation: Number(row.generation),
  }));
}

/** What a grant is made of. */
export interface ReceiptGrant {
  readonly id: string;
  readonly tokenHash: Buffer;
  readonly runnerId: string;
  readonly request: string | null;
  readonly command: string;
  readonly ttlMs: number;
}

/** Gives a receipt to a runner: one conditional statement, of two runners one gets it; null: it is not to be had any more. */
export async function grantReceipt(
  reader: Reader,
  pool: string,
  work: ReceiptWork,
  grant: ReceiptGrant,
): Promise<ReceiptLease | null> {
  const { rows } = await reader.execute<{ id: string }>(sql`
    with taken as (
      update receipt c set lease_id = ${grant.id}, grant_no = c.grant_no + 1 from run r
      where c.run_id = ${work.runId} and c.block_id = ${work.blockId} and c.id = ${work.id}
        and r.generation = ${work.generation} and ${leasable(pool)}
      returning c.grant_no)
    insert into receipt_lease (id, run_id, block_id, receipt_id, head, command, runner_id, token_hash, grant_no, generation,
      request, granted_at, expires_at)
    select ${grant.id}, ${work.runId}, ${work.blockId}, ${work.id}, ${work.head}, ${grant.command}, ${grant.runnerId},
      ${grant.tokenHash}, taken.grant_no, ${work.generation}, ${grant.request}, cs_now(),
      cs_now() + ${grant.ttlMs} * interval '1 millisecond'
    from taken returning id`);
  return rows.length === 0 ? null : findReceiptLease(reader, grant.id);
}

/** What rows say of a receipt that a pool runs, in its projection; `offer` names the pool that may lease it from now on. */
export async function setPooledReceipt(
  tx: Tx,
  key: { readonly runId: string; readonly blockId: string; readonly id: string },
  set: Partial<Pick<StoredReceipt, 'state' | 'why' | 'seq' | 'pool' | 'losses'>> & {
    readonly afterMs?: number | null;
  },
): Promise<void> {
  const { afterMs, ...rest } = set;
  const notBefore =
    afterMs === undefined
      ? {}
      : { notBefore: afterMs === null ? null : sql`cs_now() + ${afterMs} * interval '1 millisecond'` };
  await tx
    .update(receipt)
    .set({ ...rest, ...notBefore })
    .where(and(eq(receipt.runId, key.runId), eq(receipt.blockId, key.blockId), eq(receipt.id, key.id)));
}

/** Takes what waits back from its pool: receipts of a run, but for those of the head `but`. */
export async function withdrawReceipts(tx: Tx, runId: string, but: string | null): Promise<void> {
  await tx
    .update(receipt)
    .set({ pool: null })
    .where(
      and(
        eq(receipt.runId, runId),
        sql`${receipt.pool} is not null`,
        but === null ? undefined : sql`${receipt.head} <> ${but}`,
      ),
    );
}

/** What lives of a pool: its runners that were heard of within `freshMs`, and those of them with a container runtime. */
export async function countPoolRunners(
  reader: Reader,
  pool: string,
  freshMs: number,
): Promise<{ readonly runners: number; readonly containers: number }> {
  const { rows } = await reader.execute<{ runners: number; containers: number }>(sql`
    select count(*)::int as runners, count(runtime)::int as containers from runner
    where pool = ${pool} and repository_id is null and ended_at is null
      and heartbeat_at > cs_now() - ${freshMs} * interval '1 millisecond'`);
  return rows[0] ?? { runners: 0, containers: 0 };
}
