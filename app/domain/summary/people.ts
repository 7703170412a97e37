/** What people did about a head, for the summary (GAT-6, GAT-7, PUB-7): an override and an unread file are shown as such. */
import type { GateDecision } from '../gate/decide.ts';
import type { RunState } from '../run-state/state.ts';
import { Markdown, md } from './markdown.ts';

/** An act that this verdict rests on. */
export interface PersonLine {
  readonly act: 'approved' | 'overrode';
  /** Codes of the reasons it took away. */
  readonly codes: readonly string[];
  /** Account id. */
  readonly actor: string;
  readonly permission: string;
  readonly self: boolean;
  /** Their words, as stored; null for a review, or once erased. */
  readonly reason: string | null;
  /** Its row. */
  readonly seq: number;
}

/** A clause that somebody has to confirm, by the name that `/approve` takes. */
export interface ClauseLine {
  readonly name: string;
  readonly text: string | null;
  /** Who is to confirm it: a person where it is absent. */
  readonly by?: 'reviewer';
}

/** The acts that a verdict rests on, in order. */
export function personLines(
  state: RunState,
  { cleared = [], overridden = null }: GateDecision,
  texts: ReadonlyMap<string, string | null>,
): PersonLine[] {
  const codes = new Map<number, string[]>();
  for (const { code, seq } of cleared) codes.set(seq, [...(codes.get(seq) ?? []), code]);
  if (overridden !== null) codes.set(overridden.seq, [...overridden.codes]);
  return state.acts.flatMap((act) => {
    const own = codes.get(act.seq);
    if (own === undefined) return [];
    return [
      {
        act: act.seq === overridden?.seq ? ('overrode' as const) : ('approved' as const),
        codes: own,
        actor: act.actor,
        permission: act.permission,
        self: act.self,
        reason: act.text === null ? null : (texts.get(act.text) ?? null),
        seq: act.seq,
      },
    ];
  });
}

/** The clauses of the blocks that are not dropped. */
export function clauseLines(state: RunState, texts: ReadonlyMap<string, string | null>): ClauseLine[] {
  return [...state.blocks.values()]
    .filter((block) => block.ended !== 'dropped')
    .flatMap((block) => [
      ...block.acceptHuman.map((text, index) => ({
        name: `${block.id}/${index + 1}`,
        text: texts.get(text) ?? null,
      })),
      ...block.accept.map((text, index) => ({
        name: `${block.id}/a${index + 1}`,
        text: texts.get(text) ?? null,
        by: 'reviewer' as const,
      })),
    ]);
}

/** References of the texts that both show. */
export function peopleRefs(state: RunState): string[] {
  const clauses = [...state.blocks.values()].flatMap((block) => [...block.acceptHuman, ...block.accept]);
  return [...clauses, ...state.acts.flatMap((act) => act.text ?? [])];
}

const MOST = 20;

/** Both as a part of the summary; empty where there is nothing. */
export function peoplePart(people: readonly PersonLine[], clauses: readonly ClauseLine[]): Markdown {
  if (people.length + clauses.length === 0) return md``;
  const asked = clauses
    .slice(0, MOST)
    .map(
      (one) =>
        md`- ${Markdown.code(one.name)} asks ${one.by === 'reviewer' ? md`a reviewer, else a person` : md`a person`}: ${(one.text ?? 'text erased').slice(0, 200)}`,
    );
  const did = people.slice(0, MOST).map((one) => {
    const codes = Markdown.join(
      one.codes.map((code) => Markdown.code(code)),
      ', ',
    );
    const own = one.self ? md`, their own work` : md``;
    const why = one.reason === null ? md`` : md`: ${one.reason.slice(0, 200)}`;
    return md`- Account ${Markdown.code(one.actor)} (${one.permission}${own}) ${one.act} ${codes}, row ${one.seq}${why}`;
  });
  return Markdown.join([md`#### People`, Markdown.join([...asked, ...did], '\n')], '\n\n');
}
