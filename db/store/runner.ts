/** Runners, logins and used token ids (LSE-6, RID-1, AUT-1). */
import { and, asc, eq, isNull, sql } from 'drizzle-orm';
import type { Reader, Tx } from '../client.ts';
import { jti, login, runner } from '../schema/runner.ts';

/** A runner as stored. */
export type Runner = typeof runner.$inferSelect;
/** A login as stored. */
export type Login = typeof login.$inferSelect & {
  /** Its repository cannot work yet (RUN-9), or the kill switch is on (CTL-5): nothing is leased there. */
  readonly held?: boolean;
};

/** Marks a token id as used; false when it was (attack: replay). `keepMs` is the token's rest of life and tolerance. */
export async function useTokenId(tx: Tx, issuer: string, id: string, keepMs: number): Promise<boolean> {
  const added = await tx
    .insert(jti)
    .values({ issuer, id, expiresAt: sql`cs_now() + ${keepMs} * interval '1 millisecond'` })
    .onConflictDoNothing()
    .returning({ id: jti.id });
  return added.length > 0;
}

/** Registers a runner. */
export async function addRunner(
  tx: Tx,
  values: Omit<typeof runner.$inferInsert, 'startedAt' | 'heartbeatAt' | 'endedAt'>,
): Promise<void> {
  await tx.insert(runner).values({ ...values, startedAt: sql`cs_now()`, heartbeatAt: sql`cs_now()` });
}

/** The runner that a job of a workflow run's attempt is, ended or not; null when it never logged in (RID-1). */
export async function findRunnerOfJob(
  reader: Reader,
  of: {
    readonly repositoryId: string;
    readonly workflowRun: string;
    readonly attempt: number;
    readonly job: string | null;
  },
): Promise<Runner | null> {
  const [found] = await reader
    .select()
    .from(runner)
    .where(
      and(
        eq(runner.repositoryId, of.repositoryId),
        eq(runner.workflowRun, of.workflowRun),
        eq(runner.attempt, of.attempt),
        of.job === null ? isNull(runner.job) : eq(runner.job, of.job),
      ),
    )
    .limit(1);
  return found ?? null;
}

/** The runner that a process of a resident pool is, while it is not ended; null otherwise (RID-1). */
export async function findResident(reader: Reader, pool: string, instance: string): Promise<Runner | null> {
  const [found] = await reader
    .select()
    .from(runner)
    .where(
      and(
        eq(runner.pool, pool),
        eq(runner.instance, instance),
        isNull(runner.repositoryId),
        isNull(runner.endedAt),
      ),
    )
    .limit(1);
  return found ?? null;
}

/** Says which container runtime a resident runner has now. */
export async function setRuntime(tx: Tx, id: string, runtime: string | null): Promise<void> {
  await tx.update(runner).set({ runtime }).where(eq(runner.id, id));
}

/** Runners of a resident pool that are not ended. */
export async function countResidents(reader: Reader, pool: string): Promise<number> {
  const [row] = await reader
    .select({ n: sql<number>`count(*)::int` })
    .from(runner)
    .where(and(eq(runner.pool, pool), isNull(runner.repositoryId), isNull(runner.endedAt)));
  return row?.n ?? 0;
}

/** Ends a runner. */
export async function endRunner(tx: Tx, id: string): Promise<void> {
  await tx
    .update(runner)
    .set({ endedAt: sql`cs_now()` })
    .where(and(eq(runner.id, id), isNull(runner.endedAt)));
}

/** Revokes the logins of a runner: a new one takes their place (RID-1). */
export async function revokeLogins(tx: Tx, runnerId: string): Promise<void> {
  await tx
    .update(login)
    .set({ revokedAt: sql`cs_now()` })
    .where(and(eq(login.runnerId, runnerId), isNull(login.revokedAt)));
}

/** Adds a login; returns when it expires. */
export async function addLogin(
  tx: Tx,
  values: Omit<typeof login.$inferInsert, 'createdAt' | 'expiresAt' | 'revokedAt'>,
  ttlMs: number,
): Promise<Date> {
  const [added] = await tx
    .insert(login)
    .values({
      ...values,
      createdAt: sql`cs_now()`,
      expiresAt: sql`cs_now() + ${ttlMs} * interval '1 millisecond'`,
    })
    .returning({ expiresAt: login.expiresAt });
  return (added as { expiresAt: Date }).expiresAt;
}

/**
 * The login of a token's hash while it holds: not revoked, not past its time, its runner not ended. `quiet`: that
 * runner was not heard of for `quietMs`.
 */
