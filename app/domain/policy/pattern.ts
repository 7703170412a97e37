/**
 * Path patterns as the policy and `Owns` write them (OWN-1): an exact path, a directory (`dir/`), or a
 * glob, anchored at the root, case-sensitive, dots matched. Matched by the automaton of ownership/match.
 */
import picomatch from 'picomatch';

/** Why a text is not a pattern (`bad_owned`), or null when it is one. */
export function patternFault(text: string): string | null {
  if (text.length === 0) return 'is empty';
  if (Buffer.byteLength(text, 'utf8') > 4096) return 'is longer than 4,096 bytes';
  if (!text.isWellFormed()) return 'is not valid text';
  if (text.startsWith('!')) return 'is negated; only what is meant may be listed';
  if (text.startsWith('/')) return 'is absolute; patterns start at the root of the repository';
  if (text.includes('\\')) return 'holds a backslash';
  for (const char of text) {
    const code = char.codePointAt(0) ?? 0;
    if (code < 0x20 || (code >= 0x7f && code <= 0x9f)) return 'holds a control character';
  }
  const segments = (text.endsWith('/') ? text.slice(0, -1) : text).split('/');
  for (const segment of segments) {
    if (segment === '') return 'holds an empty segment';
    if (segment === '.' || segment === '..') return `holds the segment "${segment}"`;
    if (segment !== segment.trim()) return 'has a segment that starts or ends with a space';
  }
  if (isGlob(text)) {
    try {
      compile(text);
    } catch {
      return 'is not a glob that can be read';
    }
  }
  return null;
}

/** Whether a valid pattern is a glob, as against an exact path or a directory. */
export function isGlob(text: string): boolean {
  return /[*?[\]{}()]/.test(text);
}

// no extglobs: `+(+(a))` makes a regular expression that can run for ever on a hostile path
const compile = (text: string) =>
  picomatch(text.endsWith('/') ? `${text}**` : text, {
    dot: true,
    nocase: false,
    noextglob: true,
    nonegate: true,
    strictBrackets: true,
    windows: false,
    // without dotAll a line feed in a name would slip past every `**`
    flags: 's',
    maxLength: 65_536,
  });
