import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { deflateSync, inflateSync } from 'node:zlib';

/** One entry of a tree, its name as bytes in latin1. */
export interface Entry {
  readonly mode: string;
  readonly name: string;
  readonly id: string;
}

/** A person in a commit, and when. */
export interface Stamp {
  readonly name: string;
  readonly email: string;
  readonly date: Date;
}

/** A commit as it is written. */
export interface CommitObject {
  readonly tree: string;
  readonly parents: readonly string[];
  readonly author: Stamp;
  readonly committer: Stamp;
  readonly message: string;
}

const WHOLE_ID = /^(?:[0-9a-f]{40}|[0-9a-f]{64})$/;
const PERSON = /^([^<>\n]*) <([^<>\n]*)> (\d+) [+-]\d{4}$/;
const utf8 = new TextDecoder('utf-8', { fatal: true });

/**
 * The objects of a repository that lie in files of their own, read and written in this process: a git
 * process costs a hundred times the object, and a small commit of a test is three of them. What is in
 * a pack, or is not plain, is answered with null: git has to be asked.
 */
export class LooseObjects {
  readonly #directory: string;
  readonly #commits = new Map<string, CommitObject>();
  #serial = 0;

  constructor(directory: string) {
    this.#directory = join(directory, 'objects');
  }

  /** The content of an object of a type. */
  read(id: string, type: 'blob' | 'tree' | 'commit'): Buffer | null {
    if (!WHOLE_ID.test(id)) return null;
    let bytes: Buffer;
    try {
      bytes = inflateSync(readFileSync(this.#file(id)));
    } catch {
      return null;
    }
    const end = bytes.indexOf(0);
    return bytes.toString('latin1', 0, end).startsWith(`${type} `) ? bytes.subarray(end + 1) : null;
  }

  /** The entries of a tree, in git's order. */
  tree(id: string): Entry[] | null {
    const bytes = this.read(id, 'tree');
    if (bytes === null) return null;
    const entries: Entry[] = [];
    for (let at = 0; at < bytes.length; ) {
      const space = bytes.indexOf(0x20, at);
      const end = bytes.indexOf(0, space);
      const next = end + 1 + id.length / 2;
      entries.push({
        mode: bytes.toString('latin1', at, space),
        name: bytes.toString('latin1', space + 1, end),
        id: bytes.toString('hex', end + 1, next),
      });
      at = next;
    }
    return entries;
  }

  /** A commit; null also where its text is in another encoding or not as git writes it. */
  commit(id: string): CommitObject | null {
    const known = this.#commits.get(id);
    if (known !== undefined) return known;
    const bytes = this.read(id, 'commit');
    const found = bytes === null ? null : parseCommit(bytes);
    if (found !== null) this.#commits.set(id, found);
    return found;
  }

  /** Writes an object, with ids of so many hex digits; gives its id. */
  write(type: 'blob' | 'tree' | 'commit', content: Uint8Array, digits: number): string {
    const bytes = Buffer.concat([Buffer.from(`${type} ${content.length}\0`), content]);
    const id = createHash(digits === 64 ? 'sha256' : 'sha1')
      .update(bytes)
      .digest('hex');
    const folder = join(this.#directory, id.slice(0, 2));
    const made = join(folder, `tmp_obj_${process.pid}_${++this.#serial}`);
    mkdirSync(folder, { recursive: true });
    // whole or not at all: git may be reading
    writeFileSync(made, deflateSync(bytes, { level: 1 }), { mode: 0o444 });
    renameSync(made, this.#file(id));
    return id;
  }

  /** Writes a tree of entries in any order. */
  writeTree(entries: readonly Entry[], digits: number): string {
    const key = ({ mode, name }: Entry) => (mode === '40000' ? `${name}/` : name);
    const sorted = entries.toSorted((a, b) => (key(a) < key(b) ? -1 : 1));
    const parts = sorted.flatMap(({ mode, name, id }) => [
      Buffer.from(`${mode} ${name}\0`, 'latin1'),
      Buffer.from(id, 'hex'),
    ]);
    return this.write('tree', Buffer.concat(parts), digits);
  }

  /** Writes a commit; its message may be any bytes. */
  writeCommit(commit: Omit<CommitObject, 'message'> & { message: string | Uint8Array }): string {
    const stamp = ({ name, email, date }: Stamp) =>
      `${name} <${email}> ${Math.floor(date.getTime() / 1000)} +0000\n`;
    const parents = commit.parents.map((parent) => `parent ${parent}\n`).join('');
    const head = `tree ${commit.tree}\n${parents}author ${stamp(commit.author)}committer ${stamp(commit.committer)}\n`;
    return this.write(
      'commit',
      Buffer.concat([Buffer.from(head), Buffer.from(commit.message as string)]),
      commit.tree.length,
    );
  }

  #file(id: string): string {
    return join(this.#directory, id.slice(0, 2), id.slice(2));
  }
}

function parseCommit(bytes: Buffer): CommitObject | null {
  let text: string;
  try {
    text = utf8.decode(bytes);
  } catch {
    return null;
  }
  const end = text.indexOf('\n\n');
  if (end < 0 || text.includes('\0')) return null;
  const parents: string[] = [];
  let tree = '';
  let author: Stamp | null = null;
  let committer: Stamp | null = null;
  for (const line of text.slice(0, end).split('\n')) {
    const [key = '', value = ''] = line.split(/ (.*)/s);
    if (key === 'tree') tree = value;
    else if (key === 'parent') parents.push(value);
    else if (key === 'author') author = person(value);
    else if (key === 'committer') committer = person(value);
    else return null;
  }
  if (author === null || committer === null) return null;
  return { tree, parents, author, committer, message: text.slice(end + 2) };
}

function person(text: string): Stamp | null {
  const found = PERSON.exec(text);
  if (found === null) return null;
  const [, name = '', email = '', seconds] = found;
  return { name, email, date: new Date(Number(seconds) * 1000) };
}
