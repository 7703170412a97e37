/** Providers and pools as far as they are out of service (POOL-3), and their slots (LSE-1). */
import { and, eq, sql } from 'drizzle-orm';
import type { Reader, Tx } from '../client.ts';
import { pool, provider } from '../schema/provider.ts';

/** A provider in one installation as stored. */
export type Provider = typeof provider.$inferSelect;
/** A pool of one repository as stored. */
export type Pool = typeof pool.$inferSelect;

/** Makes providers known to an installation, with `slots` units of capacity each where there is none yet. */
export async function ensureProviders(
  tx: Tx,
  installationId: string,
  names: readonly string[],
  slots: number | ((name: string) => number),
): Promise<void> {
  for (const name of [...names].sort()) {
    const added = await tx
      .insert(provider)
      .values({ installationId, name })
      .onConflictDoNothing()
      .returning({ name: provider.name });
    if (added.length === 0 || name === 'command') continue;
    await tx.execute(sql`
      insert into slot (installation_id, provider, no) select ${installationId}, ${name}, n from generate_series(1, ${typeof slots === 'number' ? slots : slots(name)}) n
      on conflict do nothing`);
  }
}

/**
 * Makes a provider have `slots` units of capacity (POL-2). What is free above that goes at once, what is busy with its
 * session; what was to go comes back first.
 */
export async function resizeSlots(
  tx: Tx,
  installationId: string,
  name: string,
  slots: number,
): Promise<void> {
  if ((await lockProvider(tx, installationId, name)) === null) return;
  const at = sql`installation_id = ${installationId} and provider = ${name}`;
  const count = async (): Promise<number> => {
    const { rows } = await tx.execute<{ n: number }>(
      sql`select count(*)::int as n from slot where ${at} and not retiring`,
    );
    return rows[0]?.n ?? 0;
  };
  const missing = slots - (await count());
  if (missing > 0) {
    await tx.execute(sql`
      update slot set retiring = false where ${at} and no in (
        select no from slot where ${at} and retiring order by no limit ${missing} for update)`);
    await tx.execute(sql`
      insert into slot (installation_id, provider, no)
      select ${installationId}, ${name}, n from generate_series(1, ${slots} * 2) n
      where not exists (select from slot where ${at} and no = n)
      order by n limit ${Math.max(0, slots - (await count()))}`);
    return;
  }
  await tx.execute(sql`
    delete from slot where ${at} and no in (
      select no from slot where ${at} and session_id is null and not retiring
      order by no desc limit ${-missing} for update)`);
  await tx.execute(sql`
    update slot set retiring = true where ${at} and no in (
      select no from slot where ${at} and session_id is not null and not retiring
      order by no desc limit ${Math.max(0, (await count()) - slots)} for update)`);
}

/** Providers of an installation by name. */
export async function listProviders(reader: Reader, installationId: string): Promise<Provider[]> {
  return reader
    .select()
    .from(provider)
    .where(eq(provider.installationId, installationId))
    .orderBy(provider.name);
}

/** Locks a provider's row; null when it is not known. */
export async function lockProvider(tx: Tx, installationId: string, name: string): Promise<Provider | null> {
  const [found] = await tx
    .select()
    .from(provider)
    .where(and(eq(provider.installationId, installationId), eq(provider.name, name)))
    .for('update');
  return found ?? null;
}

/** Free and all slots of a provider. */
export async function countSlots(
  reader: Reader,
  installationId: string,
): Promise<Map<string, { readonly free: number; readonly all: number }>> {
  const { rows } = await reader.execute<{ provider: string; free: number; total: number }>(sql`
    select provider, count(*) filter (where session_id is null)::int as free, count(*)::int as total
    from slot where installation_id = ${installationId} group by provider`);
  return new Map(rows.map((row) => [row.provider, { free: row.free, all: row.total }]));
}

/** Sets the strikes of a provider in service; none: a call went well. */
export async function setStrikes(
  tx: Tx,
  installationId: string,
  name: string,
  strikes: readonly string[],
): Promise<void> {
  await tx
    .update(provider)
    .set({ strikes: [...strikes] })
    .where(and(eq(provider.installationId, installationId), eq(provider.name, name)));
}

/** Settles a provider for `ms` from now; returns until when. */
export async function settleProvider(
  tx: Tx,
  installationId: string,
  name: string,
  input: { readonly ms: number; readonly rounds: number; readonly detail: string },
): Promise<Date | null> {
  const [row] = await tx
    .update(provider)
    .set({
      settledUntil: sql`cs_now() + ${input.ms} * interval '1 millisecond'`,
      settledSince: sql`coalesce(${provider.settledSince}, cs_now())`,
      rounds: input.rounds,
      probeTicket: null,
      strikes: [],
      detail: input.detail,
      noted: false,
    })
    .where(and(eq(provider.installationId, installationId), eq(provider.name, name)))
    .returning({ until: provider.settledUntil });
  return row?.until ?? null;
}

/** Puts a settled provider back into service; false when it was. */
export async function reviveProvider(tx: Tx, installationId: string, name: string): Promise<boolean> {
  const done = await tx
    .update(provider)
    .set({
      settledUntil: null,
      settledSince: null,
      rounds: 0,
      probeTicket: null,
      strikes: [],
      detail: null,
      noted: false,
    })
    .where(
      and(
        eq(provider.installationId, installationId),
        eq(provider.name, name),
        sql`${provider.settledUntil} is not null`,
      ),
    )
    .returning({ name: provider.name });
  return done.length > 0;
}

