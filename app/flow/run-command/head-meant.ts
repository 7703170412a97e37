/** Which head a person means (GAT-6): the commit they name, else the head of the last gate that was shown before they asked. */
import { listPublished } from '../../../db/store/command.ts';
import { shownHead } from '../../domain/command/rights.ts';
import type { CommandName } from '../../domain/command/table.ts';
import { Markdown, md } from '../../domain/summary/markdown.ts';
import { Refusal } from '../../errors.ts';
import { Declined, type Given } from './given.ts';

/** The names our gate is published under. */
const GATES = ['countersign', 'countersign (advisory)'];

/** The head meant by a commit's first digits, or by none; refused with `conflict` where it is not clear. */
export async function headMeant(
  { unit, judged, commentMs }: Given,
  name: CommandName,
  sha: string | null,
): Promise<string> {
  const { run, tx } = unit;
  const heads = [
    ...new Set([run.toldHead, ...judged.state.heads.map((one) => one.head), ...judged.state.gates.keys()]),
  ];
  if (sha !== null) {
    const named = heads.filter((head) => head.startsWith(sha));
    const [only] = named;
    if (only !== undefined && named.length === 1) return only;
    throw new Declined(
      'conflict',
      md`${Markdown.code(sha.slice(0, 40))} is no head of this pull request`,
      `${name} ${shortSha(run.toldHead)}`,
    );
  }
  const shown = shownHead(await listPublished(tx, run.repositoryId, heads, GATES), commentMs);
  if ('head' in shown) return shown.head;
  const why =
    shown.unclear === 'nothing_shown'
      ? 'no verdict was shown before your comment, so it is not clear which head you saw'
      : 'another head was shown in the second of your comment, so it is not clear which one you saw';
  throw new Refusal('conflict', why, `${name} ${shortSha(run.toldHead)}`);
}

/** The same, which must be the present head: an act on another one clears nothing. `done` says what was not done. */
export async function presentHeadMeant(
  given: Given,
  name: CommandName,
  sha: string | null,
  done: string,
): Promise<string> {
  const head = await headMeant(given, name, sha);
  const present = given.unit.run.toldHead;
  if (head === present) return head;
  throw new Declined(
    'conflict',
    md`${Markdown.code(shortSha(head))} is not the present head, so nothing was ${done}`,
    `${name} ${shortSha(present)}`,
  );
}

/** The first digits of a commit, as people write it. */
export const shortSha = (sha: string): string => sha.slice(0, 12);
