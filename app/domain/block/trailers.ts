/** Trailers of commits that carry `Block:` (BLK-3). A stranger writes them: a bad one is a note, never a refusal. */
import { entryFault } from '../ownership/entry.ts';

/** What a block declares, over all its commits, in order, each once. */
export interface Declared {
  readonly owns: readonly string[];
  readonly after: readonly string[];
  readonly accept: readonly string[];
  readonly acceptHuman: readonly string[];
  /** The highest level asked for; null: none. */
  readonly level: 'L1' | 'L2' | 'L3' | null;
  readonly kinds: readonly string[];
  readonly tests: readonly string[];
  readonly notes: readonly BlockNote[];
}

/** What a person should know of a block: a trailer that was not understood, for instance. */
export interface BlockNote {
  readonly code: 'bad_trailer' | 'bad_owned' | 'slug_taken' | 'bad_after' | 'dependency_cycle';
  readonly detail: string;
}

/** A trailer as git parses it. */
export interface Trailer {
  readonly key: string;
  readonly value: string;
}

// one block's row stays under 32 KiB with room for its commits
const MOST = { owns: 200, ownsBytes: 8000, after: 50, clauses: 25, clause: 1000, notes: 20, detail: 100 };

/** The `Block:` slug of a commit's trailers: the first that is valid, else null; and what other `Block:` trailers say that is not it. */
export function blockSlug(trailers: readonly Trailer[]): {
  readonly slug: string | null;
  readonly bad: readonly string[];
} {
  let slug: string | null = null;
  const bad: string[] = [];
  for (const { key, value } of trailers) {
    if (key.toLowerCase() !== 'block') continue;
    if (slug === null && /^[a-z0-9][a-z0-9-]{0,59}$/.test(value)) slug = value;
    else if (value !== slug) bad.push(value);
  }
  return { slug, bad };
}

/** Reads what commits declare; `lists` are the trailers of the block's commits that carry a valid `Block:`. */
export function readDeclared(lists: readonly (readonly Trailer[])[]): Declared {
  const owns = new Set<string>();
  const after = new Set<string>();
  const accept = new Set<string>();
  const acceptHuman = new Set<string>();
  const kinds = new Set<string>();
  const tests = new Set<string>();
  const notes: BlockNote[] = [];
  let level: Declared['level'] = null;
  let ownsBytes = 0;
  const note = (code: BlockNote['code'], detail: string) => {
    if (notes.length < MOST.notes) notes.push({ code, detail: cut(detail, MOST.detail) });
  };
  for (const { key, value } of lists.flat()) {
    switch (key.toLowerCase()) {
      case 'owns': {
        const fault = entryFault(value);
        const size = Buffer.byteLength(JSON.stringify(value));
        if (fault !== null) note('bad_owned', `Owns: ${value} ${fault}`);
        else if (owns.size >= MOST.owns || ownsBytes + size > MOST.ownsBytes)
          note('bad_owned', 'more Owns than a block can hold');
        else if (!owns.has(value)) {
          owns.add(value);
          ownsBytes += size;
        }
        break;
      }
      case 'after':
        if (!/^[a-z0-9][a-z0-9-]{0,63}$/.test(value) || after.size >= MOST.after)
          note('bad_trailer', `After: ${value}`);
        else after.add(value);
        break;
      case 'accept':
        clause(accept, value, 'Accept', note);
        break;
      case 'accept-human':
        clause(acceptHuman, value, 'Accept-Human', note);
        break;
      case 'level':
        if (value !== 'L1' && value !== 'L2' && value !== 'L3') note('bad_trailer', `Level: ${value}`);
        else if (level === null || value > level) level = value;
        break;
      case 'kind':
        if (/^(?:docs|tests|config|generated|code|mixed)$/.test(value)) kinds.add(value);
        else note('bad_trailer', `Kind: ${value}`);
        break;
      case 'tests':
        clause(tests, value, 'Tests', note);
        break;
    }
  }
  return {
    owns: [...owns],
    after: [...after],
    accept: [...accept],
    acceptHuman: [...acceptHuman],
    level,
    kinds: [...kinds],
    tests: [...tests],
    notes,
  };
}

function clause(
  into: Set<string>,
  value: string,
  key: string,
  note: (code: 'bad_trailer', detail: string) => void,
): void {
  if (value.trim() === '' || value.length > MOST.clause || into.size >= MOST.clauses)
    note('bad_trailer', `${key}: ${value}`);
  else into.add(value);
}

/** Cut between characters, never inside one. */
function cut(text: string, most: number): string {
  const characters = [...text];
  return characters.length <= most ? text : `${characters.slice(0, most - 1).join('')}…`;
}
