/**
 * Git objects by id (ACT-2): a bare repository per remote in the job's temporary folder, commits and
 * trees without blobs, blobs when a ticket needs them, many in one fetch. There is no checkout, so no
 * attribute, hook, filter or symbolic link of the pull request is ever acted on.
 */
import { createHash } from 'node:crypto';
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { pathKey, type WirePath } from '../../app/domain/path.ts';
import { Fault } from '../../app/errors.ts';
import type { LeasedTicket } from '../../app/protocol/runner.ts';
import { isSafeUrl } from '../inputs.ts';
import { sleep } from '../sleep.ts';
import { type Blob, type CatFile, openCatFile } from './cat-file.ts';
import { type ChangedFile, parseRawDiff } from './diff.ts';
import { type Git, git, gitEnvironment } from './git.ts';

/** The changed files of a head against its merge base, by the key of the new path (the old one for deletions). */
export type Change = Readonly<{ files: ReadonlyMap<string, ChangedFile> }>;

/** What reviewers read from. Every call throws Fault `git_unavailable` after three tries. */
export type Objects = Readonly<{
  change: (ticket: LeasedTicket, signal: AbortSignal) => Promise<Change>;
  blobs: (
    ticket: LeasedTicket,
    oids: readonly string[],
    signal: AbortSignal,
  ) => Promise<ReadonlyMap<string, Blob>>;
  /** The unified diff of two blobs, empty when there is none. */
  diff: (ticket: LeasedTicket, base: string, head: string, signal: AbortSignal) => Promise<string>;
  /** From now on a repository is read with this token, which came with a lease of it (AUT-4). */
  allow: (remote: string, token: string) => void;
  /** Removes repositories that nobody read from for `idleMs`, or that are older than a day and idle for a minute. */
  sweep: (idleMs: number) => Promise<void>;
  close: () => Promise<void>;
}>;

type Repository = {
  at: { dir: string; env: Git['env'] };
  token: string | null;
  bornAt: number;
  usedAt: number;
  cat: CatFile;
  changes: Map<string, Promise<Change>>;
  fetched: Set<string>;
  /** Blob fetches run one after another; what is asked meanwhile goes together in the next. */
  queue: Promise<void>;
  wanted: Set<string>;
  /** Blobs of known changes that later tickets will ask for. */
  ahead: Set<string>;
};

/** Changes of up to so many blobs are fetched whole, behind the first ticket's back: one round trip instead of one a ticket. */
const PREFETCHED_BLOBS = 600;

const TRIES = 3;
/** A repository that is always in use is read afresh once a day: what is kept of it only grows. */
const DAY_MS = 24 * 60 * 60_000;
const BREATH_MS = 60_000;
/** Changes that are kept of a repository; a run needs one, and another one each time it is pushed to. */
const MOST_CHANGES = 200;

/** An empty store below `dir`; repositories appear as tickets name them. */
export function openObjects(of: { dir: string; token: string; serverUrl: string; path: string }): Objects {
  const repositories = new Map<string, Promise<Repository>>();
  const closing = new AbortController();
  /** Tokens by the one remote each of them is for. */
  const tokens = new Map<string, string>();

  /** The job's own token goes to its own GitHub only; one that came with a lease to where that lease reads. */
  function environmentOf(remote: string): Git['env'] {
    const token = tokens.get(remote);
    const own = token === undefined ? {} : { token, serverUrl: remote };
    return gitEnvironment({ ...of, ...own, home: of.dir, remote });
  }

  async function create(remote: string): Promise<Repository> {
    const dir = join(of.dir, createHash('sha256').update(remote).digest('hex').slice(0, 16));
    await mkdir(dir, { recursive: true, mode: 0o700 });
    const at = { dir, env: environmentOf(remote) };
    // one stopped ticket must not spoil the repository for the next
    await git(at, ['init', '--quiet', '--bare', '--template=', '.'], new AbortController().signal);
    await git(at, ['config', 'core.repositoryFormatVersion', '1'], new AbortController().signal);
    await git(at, ['config', 'extensions.partialClone', 'origin'], new AbortController().signal);
    return {
      at,
      token: tokens.get(remote) ?? null,
      bornAt: performance.now(),
      usedAt: performance.now(),
      cat: openCatFile(at),
      changes: new Map(),
      fetched: new Set(),
      queue: Promise.resolve(),
      wanted: new Set(),
      ahead: new Set(),
    };
  }

  async function repositoryOf(ticket: LeasedTicket): Promise<Repository> {
    const remote = ticket.repository.clone_url;
    let opened = repositories.get(remote);
    if (opened === undefined) {
      opened = create(remote);
      repositories.set(remote, opened);
      opened.catch(() => repositories.delete(remote));
    }
    const repository = await opened;
    const token = tokens.get(remote) ?? null;
    if (token !== repository.token) {
      repository.at.env = environmentOf(remote);
      repository.token = token;
    }
    repository.usedAt = performance.now();
    return repository;
  }

  return {
    async change(ticket, signal) {
      const repository = await repositoryOf(ticket);
      const key = `${ticket.merge_base} ${ticket.head}`;
      let change = repository.changes.get(key);
      if (change === undefined) {
        change = readChange(repository.at, ticket, signal);
        repository.changes.set(key, change);
        for (const old of repository.changes.keys()) {
          if (repository.changes.size <= MOST_CHANGES) break;
          repository.changes.delete(old);
        }
        change.then(
          ({ files }) => {
            const all = [...files.values()].flatMap(blobsOf);
            if (all.length <= PREFETCHED_BLOBS) for (const oid of all) repository.ahead.add(oid);
          },
          () => repository.changes.delete(key),
        );
      }
      return change;
    },
    async blobs(ticket, oids, signal) {
      const repository = await repositoryOf(ticket);
      await fetchBlobs(repository, oids, signal);
      prefetch(repository, closing.signal);
      const read = await Promise.all(oids.map((oid) => repository.cat.read(oid)));
      return new Map(read.map((blob) => [blob.oid, blob]));
    },
    async diff(ticket, base, head, signal) {
      const repository = await repositoryOf(ticket);
      const args = ['diff', '--no-color', '--no-ext-diff', '--no-textconv', '--text', '-U3', base, head];
      return (await git(repository.at, args, signal)).toString('utf8');
    },
    allow(remote, token) {
      // a token is a credential: never over a line that others can read
      if (isSafeUrl(remote)) tokens.set(remote, token);
    },
    async sweep(idleMs) {
      const now = performance.now();
      for (const [remote, opened] of [...repositories]) {
        const repository = await opened.catch(() => null);
        if (repository === null) continue;
        const idle = now - repository.usedAt;
        if (idle < idleMs && (now - repository.bornAt < DAY_MS || idle < BREATH_MS)) continue;
        repositories.delete(remote);
        tokens.delete(remote);
        await repository.cat.close();
        await rm(repository.at.dir, { recursive: true, force: true });
      }
    },
    async close() {
      closing.abort();
      const all = await Promise.allSettled(repositories.values());
      await Promise.all(all.map((r) => (r.status === 'fulfilled' ? r.value.cat.close() : undefined)));
    },
  };
}

