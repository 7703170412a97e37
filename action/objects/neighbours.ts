/** What a reviewer sees of the change around its file (REV-2): hunks of the nearest other files, within a budget. */
import { decodePath, pathKey, type WirePath } from '../../app/domain/path.ts';
import type { LeasedTicket } from '../../app/protocol/runner.ts';
import { readContent } from './content.ts';
import type { ChangedFile } from './diff.ts';
import type { Objects } from './store.ts';

/** Another changed file with what changed in it, as unified hunks; cut at a line, and then it ends in `…`. */
export type Neighbour = Readonly<{ path: WirePath; hunks: string }>;

/** About 8,000 tokens for all, 2,000 for one: context, not a second review. */
const BUDGET = 24_000;
const BUDGET_OF_ONE = 6000;
const MOST_FILES = 12;
const LARGEST_FILE = 200_000;

/** The hunks of the files nearest to the ticket's by folder; what cannot be read as text is left to the list of names. */
export async function readNeighbours(
  objects: Objects,
  ticket: LeasedTicket,
  others: readonly ChangedFile[],
  signal: AbortSignal,
): Promise<Neighbour[]> {
  const own = foldersOf(ticket.path);
  const nearest = others
    .filter((file) => file.blob.head !== null && (file.mode.head ?? '').startsWith('100'))
    .map((file) => ({ file, near: shared(own, foldersOf(file.path)) }))
    .sort((a, b) => b.near - a.near || (pathKey(a.file.path) < pathKey(b.file.path) ? -1 : 1))
    .slice(0, MOST_FILES)
    .map(({ file }) => file);
  const oids = nearest.flatMap(({ blob, mode }) =>
    [mode.base?.startsWith('100') === true ? blob.base : null, blob.head].filter((oid) => oid !== null),
  );
  const blobs = await objects.blobs(ticket, [...new Set(oids)], signal);
  const read = await Promise.all(
    nearest.map(async ({ path, blob }): Promise<Neighbour | null> => {
      const sides = [blob.base, blob.head].map((oid) => (oid === null ? undefined : blobs.get(oid)));
      const readable = sides.every(
        (side) =>
          side === undefined ||
          (side.size <= LARGEST_FILE && readContent(side.bytes, '100644', 20_000).kind === 'text'),
      );
      const head = sides[1];
      if (!readable || head === undefined) return null;
      const added = sides[0] === undefined ? (head.bytes ?? Buffer.alloc(0)).toString('utf8') : null;
      const diff =
        added ?? (await objects.diff(ticket, blob.base ?? '', blob.head ?? '', signal)).replace(/^[^@]*/, '');
      return { path, hunks: added === null ? diff : added.replace(/^/gm, '+') };
    }),
  );
  const shown: Neighbour[] = [];
  let left = BUDGET;
  for (const one of read) {
    if (one === null || left <= 0) continue;
    const hunks = cutAtLine(one.hunks, Math.min(BUDGET_OF_ONE, left));
    left -= hunks.length;
    if (hunks !== '') shown.push({ path: one.path, hunks });
  }
  return shown;
}

function foldersOf(path: WirePath): string[] {
  return decodePath(path).toString('latin1').split('/').slice(0, -1);
}

function shared(a: readonly string[], b: readonly string[]): number {
  const differs = a.findIndex((part, i) => part !== b[i]);
  return differs < 0 ? a.length : differs;
}

function cutAtLine(text: string, max: number): string {
  if (text.length <= max) return text;
  const cut = text.slice(0, Math.max(0, text.lastIndexOf('\n', max)));
  return cut === '' ? '' : `${cut.toWellFormed()}\n…`;
}
