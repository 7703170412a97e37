/** What people did on a run, by its verified rows: who, what, with which right, and whether it was taken back. */

import { plain } from '../../domain/neutralise.ts';
import type { Fact } from '../../domain/run-state/fact.ts';
import type { Texts } from '../../domain/summary/report.ts';

/** One act of a person. */
export interface ActView {
  readonly seq: number;
  readonly atMs: number;
  readonly act: string;
  /** The login where it is known, else the account's id. */
  readonly who: string;
  readonly permission: string | null;
  readonly head: string | null;
  /** What they said with it; null: nothing, or erased. */
  readonly said: string | null;
  /** By the author of the pull request. */
  readonly self: boolean;
  readonly revoked: boolean;
}

/** References of what people said. */
export function actRefs(rows: readonly Fact[]): string[] {
  return rows.filter((row) => row.actor.kind === 'person').flatMap((row) => refOf(row) ?? []);
}

/** The acts, newest first; `logins` by user id. */
export function readActs(
  rows: readonly Fact[],
  logins: ReadonlyMap<string, string>,
  texts: Texts,
): ActView[] {
  const revoked = new Set(rows.flatMap((row) => (row.kind === 'human.revoked' ? [row.data.seq] : [])));
  return rows
    .filter((row) => row.actor.kind === 'person')
    .map((row) => {
      const ref = refOf(row);
      const said = ref === null ? null : (texts.get(ref) ?? null);
      const acted = row.kind === 'human.acted' ? row.data : null;
      return {
        seq: row.seq,
        atMs: Date.parse(row.at),
        act: plain(nameOf(row)),
        who: logins.get(row.actor.id) ?? `account ${plain(row.actor.id)}`,
        permission: acted?.permission ?? null,
        head: acted?.head ?? null,
        said: said === null ? null : plain(said),
        self: acted?.self ?? false,
        revoked: revoked.has(row.seq),
      };
    })
    .reverse();
}

const VERBS: Readonly<Record<string, string>> = {
  'run.opened': 'open',
  'run.pushed': 'push',
  'run.allowed': 'allow',
  'run.reopened': 'reopen',
  'run.closed': 'close',
  'run.sealed': 'seal',
  'finding.answered': 'answer',
};

function nameOf(row: Fact): string {
  const { data } = row;
  if (row.kind === 'human.acted')
    return row.data.clause === null ? row.data.act : `${row.data.act} ${row.data.clause}`;
  if (row.kind === 'control.requested') return row.data.action;
  const verb = VERBS[row.kind] ?? row.kind;
  return 'finding' in data && typeof data.finding === 'number' ? `${verb} F${data.finding}` : verb;
}

function refOf(row: Fact): string | null {
  const { data } = row;
  return 'text' in data && typeof data.text === 'string' ? data.text : null;
}