async function retried<T>(signal: AbortSignal, attempt: (n: number) => Promise<T>): Promise<T> {
  for (let n = 1; ; n++) {
    try {
      return await attempt(n);
    } catch (error) {
      if (signal.aborted || n >= TRIES || !(error instanceof Fault && error.retryable)) throw error;
      await sleep(500 * 4 ** (n - 1), signal);
    }
  }
}

async function readChange(at: Git, ticket: LeasedTicket, signal: AbortSignal): Promise<Change> {
  const fetch = ['fetch', '--quiet', '--no-tags', '--no-write-fetch-head', '--filter=blob:none'];
  await retried(signal, async (n) => {
    const commits = [ticket.head, ticket.merge_base];
    // a server that does not give commits by id still has the ref of the pull request
    if (n === 2 && ticket.pull !== null)
      await git(at, [...fetch, 'origin', `+refs/pull/${ticket.pull}/head:refs/pull/head`], signal);
    else await git(at, [...fetch, '--depth=1', 'origin', ...commits], signal);
  });
  const args = [
    'diff-tree',
    '-r',
    '-z',
    '--raw',
    '--no-renames',
    '--no-abbrev',
    ticket.merge_base,
    ticket.head,
  ];
  const raw = await retried(signal, () => git(at, args, signal));
  const files = parseRawDiff(raw);
  return { files: new Map(files.map((file) => [pathKey(file.path), file])) };
}

/** The blobs of a changed file; a submodule's ids are commits elsewhere. */
function blobsOf(file: ChangedFile): string[] {
  return (['base', 'head'] as const).flatMap((side) => {
    const oid = file.blob[side];
    return oid === null || file.mode[side] === '160000' ? [] : [oid];
  });
}

/** Fetches what is ahead without anybody waiting; what fails is fetched again when it is asked for. */
function prefetch(repository: Repository, signal: AbortSignal): void {
  const ahead = [...repository.ahead];
  repository.ahead.clear();
  if (ahead.length > 0) fetchBlobs(repository, ahead, signal).catch(() => undefined);
}

async function fetchBlobs(
  repository: Repository,
  oids: readonly string[],
  signal: AbortSignal,
): Promise<void> {
  const missing = oids.filter((oid) => !repository.fetched.has(oid));
  if (missing.length === 0) return;
  for (const oid of missing) repository.wanted.add(oid);
  const turn = repository.queue.then(async () => {
    // what another turn brought meanwhile is not fetched twice
    const batch = [...repository.wanted].filter((oid) => !repository.fetched.has(oid));
    repository.wanted.clear();
    if (batch.length === 0) return;
    const args = [
      '-c',
      'fetch.negotiationAlgorithm=noop',
      'fetch',
      '--quiet',
      '--no-tags',
      '--no-write-fetch-head',
      '--recurse-submodules=no',
      '--filter=blob:none',
      '--stdin',
      'origin',
    ];
    try {
      await retried(signal, () => git(repository.at, args, signal, `${batch.join('\n')}\n`));
      for (const oid of batch) repository.fetched.add(oid);
    } catch (error) {
      // the others of this batch ask again, under their own ticket's signal
      for (const oid of batch) if (!missing.includes(oid)) repository.wanted.add(oid);
      throw error;
    }
  });
  repository.queue = turn.catch(() => undefined);
  await turn;
  if (missing.some((oid) => repository.wanted.has(oid) || !repository.fetched.has(oid)))
    await fetchBlobs(repository, missing, signal);
}

/** The entry of a ticket's path in the change, as git says it at the ticket's own head. */
export function changedAt(change: Change, path: WirePath): ChangedFile | null {
  return change.files.get(pathKey(path)) ?? null;
}
