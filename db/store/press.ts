/** Buttons of check runs that were pressed (PUB-6): each delivery of a press once. */
import { and, eq, isNull, ne, or, sql } from 'drizzle-orm';
import type { Reader } from '../client.ts';
import { command } from '../schema/check.ts';
import { press } from '../schema/press.ts';

/** A press as its delivery tells it. */
export interface NewPress {
  readonly delivery: string;
  readonly repositoryId: string;
  readonly sha: string;
  readonly name: string;
  readonly action: string;
  readonly userId: string;
  readonly login: string;
  readonly bot: boolean;
}

/** A press that was taken down; `id` is a decimal string from 1. */
export interface Press extends NewPress {
  readonly id: string;
  readonly pressedAtMs: number;
}

/** Takes a press down, or finds what was taken down of that delivery before. */
export async function notePress(reader: Reader, value: NewPress): Promise<string> {
  const [added] = await reader
    .insert(press)
    .values({ ...value, pressedAt: sql`cs_now()` })
    .onConflictDoNothing()
    .returning({ id: press.id });
  if (added !== undefined) return String(added.id);
  const [known] = await reader.select({ id: press.id }).from(press).where(eq(press.delivery, value.delivery));
  if (known === undefined) throw new Error('a press that is neither new nor known');
  return String(known.id);
}

/** Whether the same person pressed the same button of that check before, and was not refused. */
export async function isPressed(reader: Reader, value: Omit<NewPress, 'login' | 'bot'>): Promise<boolean> {
  const [found] = await reader
    .select({ id: press.id })
    .from(press)
    .leftJoin(command, and(eq(command.commentId, sql`-${press.id}`), eq(command.index, 0)))
    .where(
      and(
        ne(press.delivery, value.delivery),
        eq(press.repositoryId, value.repositoryId),
        eq(press.sha, value.sha),
        eq(press.name, value.name),
        eq(press.action, value.action),
        eq(press.userId, value.userId),
        or(isNull(command.state), ne(command.state, 'refused')),
      ),
    )
    .limit(1);
  return found !== undefined;
}

/** A press by its number; null when there is none. */
export async function findPress(reader: Reader, id: string): Promise<Press | null> {
  const [row] = await reader
    .select()
    .from(press)
    .where(eq(press.id, Number(id)));
  if (row === undefined) return null;
  const { pressedAt, ...rest } = row;
  return { ...rest, id: String(row.id), pressedAtMs: pressedAt.getTime() };
}
