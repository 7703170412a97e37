/** What waits for runners over runs: for the planner, the sweeps and the long poll (POOL-2, POOL-5). */
import { sql } from 'drizzle-orm';
import type { TicketSpec } from '../../app/domain/review.ts';
import type { Reader, Tx } from '../client.ts';

/** Tickets of one open, allowed run for one provider. Times are product times. */
export interface Waiting {
  readonly runId: string;
  readonly provider: string;
  /** Pending and not waiting out a back-off. */
  readonly ready: number;
  readonly nextAt: Date | null;
  readonly leased: number;
  readonly parallel: number;
  /** The policy of the run. */
  readonly policyHash: string | null;
}

/** A run `r` that may work and spend (RUN-10). */
export const SPENDS = sql.raw(
  "r.status = 'open' and r.allowed_rule is not null and (r.allowed_rule <> 'person' or r.allowed_scope = 'author' or r.allowed_head = r.head)",
);

/** What waits and runs in a repository per run and provider, runs in order of start. */
export async function listWaiting(reader: Reader, repositoryId: string): Promise<Waiting[]> {
  const { rows } = await reader.execute<{
    run_id: string;
    provider: string;
    ready: number;
    next_ms: string | null;
    leased: number;
    parallel: number;
    policy_hash: string | null;
  }>(sql`
    select t.run_id, t.provider, r.policy_hash,
           count(*) filter (where t.state = 'pending' and (t.not_before is null or t.not_before <= cs_now()))::int as ready,
           (extract(epoch from min(t.not_before) filter (where t.state = 'pending' and t.not_before > cs_now())) * 1000)::bigint::text as next_ms,
           count(*) filter (where t.state = 'leased')::int as leased, max(t.parallel)::int as parallel
    from run r join ticket t on t.run_id = r.id
    where r.repository_id = ${repositoryId} and ${SPENDS} and t.state in ('pending', 'leased')
    group by t.run_id, t.provider, r.policy_hash, r.opened_at order by r.opened_at, t.run_id, t.provider`);
  return rows.map((row) => ({
    runId: row.run_id,
    provider: row.provider,
    ready: row.ready,
    nextAt: row.next_ms === null ? null : new Date(Number(row.next_ms)),
    leased: row.leased,
    parallel: row.parallel,
    policyHash: row.policy_hash,
  }));
}

/** Tickets of one block of a run that are ready and ask the same reviewers. */
export interface WaitingGroup {
  readonly runId: string;
  readonly blockId: string;
  readonly repositoryId: string;
  readonly installationId: string;
  readonly provider: string;
  readonly spec: Pick<TicketSpec, 'reviewers' | 'fallbacks'>;
  /** The policy of the run, and the rule that let it spend. */
  readonly policyHash: string | null;
  readonly allowedRule: string | null;
  readonly ready: number;
}

/** What of these runs is ready for a runner, by whom it asks. */
export async function listWaitingGroups(reader: Reader, runIds: readonly string[]): Promise<WaitingGroup[]> {
  const { rows } = await reader.execute<{
    run_id: string;
    block_id: string;
    repository_id: string;
    installation_id: string;
    provider: string;
    reviewers: TicketSpec['reviewers'];
    fallbacks: TicketSpec['fallbacks'];
    policy_hash: string | null;
    allowed_rule: string | null;
    ready: number;
  }>(sql`
    select t.run_id, t.block_id, t.repository_id::text as repository_id, t.installation_id::text as installation_id,
           t.provider, t.spec -> 'reviewers' as reviewers, t.spec -> 'fallbacks' as fallbacks, r.policy_hash, r.allowed_rule,
           count(*)::int as ready
    from ticket t join run r on r.id = t.run_id
    where t.run_id = any(${sql.param(runIds)}::text[]) and t.state = 'pending'
      and (t.not_before is null or t.not_before <= cs_now())
    group by t.run_id, t.block_id, t.repository_id, t.installation_id, t.provider, t.spec -> 'reviewers',
             t.spec -> 'fallbacks', r.policy_hash, r.allowed_rule`);
  return rows.map((row) => ({
    runId: row.run_id,
    blockId: row.block_id,
    repositoryId: row.repository_id,
    installationId: row.installation_id,
    provider: row.provider,
    spec: { reviewers: row.reviewers, fallbacks: row.fallbacks },
    policyHash: row.policy_hash,
    allowedRule: row.allowed_rule,
    ready: row.ready,
  }));
}

