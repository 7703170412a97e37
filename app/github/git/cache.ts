/**
 * The cache: one bare, partial, shallow repository per repository id, without a work tree or a stored
 * credential. It can be deleted at any time, also while it is used; any process rebuilds it (GIT-1).
 */
import { randomUUID } from 'node:crypto';
import { mkdir, readFile, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Fault } from '../../errors.ts';
import { ObjectReader } from './batch.ts';
import { callGit, type GitLimits, type GitResult, packBytes, type Remote, tooLarge } from './command.ts';

/** Depth that means the whole history to git. */
export const WHOLE_HISTORY = 2_147_483_647;

const LOCK_TRIES = 12;
/** A lock this old belongs to a process that died: a fetch ends within its time limit. */
const LOCK_STALE_MS = 10 * 60_000;

/** How caches are kept. */
export interface CacheSettings {
  readonly directory: string;
  readonly environment: Readonly<Record<string, string>>;
  readonly limits: GitLimits;
}

/** One repository's cache. */
export class RepositoryCache {
  readonly gitDir: string;
  readonly #settings: CacheSettings;
  #tail: Promise<unknown> = Promise.resolve();
  #objects: ObjectReader | null = null;

  constructor(settings: CacheSettings, repositoryId: string) {
    if (!/^[0-9]{1,20}$/.test(repositoryId)) throw new Fault('bug', 'a repository id is a decimal number');
    this.#settings = settings;
    this.gitDir = join(settings.directory, `${repositoryId}.git`);
  }

  /** Runs `work` after all earlier ones of this process; two processes meet at git's own locks. */
  exclusive<T>(work: () => Promise<T>): Promise<T> {
    const whole = () => work().finally(() => this.release());
    const mine = this.#tail.then(whole, whole);
    this.#tail = mine.catch(() => {});
    return mine;
  }

