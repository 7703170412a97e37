import type { Entry, LooseObjects } from './objects.ts';
import type { CommitInput, FileChange } from './repository.ts';

/** More than these go to git, which makes a pack of them. */
const FEW = 64;

const bytesOf = (text: string | Uint8Array): Buffer =>
  typeof text === 'string' ? Buffer.from(text) : Buffer.from(text);

function changesOf({ files }: CommitInput): (readonly [string | Uint8Array, FileChange])[] {
  return Symbol.iterator in files ? [...files] : Object.entries(files);
}

/** What a change puts at its path, null where it removes it. */
function put(change: FileChange): { mode: string; content: Buffer } | { submodule: string } | null {
  if (change === null) return null;
  if (typeof change === 'string' || change instanceof Uint8Array)
    return { mode: '100644', content: bytesOf(change) };
  if ('submodule' in change) return change;
  return { mode: change.mode ?? '100644', content: bytesOf(change.content) };
}

/** Names that git takes for its own on some system, or that are none. */
const mayBeRefused = (name: string): boolean =>
  /^(?:\.{0,2}|\.git(?![a-z]).*|git~.*)$/is.test(name) || name.includes('\0');

/** A folder that is being changed: entries as they are, folders that were looked into by themselves. */
type Folder = Map<string, Entry | Folder>;

/**
 * Writes a commit of a few changes without a git process; null where git has to: many files, renames, a
 * path that git may refuse, or a parent in a pack.
 */
export function writeCommit(objects: LooseObjects, input: CommitInput, digits: number): string | null {
  const changes = changesOf(input);
  if (changes.length > FEW || Object.keys(input.renames ?? {}).length > 0) return null;
  const [parent] = input.parents;
  const before = parent === undefined ? null : objects.commit(parent);
  if (parent !== undefined && before === null) return null;
  const open = (tree: string): Folder | null => {
    const entries = objects.tree(tree);
    return entries === null ? null : new Map(entries.map((entry) => [entry.name, entry]));
  };
  const root: Folder | null = before === null ? new Map() : open(before.tree);
  if (root === null) return null;
  for (const [path, change] of changes) {
    const names = bytesOf(path).toString('latin1').split('/');
    if (names.some(mayBeRefused)) return null;
    const made = put(change);
    const name = names.pop() ?? '';
    let folder = root;
    let there = true;
    for (const outer of names) {
      const at = folder.get(outer);
      const known = at instanceof Map || at?.mode === '40000';
      there &&= known;
      // what lies in no folder need not be removed
      if (!there && made === null) break;
      const inner = at instanceof Map ? at : known ? open((at as Entry).id) : new Map();
      if (inner === null) return null;
      folder.set(outer, inner);
      folder = inner;
    }
    if (made === null) {
      if (there) folder.delete(name);
    } else if ('submodule' in made) folder.set(name, { mode: '160000', name, id: made.submodule });
    else folder.set(name, { mode: made.mode, name, id: objects.write('blob', made.content, digits) });
  }
  const date = input.date;
  return objects.writeCommit({
    tree: writeFolder(objects, root, digits) ?? objects.writeTree([], digits),
    parents: input.parents,
    author: { ...input.author, date },
    committer: { ...(input.committer ?? input.author), date },
    message: input.message,
  });
}

function writeFolder(objects: LooseObjects, folder: Folder, digits: number): string | null {
  const entries = [...folder].flatMap(([name, at]): Entry[] => {
    if (!(at instanceof Map)) return [at];
    const id = writeFolder(objects, at, digits);
    return id === null ? [] : [{ mode: '40000', name, id }];
  });
  return entries.length === 0 ? null : objects.writeTree(entries, digits);
}

/** The same commit as input of `git fast-import`, which says its id. */
export function importOf(input: CommitInput): Buffer {
  const out: Uint8Array[] = [];
  const write = (part: string | Uint8Array) => out.push(bytesOf(part));
  const data = (content: string | Uint8Array) => {
    const bytes = bytesOf(content);
    write(`data ${bytes.length}\n`);
    write(bytes);
    write('\n');
  };
  const when = `${Math.floor(input.date.getTime() / 1000)} +0000`;
  const committer = input.committer ?? input.author;
  write(`feature done\ncommit ${input.ref}\nmark :1\n`);
  write(`author ${input.author.name} <${input.author.email}> ${when}\n`);
  write(`committer ${committer.name} <${committer.email}> ${when}\n`);
  data(input.message);
  input.parents.forEach((parent, index) => {
    write(`${index === 0 ? 'from' : 'merge'} ${parent}\n`);
  });
  for (const [from, to] of Object.entries(input.renames ?? {})) write(`R ${quoted(from)} ${quoted(to)}\n`);
  for (const [path, change] of changesOf(input)) {
    const made = put(change);
    if (made === null) write(`D ${quoted(path)}\n`);
    else if ('submodule' in made) write(`M 160000 ${made.submodule} ${quoted(path)}\n`);
    else {
      write(`M ${made.mode} inline ${quoted(path)}\n`);
      data(made.content);
    }
  }
  write('\nget-mark :1\ndone\n');
  return Buffer.concat(out);
}

function quoted(path: string | Uint8Array): string {
  let out = '"';
  for (const byte of bytesOf(path)) {
    const literal = byte > 0x20 && byte < 0x7f && byte !== 0x22 && byte !== 0x5c;
    out += literal ? String.fromCharCode(byte) : `\\${byte.toString(8).padStart(3, '0')}`;
  }
  return `${out}"`;
}
