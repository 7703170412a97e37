/** What was spent and is reserved (ADM-2): counts by scope, taken exactly and settled in bulk. */
import { and, eq, inArray, sql } from 'drizzle-orm';
import { countedOf, SPEND_SCOPES, type SpendLimit, type SpendScope } from '../../app/domain/budget.ts';
import type { Reader, Tx } from '../client.ts';
import { session, spend } from '../schema/lease.ts';

/** One count: its scope, of what, and in which month (empty: of no month). */
export interface SpendPlace {
  readonly scope: SpendScope;
  readonly id: string;
  readonly period: string;
}
/** What a count stands at, reservations included; money in millionths of a dollar. */
export interface Spent {
  readonly sessions: number;
  readonly tokens: number;
  readonly micro: number;
}

const numberOf = (scope: SpendScope) => SPEND_SCOPES.indexOf(scope) + 1;

/** Counts of these places, in their order; zero where nothing was counted yet. */
export async function readSpent(reader: Reader, places: readonly SpendPlace[]): Promise<Spent[]> {
  if (places.length === 0) return [];
  const rows = await reader
    .select()
    .from(spend)
    .where(
      inArray(
        spend.id,
        places.map((one) => one.id),
      ),
    );
  return places.map(({ scope, id, period }) => {
    const found = rows.find((row) => row.scope === numberOf(scope) && row.id === id && row.period === period);
    return { sessions: found?.sessions ?? 0, tokens: found?.tokens ?? 0, micro: found?.micro ?? 0 };
  });
}

/**
 * What of these counts, in their order, is reserved for sessions of an installation whose cost is not known yet: it
 * comes back when they cost less.
 */
export async function readUncertain(
  reader: Reader,
  installationId: string,
  places: readonly SpendPlace[],
): Promise<Omit<Spent, 'sessions'>[]> {
  const open = await reader
    .select()
    .from(session)
    .where(
      and(
        eq(session.installationId, installationId),
        sql`(${session.state} = 'admitted' or (${session.state} = 'ended' and not ${session.settled}))`,
      ),
    );
  return places.map((place) => {
    const within = open.filter((one) => isWithin(one, place));
    return {
      tokens: within.reduce((sum, one) => sum + one.bookedTokens, 0),
      micro: within.reduce((sum, one) => sum + one.bookedMicro, 0),
    };
  });
}

function isWithin(one: typeof session.$inferSelect, { scope, id, period }: SpendPlace): boolean {
  const booked = (one.booked & (1 << numberOf(scope))) !== 0;
  return booked && countedOf(scope, one) === id && (period === '' || one.period === period);
}

/**
 * Reserves for a session in all of these counts or in none; null, or the place of the first that it does not
 * fit into and by what. It locks the counts until the commit: nothing comes after it in a transaction.
 */
export async function takeSpend(
  tx: Tx,
  sessionId: string,
  places: readonly (SpendPlace & { readonly limit: SpendLimit })[],
  take: { readonly tokens: number; readonly micro: number },
): Promise<{ readonly at: number; readonly by: keyof Spent } | null> {
  if (places.length === 0) return null;
  const { rows } = await tx.execute<{ found: number }>(sql`
    select spend_take(${sessionId}, ${sql.param(places.map((one) => numberOf(one.scope)))}::smallint[],
      ${sql.param(places.map((one) => one.id))}::text[], ${sql.param(places.map((one) => one.period))}::text[],
      ${sql.param(places.map((one) => one.limit.sessions))}::bigint[], ${sql.param(places.map((one) => one.limit.tokens))}::bigint[],
      ${sql.param(places.map((one) => one.limit.micro))}::bigint[], ${take.tokens}, ${take.micro}) as found`);
  const found = rows[0]?.found ?? 0;
  if (found === 0) return null;
  return {
    at: Math.floor(found / 10) - 1,
    by: (['sessions', 'tokens', 'micro'] as const)[(found % 10) - 1] ?? 'tokens',
  };
}

/** Books sessions that ended, at most `limit` of an installation; returns how many counts were brought up. */
export async function settleSpend(tx: Tx, installationId: string, limit: number): Promise<number> {
  const { rows } = await tx.execute<{ n: number }>(
    sql`select spend_settle(${installationId}, ${limit}) as n`,
  );
  return rows[0]?.n ?? 0;
}

/** Installations with sessions that ended and are not booked. */
export async function listUnsettled(reader: Reader): Promise<string[]> {
  const { rows } = await reader.execute<{ id: string }>(sql`
    select distinct installation_id::text as id from session where state = 'ended' and not settled order by 1`);
  return rows.map((row) => row.id);
}

/** The month of product time, `YYYY-MM` of UTC. */
export async function readPeriod(reader: Reader): Promise<string> {
  const { rows } = await reader.execute<{ period: string }>(
    sql`select to_char(cs_now() at time zone 'UTC', 'YYYY-MM') as period`,
  );
  return rows[0]?.period ?? '';
}

/** Forgets counts of months before the one `months` ago; returns how many. */
export async function pruneSpend(tx: Tx, months: number): Promise<number> {
  const gone = await tx
    .delete(spend)
    .where(
      and(
        sql`${spend.period} <> ''`,
        sql`${spend.period} < to_char((cs_now() - ${months} * interval '1 month') at time zone 'UTC', 'YYYY-MM')`,
      ),
    )
    .returning({ id: spend.id });
  return gone.length;
}