export async function findLogin(
  reader: Reader,
  tokenHash: Buffer,
  quietMs: number,
): Promise<(Login & { readonly quiet: boolean }) | null> {
  const [found] = await reader
    .select({
      login,
      held: sql<boolean>`exists (select from repository where id = ${runner.repositoryId} and setup_cause is not null)
        or exists (select from setting where key = 'kill' and installation_id in (0, ${runner.installationId}))`,
      quiet: sql<boolean>`${runner.heartbeatAt} < cs_now() - ${quietMs} * interval '1 millisecond'`,
    })
    .from(login)
    .innerJoin(runner, eq(runner.id, login.runnerId))
    .where(
      and(
        eq(login.tokenHash, tokenHash),
        isNull(login.revokedAt),
        isNull(runner.endedAt),
        sql`${login.expiresAt} > cs_now()`,
      ),
    )
    .limit(1);
  return found === undefined ? null : { ...found.login, held: found.held, quiet: found.quiet };
}

/** Renews a login and its runner's heartbeat; returns when it expires, null when it does not hold any more. */
export async function renewLogin(tx: Reader, loginId: string, ttlMs: number): Promise<Date | null> {
  const { rows } = await tx.execute<{ ms: string }>(sql`
    with renewed as (
      update login set expires_at = greatest(expires_at, cs_now() + ${ttlMs} * interval '1 millisecond')
      where id = ${loginId} and revoked_at is null and expires_at > cs_now() returning runner_id, expires_at
    ), beat as (
      update runner r set heartbeat_at = cs_now() from renewed where r.id = renewed.runner_id
    )
    select (extract(epoch from expires_at) * 1000)::bigint::text as ms from renewed`);
  const ms = rows[0]?.ms;
  return ms === undefined ? null : new Date(Number(ms));
}

/** Notes that a runner was heard of, and keeps its login alive once half of its time is over. */
export async function renewIdle(tx: Reader, loginId: string, ttlMs: number): Promise<void> {
  const ttl = sql`${ttlMs} * interval '1 millisecond'`;
  await tx.execute(sql`
    with renewed as (
      update login set expires_at = cs_now() + ${ttl}
      where id = ${loginId} and revoked_at is null and expires_at > cs_now() and expires_at < cs_now() + ${ttl} / 2
    )
    update runner r set heartbeat_at = cs_now() from login l where l.id = ${loginId} and r.id = l.runner_id`);
}

/** Notes that a runner was heard of. */
export async function touchRunner(tx: Reader, runnerId: string): Promise<void> {
  await tx.update(runner).set({ heartbeatAt: sql`cs_now()` }).where(eq(runner.id, runnerId));
}

/** Ends the runners of an attempt of a workflow run, of one job when given; returns their ids. */
export async function endRunnersOfWorkflow(
  tx: Tx,
  repositoryId: string,
  workflowRun: string,
  attempt: number,
  job: string | null,
): Promise<string[]> {
  const ended = await tx
    .update(runner)
    .set({ endedAt: sql`cs_now()` })
    .where(
      and(
        eq(runner.repositoryId, repositoryId),
        eq(runner.workflowRun, workflowRun),
        eq(runner.attempt, attempt),
        job === null ? undefined : eq(runner.job, job),
        isNull(runner.endedAt),
      ),
    )
    .returning({ id: runner.id });
  return ended.map((one) => one.id);
}

/** Runners of a repository that are alive: not ended and heard of within `freshMs`. */
export async function listLiveRunners(
  reader: Reader,
  repositoryId: string,
  freshMs: number,
): Promise<Runner[]> {
  return reader
    .select()
    .from(runner)
    .where(
      and(
        eq(runner.repositoryId, repositoryId),
        isNull(runner.endedAt),
        sql`${runner.heartbeatAt} > cs_now() - ${freshMs} * interval '1 millisecond'`,
      ),
    )
    .orderBy(asc(runner.startedAt));
}

/** Ends runners not heard of for `ms`; removes logins and token ids that expired over a day ago (LSE-6). */
export async function pruneRunners(tx: Tx, ms: number): Promise<number> {
  const { rows } = await tx.execute(sql`
    update runner set ended_at = cs_now()
    where ended_at is null and heartbeat_at < cs_now() - ${ms} * interval '1 millisecond' returning id`);
  await tx.execute(sql`delete from jti where expires_at < cs_now()`);
  return rows.length;
}

/** The runner of that id, or null. */
export async function findRunner(reader: Reader, id: string): Promise<Runner | null> {
  const [found] = await reader.select().from(runner).where(eq(runner.id, id)).limit(1);
  return found ?? null;
}