/** Settled providers of every installation. */
export async function listSettledProviders(reader: Reader): Promise<Provider[]> {
  return reader.select().from(provider).where(sql`${provider.settledUntil} is not null`);
}

/** Providers whose last change no row says yet, at most `limit`. */
export async function listUnnotedProviders(reader: Reader, limit: number): Promise<Provider[]> {
  return reader.select().from(provider).where(eq(provider.noted, false)).limit(limit);
}

/** Marks the change of a provider as said by a row; false when it changed again or was said. */
export async function noteProvider(tx: Tx, of: Provider): Promise<boolean> {
  const done = await tx
    .update(provider)
    .set({ noted: true })
    .where(
      and(
        eq(provider.installationId, of.installationId),
        eq(provider.name, of.name),
        eq(provider.noted, false),
        sql`(${provider.settledUntil} is null) = ${of.settledUntil === null}`,
      ),
    )
    .returning({ name: provider.name });
  return done.length > 0;
}

/** The pool of that name, or null when it was never used. */
export async function findPool(reader: Reader, repositoryId: string, name: string): Promise<Pool | null> {
  const [found] = await reader
    .select()
    .from(pool)
    .where(and(eq(pool.repositoryId, repositoryId), eq(pool.name, name)));
  return found ?? null;
}

/** Locks a pool's row; null when it was never used. */
export async function lockPool(tx: Tx, repositoryId: string, name: string): Promise<Pool | null> {
  const [found] = await tx
    .select()
    .from(pool)
    .where(and(eq(pool.repositoryId, repositoryId), eq(pool.name, name)))
    .for('update');
  return found ?? null;
}

/** Makes a pool that was never used, in service, so that it can be locked; nothing where it is known. */
export async function addPool(
  tx: Tx,
  values: { readonly repositoryId: string; readonly installationId: string; readonly name: string },
): Promise<void> {
  await tx
    .insert(pool)
    .values({ ...values, missed: 0, rounds: 0 })
    .onConflictDoNothing();
}

/** Stores what is known of a pool; `settledMs` counts from now, null: in service. */
export async function putPool(
  tx: Tx,
  values: {
    readonly repositoryId: string;
    readonly installationId: string;
    readonly name: string;
    readonly missed: number;
    readonly rounds: number;
    readonly settledMs: number | null;
    readonly detail: string | null;
  },
): Promise<Pool> {
  const { settledMs, ...rest } = values;
  const settledUntil =
    settledMs === null ? sql`null::timestamptz` : sql`cs_now() + ${settledMs} * interval '1 millisecond'`;
  const [stored] = await tx
    .insert(pool)
    .values({ ...rest, settledUntil })
    .onConflictDoUpdate({
      target: [pool.repositoryId, pool.name],
      set: {
        missed: rest.missed,
        rounds: rest.rounds,
        detail: rest.detail,
        installationId: rest.installationId,
        settledUntil,
      },
    })
    .returning();
  return stored as Pool;
}

/** Pools whose settled time is up. */
export async function listDuePools(reader: Reader): Promise<Pool[]> {
  return reader
    .select()
    .from(pool)
    .where(sql`${pool.settledUntil} is not null and ${pool.settledUntil} <= cs_now()`);
}

/** Removes wishes that hold no more, of repositories whose runners are gone. */
export async function pruneSlotWishes(reader: Reader): Promise<void> {
  await reader.execute(sql`delete from slot_wish where seen_at < cs_now() - interval '1 minute'`);
}

/**
 * Says of a repository whose runner asked and got nothing which providers it wants a slot of (LSE-1): those of which a
 * slot alone is missing, none for a run at its `parallel` or one that may not run.
 */
export async function putSlotWish(
  reader: Reader,
  { installationId, repositoryId }: { readonly installationId: string; readonly repositoryId: string },
): Promise<void> {
  await reader.execute(sql`
    insert into slot_wish as w (installation_id, provider, repository_id, tag, seen_at)
    select p.installation_id, p.name, ${repositoryId}::bigint, r.tag, cs_now()
    from provider p cross join lateral (
      select t.tag from ticket t join run u on u.id = t.run_id
      where t.repository_id = ${repositoryId} and t.provider = p.name and t.state = 'pending' and t.lane is not null
        and u.status = 'open' and u.allowed_rule is not null
        and (u.allowed_rule <> 'person' or u.allowed_scope = 'author' or u.allowed_head = u.head)
        and (select count(*) from lease l where l.run_id = t.run_id and l.state = 'live') < t.parallel
      order by t.tag limit 1) r
    where p.installation_id = ${installationId} and p.name <> 'command' and p.settled_until is null
      and (select count(*) from slot s
           where s.installation_id = p.installation_id and s.provider = p.name and s.session_id is null)
       <= (select count(*) from slot_wish o
           where o.installation_id = p.installation_id and o.provider = p.name and o.repository_id <> ${repositoryId}
             and o.tag < r.tag and o.seen_at > cs_now() - interval '2 seconds')
    on conflict (installation_id, provider, repository_id) do update set tag = excluded.tag, seen_at = excluded.seen_at`);
}