/**
 * Repositories with tickets ready to be leased, no runner heard of within `freshMs` and no dispatch on its way, at
 * most `limit`: where there are more, others come with each second, so that nobody waits behind those that can
 * start nothing.
 */
export async function listStarving(reader: Reader, freshMs: number, limit: number): Promise<string[]> {
  const { rows } = await reader.execute<{ id: string }>(sql`
    select r.repository_id as id from run r
    where ${SPENDS}
      and exists (select from ticket t where t.run_id = r.id and t.state = 'pending' and t.lane is not null)
      and not exists (select from runner w where w.repository_id = r.repository_id and w.ended_at is null
        and w.heartbeat_at > cs_now() - ${freshMs} * interval '1 millisecond')
      and not exists (select from dispatch d where d.repository_id = r.repository_id
        and d.state in ('intended', 'sent', 'ambiguous'))
    group by r.repository_id
    order by hashint8extended(r.repository_id, extract(epoch from cs_now())::bigint) limit ${limit}`);
  return rows.map((row) => row.id);
}

/** Waits for, then holds, the right to plan for a repository until the transaction ends: equal plans are not made twice. */
export async function lockPlan(tx: Tx, repositoryId: string): Promise<void> {
  await tx.execute(
    sql`select pg_advisory_xact_lock(hashtextextended('countersign plan ' || ${repositoryId}, 0))`,
  );
}

/** Open runs with tickets waiting for a provider of an installation. */
export async function listRunsBehind(
  reader: Reader,
  installationId: string,
  provider: string,
): Promise<{ readonly runId: string; readonly repositoryId: string }[]> {
  const { rows } = await reader.execute<{ run_id: string; repository_id: string }>(sql`
    select r.id as run_id, r.repository_id from run r
    where r.installation_id = ${installationId} and r.status = 'open' and exists (
      select from ticket t where t.run_id = r.id and t.state in ('pending', 'leased')
        and t.providers @> jsonb_build_array(${provider}::text))
    order by r.opened_at, r.id`);
  return rows.map((row) => ({ runId: row.run_id, repositoryId: row.repository_id }));
}

/** Runs with a pending ticket whose `not_before` has passed and that has no lane yet, at most `limit`. */
export async function listDueRuns(reader: Reader, limit: number): Promise<string[]> {
  const { rows } = await reader.execute<{ run_id: string }>(sql`
    select distinct run_id from ticket
    where state = 'pending' and not_before is not null and not_before <= cs_now() and lane is null limit ${limit}`);
  return rows.map((row) => row.run_id);
}

/** Whether a repository has tickets that wait or are with a runner, in runs that may spend. */
export async function anyWaiting(reader: Reader, repositoryId: string): Promise<boolean> {
  const { rows } = await reader.execute<{ found: boolean }>(sql`
    select exists (
      select from run r join ticket t on t.run_id = r.id
      where r.repository_id = ${repositoryId} and r.status = 'open' and r.allowed_rule is not null
        and t.state in ('pending', 'leased')
        and (t.state = 'leased' or t.not_before is null or t.not_before <= cs_now())) as found`);
  return rows[0]?.found === true;
}

/** A run of an installation with a pending ticket that points at a provider; null when none does. */
export async function hasPending(
  reader: Reader,
  installationId: string,
  provider: string,
): Promise<{ readonly runId: string } | null> {
  const { rows } = await reader.execute<{ id: string }>(sql`
    select r.id from run r where r.installation_id = ${installationId} and ${SPENDS}
      and exists (select from ticket t where t.run_id = r.id and t.state = 'pending' and t.provider = ${provider})
    order by r.opened_at, r.id limit 1`);
  const [found] = rows;
  return found === undefined ? null : { runId: found.id };
}
