/**
 * Which blocks declare a path (OWN-1, OWN-3). All entries share one automaton over path segments: a
 * path walks it once and meets only the entries that can still match, so 4,000 entries cost little
 * more than 40. Semantics are picomatch's with `dot: true` (a property test holds the two together);
 * only what reaches over a slash, such as `{a/b,c}`, is left to a whole regular expression.
 */
import picomatch from 'picomatch';
import { decodePath, type WirePath } from '../path.ts';
import { isGlob } from '../policy/pattern.ts';

/** A declaration: entries that passed `entryFault`, and whose they are. */
export interface Declaration {
  readonly block: string;
  readonly entries: readonly string[];
}

/** What follows a beginning of a path. */
interface Node {
  readonly literals: Map<string, Node>;
  /** Segment globs by their text. */
  readonly globs: Map<string, { readonly test: (segment: string) => boolean; readonly node: Node }>;
  /** After any number of segments, none included. */
  any: Node | null;
  /** Whether this node stands for `**`: it stays for every further segment. */
  readonly stays: boolean;
  /** Blocks of entries that end here. */
  readonly ends: string[];
  /** Blocks of directories that end here: they own what follows, not the name itself. */
  readonly below: string[];
}

/** A look-up from a path's text to the blocks that declare it, each once, in order of declaration. */
export function compileDeclarations(declarations: readonly Declaration[]): (path: string) => string[] {
  const root = makeNode(false);
  const whole: { readonly block: string; readonly regexp: RegExp }[] = [];
  const order = new Map<string, number>();
  const tests = new Map<string, (segment: string) => boolean>();
  for (const { block, entries } of declarations) {
    if (!order.has(block)) order.set(block, order.size);
    for (const entry of entries) {
      if (reachesOver(entry)) whole.push({ block, regexp: compile(entry) });
      else insert(root, block, entry, tests);
    }
  }
  return (path) => {
    const found = new Set<string>();
    walk(root, path, found);
    for (const { block, regexp } of whole) if (!found.has(block) && regexp.test(path)) found.add(block);
    if (found.size < 2) return [...found];
    return [...found].sort((a, b) => (order.get(a) ?? 0) - (order.get(b) ?? 0));
  };
}

/** Whether any of these entries covers the path. */
export function compileEntries(entries: readonly string[]): (path: string) => boolean {
  if (entries.length === 0) return () => false;
  const owners = compileDeclarations([{ block: '', entries }]);
  return (path) => owners(path).length > 0;
}

/** A test of paths against a policy's valid patterns; any match counts, an exact path matches byte for byte. */
export function compilePatterns(patterns: readonly string[]): (path: WirePath) => boolean {
  const covers = compileEntries(patterns);
  // a path that is not UTF-8 is matched as latin-1: its ASCII part still falls under `dir/**` and `*.ts`
  return (path) => covers(typeof path === 'string' ? path : decodePath(path).toString('latin1'));
}

/** Whether an entry cannot be read segment by segment: a group, or a brace or bracket with a slash inside, or `**` beside text. */
function reachesOver(entry: string): boolean {
  if (!isGlob(entry)) return false;
  if (/[()]/.test(entry)) return true;
  let depth = 0;
  for (const char of entry) {
    if (char === '{' || char === '[') depth++;
    else if (char === '}' || char === ']') depth--;
    else if (char === '/' && depth !== 0) return true;
  }
  return depth !== 0 || /[^/]\*\*|\*\*[^/]/.test(entry);
}

