/** The inbox: deliveries as GitHub sent them (OPS-1), and how far reconciliation has read (OPS-2). */
import { and, eq, inArray, ne, sql } from 'drizzle-orm';
import type pg from 'pg';
import type { Reader, Tx } from '../client.ts';
import { fly } from '../flight.ts';
import { delivery } from '../schema/delivery.ts';
import { readCursor } from '../schema/reconcile.ts';

/** A delivery as stored. */
export type Delivery = typeof delivery.$inferSelect;

/** A delivery whose signature was verified over `body`. */
export interface NewDelivery {
  readonly id: string;
  readonly event: string;
  readonly body: Buffer;
}

// One text for any number of rows. The bodies are one parameter, sent from where they lie and cut apart by
// the server: node-postgres sends an array of Buffers as hex text.
const STORE = `with seen as (
    select id, event, substring($5::bytea from start for size) as body
    from unnest($1::text[], $2::text[], $3::int[], $4::int[]) as given (id, event, start, size)
  ),
  stored as (
    insert into delivery (id, event, body, sha256, received_at)
    select id, event, body, sha256(body), (select cs_now()) from seen on conflict (id) do nothing returning id
  ),
  wanted as (
    select id, true as fresh from stored
    union all
    select d.id, false from delivery d join seen s on s.id = d.id where d.state in ('stored', 'failed')
  ),
  queued as (
    select count(*) from graphile_worker.add_jobs(array(
      select row('receive-delivery', json_build_object('delivery', id), null, null, 25, 'delivery:' || id, -5, null)
             ::graphile_worker.job_spec from wanted))
  )
  select w.id, w.fresh from wanted w, queued`;

/**
 * Stores deliveries and their jobs in one statement, so in one transaction. An id that is known
 * keeps its first bytes; if it was not finished, its job is queued again with fresh attempts; if it
 * was, nothing happens. Answers the ids that were new.
 */
export async function storeDeliveries(pool: pg.Pool, deliveries: readonly NewDelivery[]): Promise<string[]> {
  const bodies = deliveries.map((one) => one.body);
  let next = 1;
  const starts = bodies.map(({ length }) => {
    next += length;
    return next - length;
  });
  const [stored] = await fly(pool, [
    {
      name: 'store_deliveries',
      text: STORE,
      values: [
        textArray(deliveries.map((one) => one.id)),
        textArray(deliveries.map((one) => one.event)),
        `{${starts.join(',')}}`,
        `{${bodies.map((body) => body.length).join(',')}}`,
        bodies,
      ],
    },
  ]);
  return (stored?.rows ?? []).flatMap(([id, fresh]) => (id != null && fresh === 't' ? [id] : []));
}

/** An array of texts as Postgres reads it. */
function textArray(texts: readonly string[]): string {
  return `{${texts.map((text) => `"${text.replaceAll(/["\\]/g, '\\$&')}"`).join(',')}}`;
}

/** The delivery of this id, or null. */
export async function findDelivery(db: Reader, id: string): Promise<Delivery | null> {
  const [found] = await db.select().from(delivery).where(eq(delivery.id, id));
  return found ?? null;
}

/** Keeps what a delivery turned out to be about, for people who look for it. */
export async function describeDelivery(
  tx: Tx,
  id: string,
  about: Pick<Delivery, 'action' | 'installationId' | 'repositoryId'>,
): Promise<void> {
  await tx.update(delivery).set(about).where(eq(delivery.id, id));
}

/** Whether another delivery with exactly these bytes was finished: a replay under a new id. */
export async function isRepeated(db: Reader, id: string, sha256: Buffer): Promise<boolean> {
  const [found] = await db
    .select({ id: delivery.id })
    .from(delivery)
    .where(and(eq(delivery.sha256, sha256), ne(delivery.id, id), eq(delivery.state, 'done')))
    .limit(1);
  return found !== undefined;
}

/** Ends a delivery: `done` or `ignored` are final, `failed` may be finished by a redelivery. `note` is a code, never foreign text. */
export async function endDelivery(
  tx: Tx,
  id: string,
  state: 'done' | 'ignored' | 'failed',
  note: string | null,
): Promise<void> {
  await tx
    .update(delivery)
    .set({
      state,
      error: note,
      attempts: sql`${delivery.attempts} + 1`,
      doneAt: state === 'failed' ? null : sql`cs_now()`,
    })
    .where(eq(delivery.id, id));
}

/** The stored reading position of this name, or null. */
export async function findReadCursor(db: Reader, name: string): Promise<string | null> {
  const [found] = await db
    .select({ value: readCursor.value })
    .from(readCursor)
    .where(eq(readCursor.name, name));
  return found?.value ?? null;
}

/** Stores a reading position. */
export async function saveReadCursor(tx: Tx, name: string, value: string): Promise<void> {
  await tx
    .insert(readCursor)
    .values({ name, value, updatedAt: sql`cs_now()` })
    .onConflictDoUpdate({ target: readCursor.name, set: { value, updatedAt: sql`cs_now()` } });
}

/** How far each of some deliveries came here; those that never arrived are absent. */
export async function deliveryStates(
  db: Reader,
  ids: readonly string[],
): Promise<Map<string, Delivery['state']>> {
  if (ids.length === 0) return new Map();
  const rows = await db
    .select({ id: delivery.id, state: delivery.state })
    .from(delivery)
    .where(inArray(delivery.id, [...ids]));
  return new Map(rows.map((row) => [row.id, row.state]));
}

/** Forgets finished deliveries older than so many days (OPS-10); answers how many. */
export async function pruneDeliveries(tx: Tx, days: number): Promise<number> {
  const gone = await tx
    .delete(delivery)
    .where(
      and(
        inArray(delivery.state, ['done', 'ignored']),
        sql`${delivery.receivedAt} < cs_now() - ${days} * interval '1 day'`,
      ),
    )
    .returning({ id: delivery.id });
  return gone.length;
}
