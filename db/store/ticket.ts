/** Tickets (TKT-1…TKT-3). The caller holds the run's lock (withRun) for everything that writes. */
import { and, asc, eq, inArray, notInArray, sql } from 'drizzle-orm';
import type { Reader, Tx } from '../client.ts';
import { ticket } from '../schema/ticket.ts';

/** A ticket as stored. */
export type Ticket = typeof ticket.$inferSelect;
/** What is needed to add a ticket. */
export type NewTicket = Pick<
  Ticket,
  | 'id'
  | 'runId'
  | 'installationId'
  | 'repositoryId'
  | 'blockId'
  | 'path'
  | 'fromPath'
  | 'key'
  | 'round'
  | 'level'
  | 'policyHash'
  | 'spec'
  | 'reviewers'
  | 'provider'
  | 'providers'
  | 'parallel'
  | 'turn'
> & { readonly state: 'pending' | 'held' };

/** The ticket of that id, or null. */
export async function findTicket(reader: Reader, id: string): Promise<Ticket | null> {
  const [found] = await reader.select().from(ticket).where(eq(ticket.id, id)).limit(1);
  return found ?? null;
}

/** Tickets of a run that are pending, leased or held. */
export async function listActiveTickets(reader: Reader, runId: string): Promise<Ticket[]> {
  const [active, held] = await Promise.all([
    reader
      .select()
      .from(ticket)
      .where(and(eq(ticket.runId, runId), inArray(ticket.state, ['pending', 'leased']))),
    reader
      .select()
      .from(ticket)
      .where(and(eq(ticket.runId, runId), eq(ticket.state, 'held'))),
  ]);
  return [...active, ...held];
}

/** Tickets of a run that are over (ended, superseded, cancelled, skipped) under one of these review keys. */
export async function listOverTickets(
  reader: Reader,
  runId: string,
  keys: readonly string[],
): Promise<Ticket[]> {
  if (keys.length === 0) return [];
  return reader
    .select()
    .from(ticket)
    .where(
      and(
        eq(ticket.runId, runId),
        sql`${ticket.key} = any(${sql.param(keys)}::text[])`,
        notInArray(ticket.state, ['pending', 'leased', 'held']),
      ),
    )
    .orderBy(asc(ticket.key), asc(ticket.round));
}

/** Adds tickets; one whose id exists is put back to the given state when it was superseded, cancelled or skipped, else left alone. */
export async function putTickets(tx: Tx, tickets: readonly NewTicket[]): Promise<void> {
  if (tickets.length === 0) return;
  const rows = tickets.map((one) => ({
    id: one.id,
    run_id: one.runId,
    installation_id: one.installationId,
    repository_id: one.repositoryId,
    block_id: one.blockId,
    path: `\\x${one.path.toString('hex')}`,
    from_path: one.fromPath === null ? null : `\\x${one.fromPath.toString('hex')}`,
    key: one.key,
    round: one.round,
    state: one.state,
    level: one.level,
    policy_hash: one.policyHash,
    spec: one.spec,
    reviewers: one.reviewers,
    provider: one.provider,
    providers: one.providers,
    parallel: one.parallel,
    turn: one.turn,
  }));
  // one parameter: as values, 4,000 tickets cost 370 ms of query building alone (bench S1)
  await tx.execute(sql`
    insert into ticket (id, run_id, installation_id, repository_id, block_id, path, from_path, key, round, state, level,
                        policy_hash, spec, reviewers, provider, providers, parallel, turn, queued_at)
    select id, run_id, installation_id, repository_id, block_id, path, from_path, key, round, state, level,
           policy_hash, spec, reviewers, provider, providers, parallel, turn, (select cs_now())
      from json_populate_recordset(null::ticket, ${JSON.stringify(rows)}::json)
    on conflict (id) do update set
      state = excluded.state, turn = excluded.turn, spec = excluded.spec, provider = excluded.provider,
      providers = excluded.providers, parallel = excluded.parallel, lane = null, lease_id = null, not_before = null,
      reason = null, ended_at = null
    where ticket.state in ('superseded', 'cancelled', 'skipped')`);
}

