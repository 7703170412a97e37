/**
 * Which blocks declare a path (OWN-1, OWN-3): a trie over the literal beginnings of all entries, so
 * that a path meets only the patterns that could match it. 3,000 paths against 4,000 patterns, cold:
 * bench G1.
 */
import picomatch from 'picomatch';
import { isGlob } from '../policy/pattern.ts';

/** A declaration: entries that passed `entryFault`, and whose they are. */
export interface Declaration {
  readonly block: string;
  readonly entries: readonly string[];
}

interface Glob {
  readonly block: string;
  readonly pattern: string;
  /** A literal segment that any match contains; null when there is none. */
  readonly needle: string | null;
  regexp: RegExp | null;
}

interface Node {
  readonly children: Map<string, Node>;
  readonly exact: string[];
  readonly below: string[];
  /** Globs by the literal name they end in, by the extension they end in, and the rest. */
  readonly byName: Map<string, Glob[]>;
  readonly byExtension: Map<string, Glob[]>;
  readonly rest: Glob[];
}

const SPECIAL = /[*?[\]{}()]/;

/** A look-up from a path's text to the blocks that declare it, each once, in order of declaration. */
export function compileDeclarations(declarations: readonly Declaration[]): (path: string) => string[] {
  const root = makeNode();
  const order = new Map<string, number>();
  for (const { block, entries } of declarations) {
    if (!order.has(block)) order.set(block, order.size);
    for (const entry of entries) insert(root, block, entry);
  }
  return (path) => {
    const found = new Set<string>();
    walk(root, path, found);
    if (found.size < 2) return [...found];
    return [...found].sort((a, b) => (order.get(a) ?? 0) - (order.get(b) ?? 0));
  };
}

/** Whether any of these entries covers the path. */
export function compileEntries(entries: readonly string[]): (path: string) => boolean {
  const owners = compileDeclarations([{ block: '', entries }]);
  return (path) => owners(path).length > 0;
}

function insert(root: Node, block: string, entry: string): void {
  const directory = entry.endsWith('/');
  const segments = (directory ? entry.slice(0, -1) : entry).split('/');
  const glob = isGlob(entry);
  const literal = glob ? segments.findIndex((segment) => SPECIAL.test(segment)) : segments.length;
  let node = root;
  for (let i = 0; i < literal; i++) node = child(node, segments[i] ?? '');
  if (!glob) {
    (directory ? node.below : node.exact).push(block);
    return;
  }
  const pattern = directory ? `${entry}**` : entry;
  const last = directory ? '**' : (segments.at(-1) ?? '');
  const made: Glob = { block, pattern, needle: needleOf(segments.slice(literal, -1)), regexp: null };
  const extension = /^\*(?:\.[^.*?[\]{}()]+)*\.([^.*?[\]{}()]+)$/.exec(last)?.[1];
  if (segments.length - literal === 1 && last === '**') node.below.push(block);
  else if (!SPECIAL.test(last)) add(node.byName, last, made);
  else if (extension !== undefined) add(node.byExtension, extension, made);
  else node.rest.push(made);
}

function walk(root: Node, path: string, found: Set<string>): void {
  const name = path.slice(path.lastIndexOf('/') + 1);
  const dot = name.lastIndexOf('.');
  const extension = dot < 0 ? null : name.slice(dot + 1);
  let node: Node | undefined = root;
  for (let at = 0; ; ) {
    for (const block of node.below) found.add(block);
    if (node.byName.size > 0) test(node.byName.get(name), path, found);
    if (extension !== null && node.byExtension.size > 0) test(node.byExtension.get(extension), path, found);
    test(node.rest, path, found);
    const slash = path.indexOf('/', at);
    node = node.children.get(slash < 0 ? path.slice(at) : path.slice(at, slash));
    if (node === undefined) return;
    if (slash < 0) {
      for (const block of node.exact) found.add(block);
      return;
    }
    at = slash + 1;
  }
}

function test(globs: readonly Glob[] | undefined, path: string, found: Set<string>): void {
  if (globs === undefined) return;
  for (const glob of globs) {
    if (found.has(glob.block) || (glob.needle !== null && !path.includes(glob.needle))) continue;
    glob.regexp ??= compile(glob.pattern);
    if (glob.regexp.test(path)) found.add(glob.block);
  }
}

/** dotAll: without it a line feed in a name would slip past every `**`. */
function compile(pattern: string): RegExp {
  return picomatch.makeRe(pattern, {
    dot: true,
    nocase: false,
    noextglob: true,
    nonegate: true,
    strictBrackets: true,
    windows: false,
    flags: 's',
    maxLength: 65_536,
  });
}

function needleOf(segments: readonly string[]): string | null {
  const literal = segments.filter((segment) => !SPECIAL.test(segment));
  return literal.length === 0 ? null : literal.reduce((a, b) => (b.length > a.length ? b : a));
}

function makeNode(): Node {
  return {
    children: new Map(),
    exact: [],
    below: [],
    byName: new Map(),
    byExtension: new Map(),
    rest: [],
  };
}

function child(node: Node, segment: string): Node {
  let found = node.children.get(segment);
  if (found === undefined) {
    found = makeNode();
    node.children.set(segment, found);
  }
  return found;
}

function add(map: Map<string, Glob[]>, key: string, glob: Glob): void {
  const known = map.get(key);
  if (known === undefined) map.set(key, [glob]);
  else known.push(glob);
}
