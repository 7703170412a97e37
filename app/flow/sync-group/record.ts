/** Writes what a merge group is and how it stands: rows first, then the projections of the same (GAT-5). */
import { putFiles, removeFiles } from '../../../db/store/file.ts';
import { putMembers } from '../../../db/store/group.ts';
import { storePolicy } from '../../../db/store/policy.ts';
import { updateRun } from '../../../db/store/run.ts';
import { putText } from '../../../db/store/text.ts';
import { filesDigest } from '../../domain/file-set.ts';
import { knownPaths } from '../../domain/group/known.ts';
import type { Actor, Cause, DecidedPath } from '../../domain/ledger/row-fields.ts';
import type { RowData, RowKind } from '../../domain/ledger/row-kinds.ts';
import { decodePath, pathKey } from '../../domain/path.ts';
import type { RunState } from '../../domain/run-state/state.ts';
import type { RunUnit } from '../append-rows.ts';
import type { Deps } from '../deps.ts';
import { split } from '../sync-run/record.ts';
import type { JudgedMember } from './members.ts';
import type { GroupTruth } from './read.ts';

type Append = <K extends RowKind>(kind: K, data: RowData<K>) => number;

function appender(unit: RunUnit, deps: Deps): Append {
  const actor: Actor = { kind: 'app', id: deps.github.appId, via: 'schedule' };
  const cause: Cause = { kind: 'schedule', id: `sync-group:${unit.run.id}`, sha256: null };
  return (kind, data) => unit.append(kind, { block: null, actor, cause, data });
}

/** Records policy, file set, head and members; what was recorded before is not said again. */
export async function recordReading(
  deps: Deps,
  unit: RunUnit,
  state: RunState,
  truth: GroupTruth,
): Promise<void> {
  const { run, tx } = unit;
  const append = appender(unit, deps);
  await recordPolicy(unit, append, state, truth);
  const { policy, files, head, base, reading } = truth;
  if (policy.state === 'valid' && files !== null) {
    // whoever may queue has write, and what is queued was allowed: its branch is of this repository (RUN-10)
    if (state.allowances.length === 0)
      append('run.allowed', { rule: 'same_repository', scope: 'head', head });
    if (state.heads.length === 0) {
      recordHead(append, unit, policy.hash, files, truth);
      await projectFiles(unit, files, truth.lines);
    }
    const listed = truth.members !== null;
    if (state.group === null || (listed && !state.group.read.listed)) {
      append('group.read', {
        head,
        base,
        listed,
        timeout_ms: truth.timeoutMs,
        tree: truth.tree,
        merged: truth.merged,
        members: truth.members?.length ?? 0,
      });
      await putMembers(
        tx,
        (truth.members ?? []).map((member, position) => ({
          runId: run.id,
          position,
          ...member,
          memberRun: null,
          digest: null,
        })),
      );
    }
  }
  await updateRun(tx, run.id, {
    policyHash: policy.state === 'valid' ? policy.hash : null,
    mode: policy.state === 'valid' ? policy.policy.mode : run.mode,
    ...(files === null
      ? {}
      : {
          head,
          base,
          mergeBase: reading.mergeBase,
        }),
  });
}

async function recordPolicy(
  unit: RunUnit,
  append: Append,
  state: RunState,
  truth: GroupTruth,
): Promise<void> {
  const { policy } = truth;
  const hash = policy.state === 'absent' ? null : policy.hash;
  if (state.policy?.state === policy.state && state.policy.hash === hash) return;
  if (policy.state === 'valid') await storePolicy(unit.tx, policy.bytes);
  const mode = policy.state === 'valid' ? policy.policy.mode : unit.run.mode;
  const row = { state: policy.state, hash, commit: policy.commit, mode };
  if (policy.state !== 'invalid') {
    append('run.policy', row);
    return;
  }
  const { code, line, message } = policy.error;
  append('run.policy', { ...row, error: { code, line, text: await putText(unit.tx, message) } });
}

async function projectFiles(
  { tx, run }: RunUnit,
  files: readonly DecidedPath[],
  lines: ReadonlyMap<string, number>,
): Promise<void> {
  await putFiles(
    tx,
    files.map((file) => ({
      runId: run.id,
      path: decodePath(file.path),
      fromPath: file.from === undefined ? null : decodePath(file.from),
      status: file.status,
      modeBase: file.mode.base,
      modeHead: file.mode.head,
      blobBase: file.blob.base,
      blobHead: file.blob.head,
      kind: file.kind,
      level: file.level,
      asked: file.asked ?? null,
      reason: file.reason ?? null,
      lines: file.blob.head === null ? null : (lines.get(file.blob.head) ?? null),
      blockId: file.block,
      ownership: file.ownership,
      key: file.key,
    })),
  );
}

function recordHead(
  append: Append,
  { run }: RunUnit,
  policy: string,
  files: readonly DecidedPath[],
  { head, base, reading }: GroupTruth,
): void {
  if (files.length > 0)
    for (const part of split([], files))
      append('decision', { question: 'level', source: 'rules', head, policy, ...part });
  append('run.head', {
    head,
    base_ref: run.baseRef,
    base,
    merge_base: reading.mergeBase,
    prior: null,
    ancestor: null,
    draft: false,
    commits: reading.commits.length,
    files: files.length,
    files_digest: filesDigest(files.map((file) => file.path)),
  });
}

/** What of the standing was new, and how many paths no member knows. */
export interface Standing {
  readonly changed: boolean;
  readonly unknown: number;
}

/**
 * Records the members' verdicts and how each path is known; the paths that are not become the files that
 * tickets are cut of. A member that was decided under another policy is synced.
 */
export async function recordStanding(
  deps: Deps,
  unit: RunUnit,
  state: RunState,
  members: readonly JudgedMember[],
): Promise<Standing> {
  const { run, tx } = unit;
  const { group } = state;
  if (group === null) return { changed: false, unknown: 0 };
  const append = appender(unit, deps);
  let changed = false;
  for (const { member } of members) {
    if (said(group.members.get(member.position)) !== said(member)) {
      append('group.member', member);
      changed = true;
    }
    if (member.run !== null && member.conclusion !== null && member.policy !== (state.policy?.hash ?? null))
      unit.enqueue('sync-run', { run: member.run }, { key: `sync-run:${member.run}`, priority: 10 });
  }
  await putMembers(
    tx,
    members.map(({ member: { position, pull, head, run: memberRun, digest } }) => {
      return { runId: run.id, position, pull, head, memberRun, digest };
    }),
  );
  const fresh = knownPaths(state, members);
  for (const row of fresh.rows) append('group.known', row);
  const unknown = [...state.files.values()].filter((file) => {
    const key = pathKey(file.path);
    return !group.known.has(key) && !fresh.keys.has(key);
  });
  await removeFiles(
    tx,
    run.id,
    [...fresh.keys].map((key) => Buffer.from(key, 'latin1')),
  );
  if (run.allowedRule === null) {
    // only now may it spend: before, a path that a member knows could have been given to a runner
    const allowed = {
      allowedRule: 'same_repository',
      allowedScope: 'head',
      allowedHead: run.toldHead,
    } as const;
    await updateRun(tx, run.id, allowed);
    changed = true;
  }
  return { changed: changed || fresh.rows.length > 0, unknown: unknown.length };
}

/** The order of a row's fields is the canonical one, that of ours is not. */
function said(member: RowData<'group.member'> | undefined): string {
  return member === undefined ? '' : JSON.stringify(member, Object.keys(member).sort());
}
