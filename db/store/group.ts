/** Merge groups (GAT-5): their runs, and which runs they rest on. */
import { and, asc, desc, eq, inArray, sql } from 'drizzle-orm';
import type { Reader, Tx } from '../client.ts';
import { gate } from '../schema/check.ts';
import { groupMember } from '../schema/group.ts';
import { run } from '../schema/run.ts';
import { LIVE_STATUSES, type Run } from './run.ts';

/** A member of a group as projected. */
export type StoredMember = typeof groupMember.$inferSelect;

/** The run of a merge group's commit, or null. */
export async function findGroupRun(
  reader: Reader,
  place: { readonly installationId: string; readonly id: string },
  head: string,
): Promise<Run | null> {
  const [found] = await reader
    .select()
    .from(run)
    .where(
      and(
        eq(run.installationId, place.installationId),
        eq(run.repositoryId, place.id),
        eq(run.groupHead, head),
      ),
    )
    .limit(1);
  return found ?? null;
}

/** Puts members by position. */
export async function putMembers(tx: Tx, members: readonly StoredMember[]): Promise<void> {
  if (members.length === 0) return;
  await tx
    .insert(groupMember)
    .values([...members])
    .onConflictDoUpdate({
      target: [groupMember.runId, groupMember.position],
      set: { memberRun: sql`excluded.member_run`, digest: sql`excluded.digest` },
    });
}

/** Members of a group from the front. */
export async function listMembers(reader: Reader, runId: string): Promise<StoredMember[]> {
  return reader
    .select()
    .from(groupMember)
    .where(eq(groupMember.runId, runId))
    .orderBy(asc(groupMember.position));
}

/** Live group runs that rest on a run. */
export async function listGroupsOf(reader: Reader, memberRun: string): Promise<string[]> {
  const rows = await reader
    .select({ id: run.id })
    .from(groupMember)
    .innerJoin(run, eq(run.id, groupMember.runId))
    .where(and(eq(groupMember.memberRun, memberRun), inArray(run.status, [...LIVE_STATUSES])))
    .orderBy(asc(run.id));
  return rows.map((row) => row.id);
}

/** Group runs of a repository with a member of this head, newest first, those that are over too. */
export async function listGroupsOfHead(reader: Reader, repositoryId: string, head: string): Promise<Run[]> {
  const rows = await reader
    .select({ run })
    .from(groupMember)
    .innerJoin(run, eq(run.id, groupMember.runId))
    .where(and(eq(run.repositoryId, repositoryId), eq(groupMember.head, head)))
    .orderBy(desc(run.openedAt), desc(run.id));
  return rows.map((row) => row.run);
}

/** Pull requests of a group whose verdict is another now than the one the group weighed. */
export async function listStaleMembers(reader: Reader, runId: string): Promise<string[]> {
  const rows = await reader
    .select({ pull: groupMember.pull })
    .from(groupMember)
    .innerJoin(gate, eq(gate.runId, groupMember.memberRun))
    .where(and(eq(groupMember.runId, runId), sql`${gate.digest} is distinct from ${groupMember.digest}`))
    .orderBy(asc(groupMember.position));
  return rows.map((row) => row.pull);
}