  /** The object reader of this turn. */
  objects(): ObjectReader {
    this.#objects ??= new ObjectReader({
      gitDir: this.gitDir,
      environment: this.#settings.environment,
    });
    return this.#objects;
  }

  /** Ends the object reader; the next question starts another. */
  async release(): Promise<void> {
    const reader = this.#objects;
    this.#objects = null;
    await reader?.end();
  }

  /** A local read; throws `git_unavailable` unless it exits with one of `ok`. */
  async read(args: readonly string[], input?: Buffer, ok: readonly number[] = [0]): Promise<GitResult> {
    const result = await this.#call(args, input);
    if (result.exit === null || !ok.includes(result.exit)) throw refused(args, result);
    return result;
  }

  /** Makes the repository when it is not there; SHA-256 when its ids are 64 hex (GIT-5). */
  async ensure(oid: string): Promise<void> {
    if (await this.present()) return;
    await mkdir(this.#settings.directory, { recursive: true, mode: 0o700 });
    const made = join(this.#settings.directory, `.new-${randomUUID()}`);
    const format = oid.length === 64 ? 'sha256' : 'sha1';
    const args = [
      'init',
      '--quiet',
      '--bare',
      '--template=',
      `--object-format=${format}`,
      '-b',
      'none',
      made,
    ];
    const result = await callGit({
      gitDir: made,
      args,
      environment: this.#settings.environment,
      limits: this.#settings.limits,
    });
    if (result.exit !== 0) throw refused(args, result);
    // whole or not at all: a second process that was first keeps its own
    await rename(made, this.gitDir).catch(() => rm(made, { recursive: true, force: true }));
  }

  /** Whether the cache exists. */
  present(): Promise<boolean> {
    return exists(join(this.gitDir, 'HEAD'));
  }

  /** Whether git can work in it: a half deleted or broken cache is not sound. */
  async sound(): Promise<boolean> {
    if (!(await this.present())) return false;
    const result = await this.#call(['rev-parse', '--is-bare-repository']);
    if (result.exit !== 0) return false;
    // refs whose commits are gone make every fetch fail: that cache was cut
    return (await this.#call(['for-each-ref', '--format=%(objecttype)'])).exit === 0;
  }

  /** Removes the cache; it is moved away first, so that nobody reads a half of it. */
  async remove(): Promise<void> {
    await this.release();
    const old = join(this.#settings.directory, `.old-${randomUUID()}`);
    await rename(this.gitDir, old).catch(() => {});
    await rm(old, { recursive: true, force: true });
  }

  /** Fetches refspecs without blobs down to a depth. */
  async fetch(remote: Remote, refspecs: readonly string[], depth: number): Promise<void> {
    await this.#network(remote, [
      ...FETCH,
      '--filter=blob:none',
      `--depth=${depth}`,
      '--force',
      'origin',
      ...refspecs,
    ]);
  }

  /** Fetches objects by id in one batch, as git's own promisor does. */
  async fetchObjects(remote: Remote, oids: readonly string[]): Promise<void> {
    await this.#network(
      remote,
      ['-c', 'fetch.negotiationAlgorithm=noop', ...FETCH, '--filter=blob:none', '--stdin', 'origin'],
      Buffer.from(`${oids.join('\n')}\n`),
    );
  }

  /** Whether the server answers at all: tells a missing object from an outage. */
  async reachable(remote: Remote): Promise<boolean> {
    const result = await this.#call(['ls-remote', '--quiet', 'origin', 'HEAD'], undefined, remote);
    return result.exit === 0;
  }

  /** Commits whose parents are not here; empty when all history is. */
  async shallow(): Promise<ReadonlySet<string>> {
    const text = await readFile(join(this.gitDir, 'shallow'), 'latin1').catch(() => '');
    return new Set(text.split('\n').filter((line) => line !== ''));
  }

  async #network(remote: Remote, args: readonly string[], input?: Buffer): Promise<void> {
    const { bytes } = this.#settings.limits;
    if ((await packBytes(this.gitDir)) > bytes) {
      // many pull requests over a long time: the read that needs it begins again with an empty one
      await this.remove();
      throw tooLarge(bytes);
    }
    for (let tries = 1; ; tries++) {
      const result = await this.#call(args, input, remote);
      // a fetch can end before it was looked at
      if (result.exit === 0 && (await packBytes(this.gitDir)) > bytes) throw tooLarge(bytes);
      if (result.exit === 0) return;
      // git has no exit code of its own for a lock; under LC_ALL=C it names the file
      const locked = /\.lock'|cannot lock ref/.test(result.complaint);
      if (tries >= LOCK_TRIES || !locked) throw refused(args, result);
      await this.#removeStaleLock();
      await sleep(50 * tries);
    }
  }

  async #removeStaleLock(): Promise<void> {
    const lock = join(this.gitDir, 'shallow.lock');
    const held = await stat(lock).catch(() => null);
    if (held !== null && Date.now() - held.mtimeMs > LOCK_STALE_MS) await rm(lock, { force: true });
  }

  #call(args: readonly string[], input?: Buffer, remote?: Remote): Promise<GitResult> {
    return callGit({
      gitDir: this.gitDir,
      args,
      environment: this.#settings.environment,
      limits: this.#settings.limits,
      ...(input === undefined ? {} : { input }),
      ...(remote === undefined ? {} : { remote }),
    });
  }
}

const FETCH = [
  'fetch',
  '--quiet',
  '--no-tags',
  '--no-write-fetch-head',
  '--no-auto-maintenance',
  '--recurse-submodules=no',
];

function refused(args: readonly string[], result: GitResult): Fault {
  const verb = args.find((arg) => /^[a-z][a-z-]+$/.test(arg)) ?? 'git';
  return new Fault(
    'git_unavailable',
    `git ${verb} ended with ${result.exit ?? 'a signal'}: ${result.complaint}`,
    {
      retryable: true,
    },
  );
}

async function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}
