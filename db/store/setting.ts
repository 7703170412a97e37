/** Installation settings (POL-2); installation 0 is the whole app, and an installation's own word goes before it. */
import { and, asc, eq, inArray, sql } from 'drizzle-orm';
import type { Ceiling } from '../../app/domain/budget.ts';
import type { Reader, Tx } from '../client.ts';
import { setting } from '../schema/setting.ts';

/** A setting as stored. */
export type Setting = typeof setting.$inferSelect;

/** The installation that stands for the whole app. */
export const WHOLE_APP = '0';

/** Settings of these installations, the whole app's before each other's, by key. */
export async function listSettings(reader: Reader, installationIds: readonly string[]): Promise<Setting[]> {
  return reader
    .select()
    .from(setting)
    .where(inArray(setting.installationId, [...installationIds]))
    .orderBy(asc(setting.installationId), asc(setting.key));
}

/** What holds for an installation, by key: its own settings, else the whole app's. */
export async function settingsOf(reader: Reader, installationId: string): Promise<Map<string, Setting>> {
  const rows = await listSettings(reader, [WHOLE_APP, installationId]);
  return new Map(rows.map((row) => [row.key, row]));
}

/** Stores a setting; false when it was so. */
export async function putSetting(
  tx: Tx,
  of: Pick<Setting, 'installationId' | 'key' | 'value' | 'actor' | 'reason'>,
): Promise<boolean> {
  const { rows } = await tx.execute(sql`
    insert into setting (installation_id, key, value, actor, reason, set_at)
    values (${of.installationId}, ${of.key}, ${JSON.stringify(of.value)}::jsonb, ${of.actor}, ${of.reason}, cs_now())
    on conflict (installation_id, key) do update
      set value = excluded.value, actor = excluded.actor, reason = excluded.reason, set_at = excluded.set_at
      where setting.value <> excluded.value
    returning key`);
  return rows.length > 0;
}

/** Takes a setting away; false when there was none. */
export async function dropSetting(tx: Tx, installationId: string, key: string): Promise<boolean> {
  const gone = await tx
    .delete(setting)
    .where(and(eq(setting.installationId, installationId), eq(setting.key, key)))
    .returning({ key: setting.key });
  return gone.length > 0;
}

/** The monthly ceiling of an installation (POL-2). */
export async function readCeiling(reader: Reader, installationId: string): Promise<Ceiling> {
  const { rows } = await reader.execute<{ key: string; value: number }>(sql`
    select distinct on (key) key, value from setting
    where installation_id in (0, ${installationId}) and key in ('ceiling.tokens', 'ceiling.usd')
    order by key, installation_id desc`);
  const of = (key: string) => rows.find((row) => row.key === key)?.value ?? null;
  return { tokens: of('ceiling.tokens'), usd: of('ceiling.usd') };
}

/** The kill switch that holds an installation, its own or the whole app's (CTL-5); null: neither is on. */
export async function findKill(reader: Reader, installationId: string): Promise<Setting | null> {
  const [found] = await reader
    .select()
    .from(setting)
    .where(and(inArray(setting.installationId, [WHOLE_APP, installationId]), eq(setting.key, 'kill')))
    .orderBy(asc(setting.installationId))
    .limit(1);
  return found ?? null;
}

/** Keeps everybody who leases out until the transaction ends: nothing is on its way past a kill switch (CTL-5). */
export async function lockLeasing(tx: Tx): Promise<void> {
  await tx.execute(sql`select pg_advisory_xact_lock(1263092812, 0)`);
}

/** Locks the runs of installations that are not over, in the order of their ids. */
export async function lockOpenRuns(
  tx: Tx,
  installationIds: readonly string[],
): Promise<{ id: string; repositoryId: string }[]> {
  const { rows } = await tx.execute<{ id: string; repository_id: string }>(sql`
    select id, repository_id::text as repository_id from run
    where installation_id = any(${sql.param(installationIds)}::bigint[]) and status in ('open', 'paused', 'stopped')
    order by id for update`);
  return rows.map((row) => ({ id: row.id, repositoryId: row.repository_id }));
}

/** Raises the generation of runs: what was planned before starts nothing any more (CTL-2). */
export async function raiseGenerations(tx: Tx, runIds: readonly string[]): Promise<void> {
  await tx.execute(sql`
    update run set generation = generation + 1, version = version + 1 where id = any(${sql.param(runIds)}::text[])`);
}

type LeasedRow = {
  id: string;
  losses: number;
  timeouts: number;
  transients: number;
  suspect: boolean;
  partial: boolean;
};
/** What a ticket has behind it, which outlives a revoked lease. */
export type LeasedPast = Omit<LeasedRow, 'id'>;

/** Live leases of installations with what their tickets have behind them. */
export async function listLiveLeases(
  tx: Tx,
  installationIds: readonly string[],
): Promise<{ lease: string; ticket: LeasedPast }[]> {
  const { rows } = await tx.execute<LeasedRow>(sql`
    select l.id, t.losses, t.timeouts, t.transients, t.suspect, t.partial
    from lease l join ticket t on t.id = l.ticket_id
    where l.state = 'live' and l.installation_id = any(${sql.param(installationIds)}::bigint[]) order by l.id`);
  return rows.map(({ id, ...ticket }) => ({ lease: id, ticket }));
}

/** Base branches of installations that hold a policy, or did not hold a valid one. */
export async function listEnrolled(
  tx: Tx,
  installationIds: readonly string[],
): Promise<{ repositoryId: string; baseRef: string }[]> {
  const { rows } = await tx.execute<{ repository_id: string; base_ref: string }>(sql`
    select e.repository_id::text as repository_id, e.base_ref from enrolment e join repository r on r.id = e.repository_id
    where r.installation_id = any(${sql.param(installationIds)}::bigint[]) and r.status = 'active' and e.state <> 'absent'
    order by 1, 2`);
  return rows.map((row) => ({ repositoryId: row.repository_id, baseRef: row.base_ref }));
}
