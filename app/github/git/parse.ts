/** Parsers of git's NUL-separated output (GIT-2). All of it is written by strangers: paths are bytes, text is decoded leniently. */
import { encodePath } from '../../domain/path.ts';
import { Fault } from '../../errors.ts';
import type { Change, Commit } from '../port/git.ts';

const UNIT = '\u001f';
const PAIR = '\u001e';

/** The format that `parseLog` reads: nine fields, each ended by NUL, then the raw entries of the commit. */
export const LOG_FORMAT = `%H%x00%P%x00%T%x00%an%x00%ae%x00%at%x00%ce%x00%B%x00%(trailers:only=true,unfold=true,separator=%x1F,key_value_separator=%x1E)`;

/** Commits of `git log -z --raw -c --format=LOG_FORMAT`, in the order git wrote them. */
export function parseLog(output: Buffer): Commit[] {
  const fields = new Fields(output);
  const commits: Commit[] = [];
  while (!fields.done()) {
    const oid = fields.ascii();
    if (!/^[0-9a-f]{40}(?:[0-9a-f]{24})?$/.test(oid)) throw unreadable('a commit id');
    const parents = fields.ascii();
    const tree = fields.ascii();
    const authorName = fields.text();
    const authorEmail = fields.text();
    const authorTime = Number(fields.ascii());
    const committerEmail = fields.text();
    const message = fields.text();
    const trailers = fields.text();
    const changes: Change[] = [];
    for (;;) {
      const next = fields.peek();
      if (next === null) break;
      if (next.length === 0) fields.skip();
      else if (next[0] === 0x3a || (next[0] === 0x0a && next[1] === 0x3a)) changes.push(readChange(fields));
      else break;
    }
    commits.push({
      oid,
      parents: parents === '' ? [] : parents.split(' '),
      tree,
      authorName,
      authorEmail,
      authorTime: Number.isSafeInteger(authorTime) ? authorTime : 0,
      committerEmail,
      message,
      trailers: parseTrailers(trailers),
      changes,
    });
  }
  return commits;
}

/** Changes of `git diff-tree -r -z --raw --no-renames --no-abbrev`. */
export function parseRaw(output: Buffer): Change[] {
  const fields = new Fields(output);
  const changes: Change[] = [];
  while (!fields.done()) changes.push(readChange(fields));
  return changes;
}

/** Renames of `git diff-tree -r -z --raw -M --no-abbrev`: pairs of path bytes, everything else is skipped. */
export function parseRenames(output: Buffer): { readonly from: Buffer; readonly to: Buffer }[] {
  const fields = new Fields(output);
  const pairs: { from: Buffer; to: Buffer }[] = [];
  while (!fields.done()) {
    const status = fields.ascii().split(' ').at(-1) ?? '';
    const path = fields.bytes();
    if (status.startsWith('R') || status.startsWith('C')) {
      const to = fields.bytes();
      if (status.startsWith('R')) pairs.push({ from: path, to });
    }
  }
  return pairs;
}

/** Entries of one tree object as git stores it: `<mode> <name>NUL<id bytes>`. */
export function parseTree(
  bytes: Buffer,
  oidBytes: 20 | 32,
): Map<string, { readonly mode: string; readonly oid: string }> {
  const entries = new Map<string, { mode: string; oid: string }>();
  let at = 0;
  while (at < bytes.length) {
    const space = bytes.indexOf(0x20, at);
    const nul = bytes.indexOf(0, space);
    if (space < 0 || nul < 0 || nul + 1 + oidBytes > bytes.length) throw unreadable('a tree');
    entries.set(bytes.toString('latin1', space + 1, nul), {
      mode: bytes.toString('latin1', at, space).padStart(6, '0'),
      oid: bytes.toString('hex', nul + 1, nul + 1 + oidBytes),
    });
    at = nul + 1 + oidBytes;
  }
  return entries;
}

/** One raw entry: `:mode mode oid oid X`, or a merge's `::mode mode mode oid oid oid XX`, then its path. */
function readChange(fields: Fields): Change {
  const head = fields.ascii().replace(/^\n/, '');
  const path = fields.bytes();
  const parents = head.search(/[^:]/);
  const parts = head.slice(parents).split(' ');
  if (parents < 1 || parts.length !== 2 * (parents + 1) + 1 || path.length === 0)
    throw unreadable('a raw entry');
  const modeBase = present(parts[0]);
  const modeHead = present(parts[parents]);
  return {
    path: encodePath(path),
    status: statusOf(parts.at(-1) ?? '', modeBase, modeHead),
    modeBase,
    modeHead,
    blobBase: present(parts[parents + 1]),
    blobHead: present(parts[2 * parents + 1]),
  };
}

function statusOf(letters: string, modeBase: string | null, modeHead: string | null): Change['status'] {
  if (modeHead === null) return 'D';
  if (modeBase === null) return 'A';
  return letters.startsWith('T') ? 'T' : 'M';
}

/** Null where the side does not exist: git writes zeros for both mode and id. */
function present(part: string | undefined): string | null {
  if (part === undefined) throw unreadable('a raw entry');
  return /^0+$/.test(part) ? null : part;
}

function parseTrailers(text: string): { key: string; value: string }[] {
  if (text === '') return [];
  return text.split(UNIT).map((line) => {
    const at = line.indexOf(PAIR);
    return at < 0 ? { key: line, value: '' } : { key: line.slice(0, at), value: line.slice(at + 1) };
  });
}

function unreadable(what: string): Fault {
  return new Fault('git_unavailable', `git answered ${what} that cannot be read`, { retryable: true });
}

/** Fields ended by NUL, read one after the other. */
class Fields {
  readonly #bytes: Buffer;
  #at = 0;
  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }
  done(): boolean {
    return this.#at >= this.#bytes.length;
  }
  peek(): Buffer | null {
    return this.done() ? null : this.#bytes.subarray(this.#at, this.#end());
  }
  skip(): void {
    this.#at = this.#end() + 1;
  }
  bytes(): Buffer {
    if (this.done()) throw unreadable('a list that is cut');
    const field = this.#bytes.subarray(this.#at, this.#end());
    this.skip();
    return field;
  }
  ascii(): string {
    return this.bytes().toString('latin1');
  }
  text(): string {
    return this.bytes().toString('utf8');
  }
  #end(): number {
    const end = this.#bytes.indexOf(0, this.#at);
    return end < 0 ? this.#bytes.length : end;
  }
}