/** Takes pending or held tickets out of the queue. Their lanes are free: call `fillWindows` after. */
export async function dropTickets(
  tx: Tx,
  ids: readonly string[],
  state: 'superseded' | 'cancelled' | 'skipped',
  reason: string,
): Promise<number> {
  if (ids.length === 0) return 0;
  const done = await tx
    .update(ticket)
    .set({ state, lane: null, reason, endedAt: sql`cs_now()` })
    .where(
      and(sql`${ticket.id} = any(${sql.param(ids)}::text[])`, inArray(ticket.state, ['pending', 'held'])),
    )
    .returning({ id: ticket.id });
  return done.length;
}

/** Takes pending or held tickets out of the queue whose key another run has reviewed, as the rows `seq` say (TKT-4). */
export async function skipTickets(
  tx: Tx,
  tickets: readonly { readonly id: string; readonly seq: number }[],
): Promise<void> {
  if (tickets.length === 0) return;
  await tx.execute(sql`
    update ticket t set state = 'skipped', lane = null, reason = 'reused', seq = x.seq, ended_at = cs_now()
    from json_to_recordset(${JSON.stringify(tickets)}::json) as x(id text, seq bigint)
    where t.id = x.id and t.state in ('pending', 'held')`);
}

/** Half of the safe integers: what was lifted has a negative tag, and keeps its order among its own. */
const LIFT = 2 ** 52;

/** Puts the tickets in a run's windows before those of every other run (GAT-5). */
export async function liftTickets(tx: Tx, runId: string): Promise<void> {
  await tx.execute(sql`
    update ticket set tag = tag - ${LIFT}
    where run_id = ${runId} and state = 'pending' and lane is not null and tag > 0`);
}

/**
 * Gives free lanes of the run's windows to its waiting tickets (LSE-1); returns how many became
 * ready. With `due`, only where a `not_before` has passed.
 */
export async function fillWindows(tx: Tx, runId: string): Promise<number> {
  const { rows } = await tx.$client.query<{ ready: number }>({
    // a name keeps it prepared on its connection: planning it took longer than doing it
    name: 'fill-windows',
    text: `select coalesce(sum(ticket_window($1, w.provider, w.parallel)), 0)::int as ready
    from (select provider, max(parallel) as parallel from ticket
          where run_id = $1 and state = 'pending' and lane is null group by provider order by provider) w`,
    values: [runId],
  });
  return rows[0]?.ready ?? 0;
}

/** Marks a `not_before` that has passed as over, so that it is not found due again. */
export async function clearDue(tx: Tx, runId: string): Promise<void> {
  await tx
    .update(ticket)
    .set({ notBefore: null })
    .where(
      and(
        eq(ticket.runId, runId),
        eq(ticket.state, 'pending'),
        sql`${ticket.notBefore} is not null and ${ticket.notBefore} <= cs_now()`,
      ),
    );
}

/** Ends the back-off of what waits for a provider of an installation (POOL-3, a revival); returns how many. */
export async function releaseBackoffs(tx: Tx, installationId: string, provider: string): Promise<number> {
  const done = await tx
    .update(ticket)
    .set({ notBefore: sql`cs_now()` })
    .where(
      and(
        eq(ticket.installationId, installationId),
        eq(ticket.provider, provider),
        eq(ticket.state, 'pending'),
        sql`${ticket.notBefore} > cs_now()`,
      ),
    )
    .returning({ id: ticket.id });
  return done.length;
}

/** How many tickets of a run wait for a runner or are with one, counted up to `most`. */
export async function countUnfinished(reader: Reader, runId: string, most: number): Promise<number> {
  const { rows } = await reader.$client.query<{ n: number }>({
    name: 'count-unfinished',
    text: `select count(*)::int as n from (
      select from ticket where run_id = $1 and state in ('pending', 'leased') limit $2) u`,
    values: [runId, most],
  });
  return rows[0]?.n ?? 0;
}

/** Tickets of a run by state. */
export async function countTickets(reader: Reader, runId: string): Promise<Record<string, number>> {
  const rows = await reader
    .select({ state: ticket.state, n: sql<number>`count(*)::int` })
    .from(ticket)
    .where(eq(ticket.runId, runId))
    .groupBy(ticket.state);
  return Object.fromEntries(rows.map((row) => [row.state, row.n]));
}

