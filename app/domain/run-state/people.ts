/** Steps of the fold that say who made what, and what a head's content is (GAT-6). */
import { createHash } from 'node:crypto';
import type { DecidedPath } from '../ledger/row-fields.ts';
import type { RowData } from '../ledger/row-kinds.ts';
import { pathKey } from '../path.ts';
import type { RunState } from './state.ts';

/**
 * Lower-case hex SHA-256 over every path with its modes and blobs of both sides, in order of path bytes:
 * equal for two heads exactly where an act on one may count on the other (GAT-6, `identical`).
 */
export function contentDigest(files: Iterable<Pick<DecidedPath, 'path' | 'mode' | 'blob'>>): string {
  const lines = Array.from(files, ({ path, mode, blob }) => {
    const sides = [mode.base, mode.head, blob.base, blob.head].map((one) => one ?? '-').join(' ');
    return `${pathKey(path)}\0${sides}\0`;
  });
  const hash = createHash('sha256').update('countersign/content/v1\n');
  for (const line of lines.sort()) hash.update(Buffer.from(line, 'latin1'));
  return hash.digest('hex');
}

/** One row of `run.people`: a part that does not belong to what was begun leaves it incomplete. */
export function foldPeople(state: RunState, data: RowData<'run.people'>): void {
  for (const commit of data.commits) if (!state.arrivals.has(commit)) state.arrivals.set(commit, data.head);
  if (data.first) {
    state.people = {
      head: data.head,
      mergeBase: data.merge_base,
      complete: false,
      byPath: new Map(),
      rest: null,
    };
  }
  const { people } = state;
  if (people === null || people.complete || people.head !== data.head) return;
  for (const group of data.groups) {
    if (group.paths === null) people.rest = group;
    else for (const path of group.paths) people.byPath.set(pathKey(path), group);
  }
  if (data.last && people.mergeBase === data.merge_base) people.complete = true;
}
