/** Commands of comments: each executed at most once, counted against the limits, remembered for the reply (CMD-3, CMD-4). */
import { and, asc, desc, eq, gt, inArray, isNotNull, ne, sql } from 'drizzle-orm';
import type { Reader, Tx } from '../client.ts';
import { checkRun, command } from '../schema/check.ts';

/** A command that was begun. */
export interface NewCommand {
  readonly commentId: string;
  readonly index: number;
  readonly runId: string;
  readonly repositoryId: string;
  readonly userId: string;
  readonly login: string;
  readonly name: string;
}

/** How a command ended; `reply` is Markdown of our own making, null where only a reaction answers. */
export interface CommandEnd {
  readonly state: 'done' | 'refused';
  readonly code: string | null;
  readonly reply: string | null;
}

/** A command with its end. */
export interface StoredCommand extends NewCommand, CommandEnd {}

/** Takes a command for execution; false when it was taken before. The row commits with what the command does. */
export async function takeCommand(tx: Tx, value: NewCommand): Promise<boolean> {
  const added = await tx
    .insert(command)
    .values({ ...value, state: 'taken', takenAt: sql`cs_now()` })
    .onConflictDoNothing()
    .returning({ index: command.index });
  return added.length > 0;
}

/** Says how a command ended. */
export async function endCommand(tx: Tx, commentId: string, index: number, end: CommandEnd): Promise<void> {
  await tx
    .update(command)
    .set({
      state: end.state,
      code: end.code,
      reply: end.reply === null ? null : Buffer.from(end.reply, 'utf8'),
    })
    .where(and(eq(command.commentId, commentId), eq(command.index, index)));
}

/** How many commands a person gave a run within the last hour, this one not counted. */
export async function countCommands(
  tx: Reader,
  value: Pick<NewCommand, 'runId' | 'userId' | 'commentId' | 'index'>,
): Promise<number> {
  const [row] = await tx
    .select({ n: sql<number>`count(*)::int` })
    .from(command)
    .where(
      and(
        eq(command.runId, value.runId),
        eq(command.userId, value.userId),
        gt(command.takenAt, sql`cs_now() - interval '1 hour'`),
        sql`(${command.commentId}, ${command.index}) <> (${value.commentId}::bigint, ${value.index}::int)`,
      ),
    );
  return row?.n ?? 0;
}

/** How many other comments of a run were answered with text within the last minute. */
export async function countReplies(tx: Reader, runId: string, commentId: string): Promise<number> {
  const [row] = await tx
    .select({ n: sql<number>`count(distinct ${command.commentId})::int` })
    .from(command)
    .where(
      and(
        eq(command.runId, runId),
        ne(command.commentId, commentId),
        isNotNull(command.reply),
        gt(command.takenAt, sql`cs_now() - interval '1 minute'`),
      ),
    );
  return row?.n ?? 0;
}

/** The commands of one comment, in order. */
export async function listCommands(reader: Reader, commentId: string): Promise<StoredCommand[]> {
  const rows = await reader
    .select()
    .from(command)
    .where(eq(command.commentId, commentId))
    .orderBy(asc(command.index));
  return rows.map(plain);
}

/** The newest answered commands of a run, of at most `comments` comments: newest comment first, each in order. */
export async function listReplies(reader: Reader, runId: string, comments: number): Promise<StoredCommand[]> {
  const newest = await reader
    .select({ id: command.commentId })
    .from(command)
    .where(and(eq(command.runId, runId), isNotNull(command.reply)))
    .groupBy(command.commentId)
    .orderBy(desc(sql`max(${command.takenAt})`), desc(command.commentId))
    .limit(comments);
  if (newest.length === 0) return [];
  const ids = newest.map((one) => one.id);
  const rows = await reader
    .select()
    .from(command)
    .where(and(eq(command.runId, runId), inArray(command.commentId, ids), isNotNull(command.reply)))
    .orderBy(asc(command.index));
  return ids.flatMap((id) => rows.filter((row) => row.commentId === id).map(plain));
}

/** When each commit first showed a check run of one of these names to people, oldest first, in milliseconds (GAT-6). */
export async function listPublished(
  reader: Reader,
  repositoryId: string,
  shas: readonly string[],
  names: readonly string[],
): Promise<{ readonly sha: string; readonly atMs: number }[]> {
  if (shas.length === 0) return [];
  const rows = await reader
    .select({ sha: checkRun.sha, at: checkRun.publishedAt })
    .from(checkRun)
    .where(
      and(
        eq(checkRun.repositoryId, repositoryId),
        inArray(checkRun.sha, [...shas]),
        inArray(checkRun.name, [...names]),
        isNotNull(checkRun.publishedAt),
      ),
    )
    .orderBy(asc(checkRun.publishedAt));
  return rows.flatMap((row) => (row.at === null ? [] : [{ sha: row.sha, atMs: row.at.getTime() }]));
}

function plain(row: typeof command.$inferSelect): StoredCommand {
  return {
    commentId: row.commentId,
    index: row.index,
    runId: row.runId ?? '',
    repositoryId: row.repositoryId,
    userId: row.userId,
    login: row.login,
    name: row.name,
    state: row.state === 'done' ? 'done' : 'refused',
    code: row.code,
    reply: row.reply?.toString('utf8') ?? null,
  };
}
