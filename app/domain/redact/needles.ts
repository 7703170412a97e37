/** Declared secret values and the forms in which they come back: encoded, escaped, split over lines (REV-8). */
import type { SecretSpan } from './span.ts';

/** A text to look for: as it is, and without its white space where it is long enough to be found split over lines. */
export type Needle = Readonly<{ plain: string; folded: string | null; kind: string }>;

const SHORTEST = 8;
const SHORTEST_FOLDED = 16;

/** A needle for a text, or null where it is too short to be masked. */
export function needleOf(text: string, kind: string): Needle | null {
  if (text.length < SHORTEST) return null;
  const folded = text.replace(/\s+/g, '');
  return { plain: text, folded: folded.length >= SHORTEST_FOLDED ? folded : null, kind };
}

/**
 * The value in base64 and base64url at each of the three alignments it can have inside longer
 * base64, percent-encoded in both styles, as the inside of a JSON string, and in hexadecimal.
 */
export function encodedForms(value: string): string[] {
  const bytes = Buffer.from(value, 'utf8');
  const forms = new Set<string>();
  for (const shift of [0, 1, 2]) {
    const shifted = Buffer.concat([Buffer.alloc(shift), bytes]);
    // Characters that mix in bits of a neighbour differ each time: only the sure middle is looked for.
    const from = Math.ceil((shift * 8) / 6);
    const to = Math.floor((shifted.length * 8) / 6);
    for (const encoding of ['base64', 'base64url'] as const)
      forms.add(shifted.toString(encoding).slice(from, to));
  }
  const percent = encodeURIComponent(value.toWellFormed());
  forms.add(percent);
  forms.add(percent.replaceAll('%20', '+'));
  forms.add(percent.replace(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`));
  forms.add(JSON.stringify(value).slice(1, -1));
  forms.add(bytes.toString('hex'));
  forms.delete(value);
  return [...forms];
}

/** Every place where a needle stands as it is. */
export function searchPlain(text: string, needles: readonly Needle[]): SecretSpan[] {
  const spans: SecretSpan[] = [];
  for (const needle of needles)
    for (
      let at = text.indexOf(needle.plain);
      at >= 0;
      at = text.indexOf(needle.plain, at + needle.plain.length)
    )
      spans.push({ start: at, end: at + needle.plain.length, kind: needle.kind });
  return spans;
}

/** Every place where a long needle stands with white space (a line break, an indent) put in or left out. */
export function searchFolded(text: string, needles: readonly Needle[]): SecretSpan[] {
  if (!needles.some((needle) => needle.folded !== null)) return [];
  const at: number[] = [];
  let folded = '';
  for (const piece of text.matchAll(/\S+/g)) {
    folded += piece[0];
    for (let i = 0; i < piece[0].length; i++) at.push(piece.index + i);
  }
  const spans: SecretSpan[] = [];
  for (const { folded: needle, kind } of needles) {
    if (needle === null) continue;
    for (let i = folded.indexOf(needle); i >= 0; i = folded.indexOf(needle, i + needle.length)) {
      const start = at[i];
      const last = at[i + needle.length - 1];
      if (start !== undefined && last !== undefined) spans.push({ start, end: last + 1, kind });
    }
  }
  return spans;
}
