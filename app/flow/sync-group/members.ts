/** The verdicts of a merge group's members, each by its own verified rows (GAT-5). Reads only. */
import type { StoredMember } from '../../../db/store/group.ts';
import { findRunOfPull, type Run } from '../../../db/store/run.ts';
import type { RowData } from '../../domain/ledger/row-kinds.ts';
import { foldRows } from '../../domain/run-state/fold.ts';
import { type FileFact, presentHead } from '../../domain/run-state/state.ts';
import type { Deps } from '../deps.ts';
import { proveRun } from '../prove-run.ts';
import { wholeRows } from '../verify-run.ts';

/** A member as judged, with the paths it was judged on; none where its verdict is no `success` on that head. */
export interface JudgedMember {
  readonly member: RowData<'group.member'>;
  readonly files: ReadonlyMap<string, FileFact>;
}

const NOTHING = { seq: null, digest: null, conclusion: null, policy: null, reasons: [] } as const;

/** Judges each member by its newest verdict on the head that was queued; in full and against what GitHub keeps, since a green rests on it (LED-9). */
export async function judgeMembers(
  deps: Deps,
  group: Run,
  members: readonly StoredMember[],
): Promise<JudgedMember[]> {
  const judged: JudgedMember[] = [];
  for (const { position, pull, head } of members) {
    const run = await findRunOfPull(deps.database.db, {
      installationId: group.installationId,
      repositoryId: group.repositoryId,
      pull,
    });
    judged.push(await judgeMember(deps, run, { position, pull, head }));
  }
  return judged;
}

async function judgeMember(
  deps: Deps,
  run: Run | null,
  queued: { readonly position: number; readonly pull: string; readonly head: string },
): Promise<JudgedMember> {
  const none = { member: { ...queued, run: run?.id ?? null, ...NOTHING, reasons: [] }, files: new Map() };
  if (run === null) return none;
  const broken: JudgedMember = {
    ...none,
    member: { ...none.member, conclusion: 'failure', reasons: ['ledger_invalid'] },
  };
  const rows = await wholeRows(deps, run, { full: true });
  if (rows === null) return broken;
  const state = foldRows(rows);
  // closed without a merge: GitHub takes it out of the queue, and nothing rests on it
  if (run.status === 'closed')
    return { ...none, member: { ...none.member, conclusion: 'cancelled', reasons: ['closed'] } };
  const gate = state.gates.get(queued.head);
  if (gate === undefined) return none;
  // a tail that was cut can be what took this green back; GitHub is asked where a green would rest on it
  if (gate.conclusion === 'success' && (await proveRun(deps, run)) === null) return broken;
  const member = {
    ...none.member,
    seq: gate.seq,
    digest: gate.digest,
    conclusion: gate.conclusion,
    policy: gate.policy,
    reasons: gate.reasons.map((reason) => reason.code),
  };
  const whole = gate.conclusion === 'success' && presentHead(state)?.head === queued.head;
  return { member, files: whole ? state.files : new Map() };
}