/** Cancels every ticket of a run that is not over and revokes its leases (RUN-7, CTL-2); returns how many tickets. */
export async function cancelTicketsOfRun(tx: Tx, runId: string, reason: string): Promise<number> {
  // held first: settling a lease would otherwise bring a held one forward
  const waiting = await tx
    .update(ticket)
    .set({ state: 'cancelled', lane: null, reason, endedAt: sql`cs_now()` })
    .where(and(eq(ticket.runId, runId), inArray(ticket.state, ['pending', 'held'])))
    .returning({ id: ticket.id });
  const { rows } = await tx.execute<{ n: number }>(sql`
    select count(*)::int as n from (
      select json_agg(json_build_object('id', l.id, 'lease_state', 'revoked', 'state', 'cancelled', 'front', false,
        'losses', t.losses, 'timeouts', t.timeouts, 'transients', t.transients, 'suspect', t.suspect,
        'partial', t.partial, 'reason', ${reason}::text)) as ends
      from lease l join ticket t on t.id = l.ticket_id where l.run_id = ${runId} and l.state = 'live') e,
    lateral queue_turn(e.ends, 0, 0, '{}', '{}', '{}', '{}', '{}', '{}', interval '0')`);
  return waiting.length + (rows[0]?.n ?? 0);
}

/** Points pending tickets of a run at the first provider of their order that is not settled, in one update (POOL-3). What waits as the probe of a `due` one stays. */
export async function pointTickets(
  tx: Tx,
  runId: string,
  settled: readonly string[],
  due: readonly string[],
): Promise<number> {
  const { rows } = await tx.execute(sql`
    update ticket t set provider = x.provider, lane = null
    from (
      select id, coalesce(
        (select e.name from jsonb_array_elements_text(providers) with ordinality e(name, i)
         where e.name <> all(${sql.param(settled)}::text[]) order by e.i limit 1), providers ->> 0, provider) as provider
      from ticket where run_id = ${runId} and state = 'pending') x
    where t.id = x.id and t.provider <> x.provider and t.provider <> all(${sql.param(due)}::text[]) returning t.id`);
  return rows.length;
}

/** Pending and held tickets of a run whose provider is one of these. */
export async function countBehind(
  reader: Reader,
  runId: string,
  providers: readonly string[],
): Promise<number> {
  const { rows } = await reader.execute<{ n: number }>(sql`
    select count(*)::int as n from ticket
    where run_id = ${runId} and state in ('pending', 'held') and provider = any(${sql.param(providers)}::text[])`);
  return rows[0]?.n ?? 0;
}

/** Locks those of these tickets that wait for a runner; one that a lease is at is passed over. */
export async function lockPending(tx: Tx, ids: readonly string[]): Promise<Ticket[]> {
  return tx
    .select()
    .from(ticket)
    .where(and(sql`${ticket.id} = any(${sql.param(ids)}::text[])`, eq(ticket.state, 'pending')))
    .orderBy(asc(ticket.turn), asc(ticket.id))
    .for('update', { skipLocked: true });
}

/** Ends a ticket that no lease has, as the row `seq` says (`route_invalid`, `config-snapshot`, `budget`). */
export async function endUnleased(
  tx: Tx,
  id: string,
  end: string,
  detail: string,
  seq: number,
): Promise<void> {
  await tx
    .update(ticket)
    .set({ state: 'ended', lane: null, end, reason: detail, seq, endedAt: sql`cs_now()` })
    .where(and(eq(ticket.id, id), inArray(ticket.state, ['pending', 'held'])));
}

/** Points one pending ticket of a run at its own first provider, as that one's probe (POOL-3); false when there is none. */
export async function pointProbe(tx: Tx, runId: string, provider: string): Promise<boolean> {
  const { rows } = await tx.execute(sql`
    update ticket set provider = ${provider}, lane = null where id = (
      select id from ticket where run_id = ${runId} and state = 'pending' and provider <> ${provider}
        and providers ->> 0 = ${provider}
        and (not_before is null or not_before <= cs_now()) order by turn, id limit 1)
    returning id`);
  return rows.length > 0;
}
