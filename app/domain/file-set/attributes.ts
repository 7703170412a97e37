/**
 * `.gitattributes` of the merge base (BLK-6): what the repository itself said of its files before
 * this pull request. The deepest folder's last matching line that names an attribute decides.
 */
import picomatch from 'picomatch';

/** One `.gitattributes` file; `folder` is '' for the root, else it ends in a slash. */
export interface AttributesFile {
  readonly folder: string;
  readonly bytes: Buffer;
}

/** What a path is by attributes. */
export interface PathAttributes {
  readonly generated: boolean;
  readonly vendored: boolean;
  readonly binary: boolean;
}

type Name = 'linguist-generated' | 'linguist-vendored' | 'diff';

interface Rule {
  readonly folder: string;
  readonly matches: (path: string) => boolean;
  readonly values: ReadonlyMap<Name, boolean>;
}

/** A longer file, or more lines than this in all, is not read further: its paths are reviewed. */
const MOST_BYTES = 200_000;
const MOST_RULES = 5_000;

/** A look-up of attributes by a path's text. */
export function compileAttributes(files: readonly AttributesFile[]): (path: string) => PathAttributes {
  const rules: Rule[] = [];
  // shallow first, so that reading backwards meets the deepest folder's last line first
  const sorted = [...files].sort((a, b) => a.folder.split('/').length - b.folder.split('/').length);
  for (const { folder, bytes } of sorted) {
    if (bytes.length > MOST_BYTES) continue;
    for (const line of bytes.toString('utf8').split('\n')) {
      if (rules.length >= MOST_RULES) break;
      const rule = readLine(folder, line.replace(/\r$/, ''));
      if (rule !== null) rules.push(rule);
    }
  }
  if (rules.length === 0) return () => NONE;
  rules.reverse();
  return (path) => ({
    generated: attributeOf(rules, path, 'linguist-generated') === true,
    vendored: attributeOf(rules, path, 'linguist-vendored') === true,
    binary: attributeOf(rules, path, 'diff') === false,
  });
}

const NONE: PathAttributes = { generated: false, vendored: false, binary: false };

function attributeOf(rules: readonly Rule[], path: string, name: Name): boolean | undefined {
  for (const rule of rules) {
    const value = rule.values.get(name);
    if (value === undefined || !path.startsWith(rule.folder)) continue;
    if (rule.matches(path.slice(rule.folder.length))) return value;
  }
  return undefined;
}

function readLine(folder: string, line: string): Rule | null {
  const text = line.trimStart();
  if (text === '' || text.startsWith('#') || text.startsWith('[attr]')) return null;
  const quoted = /^"((?:[^"\\]|\\.)*)"(?:[ \t]+(.*))?$/.exec(text);
  const plain = /^(\S+)(?:[ \t]+(.*))?$/.exec(text);
  const pattern = quoted === null ? plain?.[1] : quoted[1]?.replace(/\\(.)/g, '$1');
  const words = (quoted === null ? plain?.[2] : quoted[2])?.split(/[ \t]+/) ?? [];
  if (pattern === undefined || pattern === '' || pattern.startsWith('!') || pattern.endsWith('/'))
    return null;
  const values = new Map<Name, boolean>();
  for (const word of words) readWord(word, values);
  if (values.size === 0) return null;
  const matches = compilePattern(pattern);
  return matches === null ? null : { folder, matches, values };
}

function readWord(word: string, values: Map<Name, boolean>): void {
  if (word === 'binary') values.set('diff', false);
  if (word === '-binary' || word === '!binary') values.set('diff', true);
  const match = /^([-!]?)(linguist-generated|linguist-vendored|diff)(?:=(.*))?$/.exec(word);
  if (match === null) return;
  const name = match[2] as Name;
  // `!name` leaves it unsaid, which for us is reviewed: not generated, not vendored, shown in diffs
  const said = match[1] === '' && match[3] !== 'false';
  values.set(name, name === 'diff' ? match[1] !== '-' : said);
}

/** As in .gitignore: without a slash it is a name at any depth, with one it starts at the folder. */
function compilePattern(pattern: string): ((path: string) => boolean) | null {
  const anchored = pattern.includes('/');
  const glob = pattern.startsWith('/') ? pattern.slice(1) : pattern;
  try {
    const regexp = picomatch.makeRe(glob, {
      dot: true,
      nobrace: true,
      noextglob: true,
      nonegate: true,
      windows: false,
      flags: 's',
      maxLength: 65_536,
    });
    return anchored
      ? (path) => regexp.test(path)
      : (path) => regexp.test(path.slice(path.lastIndexOf('/') + 1));
  } catch {
    return null;
  }
}
