import { spawn } from 'node:child_process';
import { appendFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { asksOfObjects } from './fixed.ts';
import { History } from './history.ts';
import { LooseObjects } from './objects.ts';
import { readRef, writeRef } from './refs.ts';
import { importOf, writeCommit } from './write.ts';

/** One file of a commit: text or bytes, a mode (default 100644), a symlink target, or null to delete it. */
export type FileChange =
  | string
  | Uint8Array
  | null
  | { readonly content: string | Uint8Array; readonly mode?: '100644' | '100755' | '120000' }
  | { readonly submodule: string };

/** Changes by path. A record for text paths, or pairs where a path may be raw bytes. */
export type FileChanges =
  | Readonly<Record<string, FileChange>>
  | Iterable<readonly [string | Uint8Array, FileChange]>;

/** A person as git writes it. */
export interface Signature {
  readonly name: string;
  readonly email: string;
}

/** What a new commit is made of; `parents` are object ids, the first one's tree is what `files` changes. */
export interface CommitInput {
  readonly ref: string;
  readonly parents: readonly string[];
  readonly message: string | Uint8Array;
  readonly author: Signature;
  readonly committer?: Signature;
  readonly date: Date;
  readonly files: FileChanges;
  readonly renames?: Readonly<Record<string, string>>;
}

/** A git command that ended with a code other than 0; `stderr` is what it printed. */
export class GitFailed extends Error {
  readonly stderr: string;
  constructor(command: readonly string[], stderr: string) {
    super(`git ${command.join(' ')}: ${stderr.trim()}`);
    this.name = 'GitFailed';
    this.stderr = stderr;
  }
}

const ENVIRONMENT = {
  PATH: process.env['PATH'] ?? '/usr/bin:/bin',
  HOME: '/nonexistent',
  LC_ALL: 'C',
  GIT_CONFIG_NOSYSTEM: '1',
  GIT_TERMINAL_PROMPT: '0',
  // refs are read from their files
  GIT_DEFAULT_REF_FORMAT: 'files',
};

// written at once: a git process for each of them cost more than the repository
// GitHub refuses pushes to refs/pull/*; they are its own.
const SETTINGS = `[gc]
	auto = 0
[receive]
	autogc = false
	hideRefs = refs/pull
[http]
	receivepack = true
[uploadpack]
	allowFilter = true
	allowAnySHA1InWant = true
	allowReachableSHA1InWant = true
[transfer]
	hideRefs = refs/network
`;

const KEPT_BYTES = 4_194_304;
const isCommit = (name: string) => [
  'rev-parse',
  '--verify',
  '--quiet',
  '--end-of-options',
  `${name}^{commit}`,
];

/**
 * A bare git repository on disk. What git answered about objects named by their whole ids is kept, as
 * it never changes: half of a test's processor time went into processes that said the same again.
 */
export class GitRepository {
  readonly directory: string;
  /** Its objects that lie in files of their own. */
  readonly objects: LooseObjects;
  readonly #history: History;
  readonly #answers = new Map<string, Promise<Buffer>>();
  #digits = 40;

  constructor(directory: string) {
    this.directory = directory;
    this.objects = new LooseObjects(directory);
    this.#history = new History(this.objects);
  }

  /** Runs git in this repository, or gives its earlier stdout where that cannot have changed; throws GitFailed. */
  run(args: readonly string[], input?: Uint8Array | string): Promise<Buffer> {
    if (!asksOfObjects(args, input)) return this.#run(args, input);
    const question = JSON.stringify([args, input]);
    const known = this.#answers.get(question);
    if (known !== undefined) return known;
    const answer = this.#run(args, input);
    this.#answers.set(question, answer);
    const forget = () => this.#answers.delete(question);
    // what was missing may come
    answer.then((bytes) => bytes.length > KEPT_BYTES && forget(), forget);
    return answer;
  }

  async #run(args: readonly string[], input?: Uint8Array | string): Promise<Buffer> {
    const child = spawn('git', ['-c', 'core.quotePath=false', ...args], {
      cwd: this.directory,
      env: { ...ENVIRONMENT, GIT_DIR: this.directory },
      stdio: ['pipe', 'pipe', 'pipe'],
    });
    const out: Buffer[] = [];
    const err: Buffer[] = [];
    child.stdout.on('data', (chunk: Buffer) => out.push(chunk));
    child.stderr.on('data', (chunk: Buffer) => err.push(chunk));
    child.stdin.on('error', () => {});
    child.stdin.end(input);
    const code = await new Promise<number | null>((resolve, reject) => {
      child.on('error', reject);
      child.on('close', resolve);
    });
    if (code !== 0) throw new GitFailed(args, Buffer.concat(err).toString());
    return Buffer.concat(out);
  }

  /** The same as `run`, as text without the trailing newline. */
  async text(args: readonly string[]): Promise<string> {
    return (await this.run(args)).toString().replace(/\n$/, '');
  }

  /** Makes the empty bare repository, set up as GitHub serves it: partial clones and any object by its id. */
  async init(defaultBranch: string, hash: 'sha1' | 'sha256' = 'sha1'): Promise<void> {
    const { directory } = this;
    const child = spawn(
      'git',
      [
        'init',
        '--quiet',
        '--bare',
        '--template=',
        `--object-format=${hash}`,
        `--initial-branch=${defaultBranch}`,
        directory,
      ],
      {
        env: ENVIRONMENT,
        stdio: 'ignore',
      },
    );
    await new Promise<void>((resolve, reject) => {
      child.on('error', reject);
      child.on('close', (code) => (code === 0 ? resolve() : reject(new Error(`git init: ${code}`))));
    });
    await appendFile(join(directory, 'config'), SETTINGS);
    this.#digits = hash === 'sha256' ? 64 : 40;
  }

  /** The commit a name points to, or null. */
  async commitId(name: string): Promise<string | null> {
    const ref = await readRef(this.directory, name);
    if (ref === null || this.objects.commit(ref) !== null) return ref;
    return this.text(isCommit(ref)).catch(() => null);
  }

  /** The object a name points to, or null. */
  async objectId(name: string): Promise<string | null> {
    const ref = await readRef(this.directory, name);
    if (ref === null || this.objects.commit(ref) !== null) return ref;
    return this.text(['rev-parse', '--verify', '--quiet', '--end-of-options', ref]).catch(() => null);
  }

  /** Every ref below a prefix with the object it points to. */
  async refs(prefix: string): Promise<Map<string, string>> {
    const lines = await this.text(['for-each-ref', '--format=%(refname) %(objectname)', prefix]);
    return new Map(
      lines
        .split('\n')
        .filter(Boolean)
        .map((line): [string, string] => {
          const [name = '', id = ''] = line.split(' ');
          return [name, id];
        }),
    );
  }

  /** Points a ref at a commit, or deletes it with null. */
  async setRef(ref: string, id: string | null): Promise<void> {
    if (id !== null && this.objects.commit(id) !== null && (await writeRef(this.directory, ref, id))) return;
    await this.run(id === null ? ['update-ref', '-d', ref] : ['update-ref', ref, id]);
  }

  /** Whether the first commit is reachable from the second. */
  async isAncestor(older: string, newer: string): Promise<boolean> {
    const plain = this.#history.isAncestor(older, newer);
    if (plain !== undefined) return plain;
    return this.run(['merge-base', '--is-ancestor', older, newer]).then(
      () => true,
      () => false,
    );
  }

  /** The best common ancestor, or null. */
  async mergeBase(a: string, b: string): Promise<string | null> {
    const plain = this.#history.mergeBase(a, b);
    if (plain !== undefined) return plain;
    return this.text(['merge-base', a, b]).catch(() => null);
  }

  /** Commits reachable from `head` and from none of `without`, oldest first. */
  async commitsBetween(without: readonly string[], head: string): Promise<string[]> {
    const plain = this.#history.between(without, head);
    if (plain !== undefined) return plain;
    const args = ['rev-list', '--topo-order', '--reverse', head, ...without.map((id) => `^${id}`)];
    return (await this.text(args)).split('\n').filter(Boolean);
  }

  /** The tree of two commits merged, null where they conflict. */
  async mergeTree(ours: string, theirs: string): Promise<string | null> {
    const base = this.#history.mergeBase(ours, theirs);
    const only = base === ours ? theirs : base === theirs ? ours : null;
    const tree = only === null ? undefined : this.objects.commit(only)?.tree;
    return tree ?? this.text(['merge-tree', '--write-tree', ours, theirs]).catch(() => null);
  }

  /** The content of a file of a commit, or null. */
  async file(commit: string, path: string): Promise<Buffer | null> {
    const at = this.#history.at(commit, path);
    if (at === null) return null;
    const plain = at === undefined ? null : this.objects.read(at.id, 'blob');
    return plain ?? this.run(['cat-file', 'blob', `${commit}:${path}`]).catch(() => null);
  }

  /** The names in a folder of a commit. */
  async names(commit: string, folder: string): Promise<string[]> {
    const at = this.#history.at(commit, folder);
    if (at === null) return [];
    const plain = at === undefined ? null : this.objects.tree(at.id);
    if (plain !== null) return plain.map(({ name }) => Buffer.from(name, 'latin1').toString());
    const listed = await this.text(['ls-tree', '-z', '--name-only', `${commit}:${folder}`]).catch(() => '');
    return listed.split('\0').filter(Boolean);
  }

  /** Copies one commit with its history from another repository and points a ref of this one at it. */
  async fetchFrom(other: GitRepository, id: string, ref: string): Promise<void> {
    await this.run([
      'fetch',
      '--quiet',
      '--no-tags',
      '--no-write-fetch-head',
      other.directory,
      `+${id}:${ref}`,
    ]);
  }

  /** Makes a commit with exact bytes in paths and contents, moves `ref` to it, gives its id. */
  async commit(input: CommitInput): Promise<string> {
    const digits = input.parents[0]?.length ?? this.#digits;
    const made = writeCommit(this.objects, input, digits);
    if (made !== null) {
      await this.setRef(input.ref, made);
      return made;
    }
    const answer = await this.run(
      ['fast-import', '--quiet', '--force', '--date-format=raw'],
      importOf(input),
    );
    const id = answer.toString().trim();
    this.#answers.set(JSON.stringify([isCommit(id), undefined]), Promise.resolve(Buffer.from(id)));
    return id;
  }

  /** Removes the repository from disk. */
  async remove(): Promise<void> {
    this.#answers.clear();
    await rm(this.directory, { recursive: true, force: true });
  }
}