function insert(
  root: Node,
  block: string,
  entry: string,
  tests: Map<string, (segment: string) => boolean>,
): void {
  const directory = entry.endsWith('/');
  const glob = isGlob(entry);
  let node = root;
  // picomatch: `a/**` covers `a` itself, `a*/**` does not cover `ab`: it is the directory's `a*/`
  const starred = glob && /[^*/]*\*\/\*\*$/.test(entry) && !entry.endsWith('**/**');
  const text = directory ? entry.slice(0, -1) : starred ? entry.slice(0, -3) : entry;
  for (const segment of text.split('/')) {
    if (glob && segment === '**') {
      if (!node.stays) {
        node.any ??= makeNode(true);
        node = node.any;
      }
    } else if (glob && isGlob(segment)) {
      let child = node.globs.get(segment);
      if (child === undefined) {
        const test = tests.get(segment) ?? segmentTest(segment);
        tests.set(segment, test);
        child = { test, node: makeNode(false) };
        node.globs.set(segment, child);
      }
      node = child.node;
    } else {
      let child = node.literals.get(segment);
      if (child === undefined) {
        child = makeNode(false);
        node.literals.set(segment, child);
      }
      node = child;
    }
  }
  (directory || starred ? node.below : node.ends).push(block);
}

function walk(root: Node, path: string, found: Set<string>): void {
  let active: Node[] = [];
  enter(active, root);
  for (let at = 0; ; ) {
    const slash = path.indexOf('/', at);
    const segment = slash < 0 ? path.slice(at) : path.slice(at, slash);
    const next: Node[] = [];
    for (const node of active) {
      for (const block of node.below) found.add(block);
      if (node.stays) enter(next, node);
      const literal = node.literals.get(segment);
      if (literal !== undefined) enter(next, literal);
      for (const glob of node.globs.values()) if (glob.test(segment)) enter(next, glob.node);
    }
    active = next;
    if (active.length === 0) return;
    if (slash < 0) break;
    at = slash + 1;
  }
  for (const node of active) for (const block of node.ends) found.add(block);
}

/** A node and what it reaches without a segment; each is active once. */
function enter(active: Node[], node: Node): void {
  if (node.stays && active.includes(node)) return;
  active.push(node);
  if (node.any !== null) enter(active, node.any);
}

/** A test of one segment. Stars and lists in braces need no regular expression, so no name makes them slow. */
function segmentTest(glob: string): (segment: string) => boolean {
  const spelled = alternatives(glob);
  if (spelled !== null) {
    const tests = spelled.map(starTest);
    return (segment) => tests.some((test) => test(segment));
  }
  let regexp: RegExp | null = null;
  return (segment) => {
    regexp ??= compile(glob);
    return regexp.test(segment);
  };
}

const MOST_ALTERNATIVES = 64;

/** A segment's glob without its braces; null where it holds what is left to an expression: `?`, brackets, ranges, nested or empty lists. */
function alternatives(glob: string): string[] | null {
  if (/[?[\]]|\.\./.test(glob)) return null;
  const pieces = glob.split(/\{([^{}]+,[^{}]+)\}/);
  let spelled = [''];
  for (const [i, piece] of pieces.entries()) {
    const choices = i % 2 === 0 ? [piece] : piece.split(',');
    if (/[{}]/.test(piece) || (i % 2 === 1 && choices.includes(''))) return null;
    spelled = spelled.flatMap((text) => choices.map((choice) => text + choice));
    if (spelled.length > MOST_ALTERNATIVES) return null;
  }
  return spelled.some((text) => text.includes('**')) ? null : spelled;
}

/** Each part between stars at the first place where it fits: linear in the name, whatever the number of stars. */
function starTest(glob: string): (segment: string) => boolean {
  const [start = '', ...rest] = glob.split('*');
  const end = rest.pop();
  if (end === undefined) return (segment) => segment === glob;
  return (segment) => {
    if (!segment.startsWith(start)) return false;
    let at = start.length;
    for (const part of rest) {
      const found = segment.indexOf(part, at);
      if (found < 0) return false;
      at = found + part.length;
    }
    return segment.length - end.length >= at && segment.endsWith(end);
  };
}

/** dotAll: without it a line feed in a name would slip past every `**`. */
function compile(pattern: string): RegExp {
  return picomatch.makeRe(pattern.endsWith('/') ? `${pattern}**` : pattern, {
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

function makeNode(stays: boolean): Node {
  return { literals: new Map(), globs: new Map(), any: null, stays, ends: [], below: [] };
}
