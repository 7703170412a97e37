/** One owned entry (OWN-1, OWN-2): an exact path, a directory or a glob, as commits and rows write it. */
import type * as z from 'zod';
import type { entryKindSchema } from '../ledger/row-fields.ts';
import { isGlob, patternFault } from '../policy/pattern.ts';

/** What a path was when it was first claimed (OWN-2). */
export type EntryKind = z.infer<typeof entryKindSchema>;

// a stranger writes these globs and we run them: each bound keeps the worst path at about n² steps
const MOST_GLOBSTARS = 2;
const MOST_STARS_A_SEGMENT = 2;
const MOST_STARS = 6;
const MOST_BRACES = 2;

/** Why a text is no owned entry (`bad_owned`), as words that go on from it; null when it is one. */
export function entryFault(text: string): string | null {
  const fault = patternFault(text);
  if (fault !== null || !isGlob(text)) return fault;
  if (text.includes('!(')) return 'is negated; only what is meant may be listed';
  const segments = text.split('/');
  const globstars = segments.filter((segment) => segment.includes('**'));
  if (globstars.some((segment) => segment !== '**')) return 'has ** inside a segment';
  const stars = segments.filter((segment) => segment !== '**').map((s) => s.split('*').length - 1);
  const all = stars.reduce((sum, n) => sum + n, 0);
  if (
    globstars.length > MOST_GLOBSTARS ||
    Math.max(0, ...stars) > MOST_STARS_A_SEGMENT ||
    all > MOST_STARS ||
    text.split('{').length - 1 > MOST_BRACES
  ) {
    return 'has too many wildcards';
  }
  return null;
}

/** What a path is now, for the record of its first claim. */
export function entryKind(modeHead: string | null): EntryKind {
  if (modeHead === null) return 'absent';
  if (modeHead === '120000') return 'symlink';
  if (modeHead === '160000') return 'submodule';
  if (modeHead === '040000') return 'directory';
  return 'file';
}
