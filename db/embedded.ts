/**
 * Postgres without set-up: a real server from npm, owned by this process. It listens on a random
 * port of 127.0.0.1 with a random password, and ends with us in every case, kill -9 included. It
 * serves one process; replicas need DATABASE_URL (facts/stack.md §2).
 */
import { type ChildProcess, execFile, execFileSync, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chownSync, existsSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { type AddressInfo, connect, createServer } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Fault } from '../app/errors.ts';
import { type PostgresUser, postgresBinaries, postgresUser } from './embedded/binaries.ts';
import { clusterFolder, withStartLock } from './embedded/place.ts';

/** How to start an embedded server. */
export interface EmbeddedOptions {
  /** The cluster's folder; created. Keep keys elsewhere: it is given to the user that runs Postgres. */
  readonly folder: string;
  /** false (tests only): fsync, synchronous_commit and full_page_writes off. Default true. */
  readonly durable?: boolean;
  /** Further server settings. */
  readonly settings?: Readonly<Record<string, string | number>>;
  /** Gets each line that the server logs. */
  readonly log?: (line: string) => void;
}

/** A running embedded server. */
export interface Embedded {
  /** Connection string with the random password; never log it. */
  url(database?: string): string;
  /** The folder in use: another than asked for where root's folder could not be reached. */
  readonly folder: string;
  readonly pid: number;
  /** True when another process of ours runs the server: it ends with that one. */
  readonly reused: boolean;
  /** Stops the server that we own and waits for its end; does nothing to a reused one. */
  stop(): Promise<void>;
}

/**
 * A shell that owns postgres and reads a pipe from us. When this process ends in any way, the pipe
 * closes and the shell asks postgres for a fast shutdown.
 */
const WATCHDOG = '"$@" </dev/null & p=$!; trap "" INT TERM HUP; read _; kill -INT $p; wait $p';

const wait = (ms: number) => new Promise<void>((done) => setTimeout(done, ms));
const failed = (message: string, cause?: unknown) => new Fault('embedded_failed', message, { cause });

/** Starts the server of a folder, creating the cluster first where there is none; `embedded_failed` with the server's own words otherwise. */
export async function startEmbedded(options: EmbeddedOptions): Promise<Embedded> {
  const user = postgresUser();
  const folder = clusterFolder(options.folder, user);
  return withStartLock(folder, async () => {
    const data = join(folder, 'data');
    const bin = postgresBinaries(folder, user);
    if (!existsSync(join(data, 'PG_VERSION'))) await createCluster(folder, data, bin('initdb'), user);
    const password = readFileSync(join(folder, 'password'), 'utf8');
    const url =
      (port: number) =>
      (database = 'postgres') =>
        `postgres://postgres:${password}@127.0.0.1:${port}/${database}`;
    const other = await runningServer(data);
    if (other !== undefined) {
      return { url: url(other.port), folder, pid: other.pid, reused: true, stop: async () => {} };
    }
    const server = await startServer(folder, data, bin('postgres'), user, options);
    return {
      url: url(server.port),
      folder,
      pid: server.pid,
      reused: false,
      stop: () => server.stop(bin('pg_ctl')),
    };
  });
}

async function createCluster(
  folder: string,
  data: string,
  initdb: string,
  user: PostgresUser,
): Promise<void> {
  const secret = join(folder, 'password');
  writeFileSync(secret, randomBytes(18).toString('base64url'), { mode: 0o600 });
  if (user.uid !== undefined) chownSync(secret, user.uid, user.gid ?? user.uid);
  rmSync(data, { recursive: true, force: true });
  rmSync(`${data}.new`, { recursive: true, force: true });
  const args = [
    '-D',
    `${data}.new`,
    '-U',
    'postgres',
    '-A',
    'scram-sha-256',
    `--pwfile=${secret}`,
    '-E',
    'UTF8',
  ];
  // the builtin provider sorts alike on every operating system
  args.push(
    '--locale-provider=builtin',
    '--builtin-locale=C.UTF-8',
    '--locale=C',
    '--no-sync',
    '--no-instructions',
  );
  try {
    await promisify(execFile)(initdb, args, { ...user, cwd: folder });
  } catch (cause) {
    throw failed(`initdb failed in ${folder}: ${(cause as { stderr?: string }).stderr ?? ''}`, cause);
  }
  renameSync(`${data}.new`, data); // so that a killed initdb is never taken for a cluster
}

interface PidFile {
  readonly pid: number;
  readonly port: number;
  readonly ready: boolean;
}

function readPidFile(data: string): PidFile | undefined {
  try {
    const lines = readFileSync(join(data, 'postmaster.pid'), 'utf8').split('\n');
    return { pid: Number(lines[0]), port: Number(lines[3]), ready: (lines[7] ?? '').trim() === 'ready' };
  } catch {
    return undefined;
  }
}

function isPostgres(pid: number): boolean {
  try {
    process.kill(pid, 0);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EPERM') return false;
  }
  try {
    return /postgres/.test(readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')[0] ?? '');
  } catch {
    return true; // no /proc (macOS, Windows): the pid is taken for Postgres's
  }
}

/** Another process's server on this cluster, once it answers; a pid file whose process died is removed. */
async function runningServer(data: string): Promise<PidFile | undefined> {
  for (const until = Date.now() + 15_000; ; await wait(25)) {
    const found = readPidFile(data);
    if (found === undefined) return undefined;
    if (!isPostgres(found.pid)) {
      rmSync(join(data, 'postmaster.pid'), { force: true });
      return undefined;
    }
    if (found.ready && (await answers(found.port))) return found;
    if (Date.now() > until) throw failed(`process ${found.pid} holds ${data} but does not answer`);
  }
}

const answers = (port: number) =>
  new Promise<boolean>((done) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('connect', () => {
      socket.destroy();
      done(true);
    });
    socket.once('error', () => done(false));
  });

const freePort = () =>
  new Promise<number>((done, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address() as AddressInfo;
      server.close(() => done(port));
    });
  });

async function startServer(
  folder: string,
  data: string,
  postgres: string,
  user: PostgresUser,
  options: EmbeddedOptions,
) {
  const windows = process.platform === 'win32';
  const port = await freePort();
  const throwaway = {
    fsync: 'off',
    synchronous_commit: 'off',
    full_page_writes: 'off',
    wal_level: 'minimal',
    max_wal_senders: 0,
  };
  const settings = {
    listen_addresses: '127.0.0.1',
    unix_socket_directories: '',
    port,
    max_connections: 200,
    shared_buffers: '64MB',
    dynamic_shared_memory_type: windows ? 'windows' : 'mmap',
    ...(options.durable === false ? throwaway : {}),
    ...options.settings,
  };
  const args = ['-D', data, ...Object.entries(settings).flatMap(([key, value]) => ['-c', `${key}=${value}`])];
  // never our environment: it may hold the App's secrets, and this is another user's process
  const child: ChildProcess = windows
    ? spawn(postgres, args, { cwd: folder, detached: true, stdio: ['ignore', 'ignore', 'pipe'] })
    : spawn('/bin/sh', ['-c', WATCHDOG, 'countersign-postgres', postgres, ...args], {
        ...user,
        cwd: folder,
        detached: true, // a Ctrl-C at the terminal is for us; the server ends after our last statement
        env: { LC_ALL: 'C', TZ: 'UTC', PATH: '/usr/bin:/bin' },
        stdio: ['pipe', 'ignore', 'pipe'],
      });
  let tail = '';
  let ended = false;
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    tail = (tail + text).slice(-4_000);
    if (options.log) for (const line of text.split('\n')) if (line !== '') options.log(line);
  });
  const exited = new Promise<void>((done) => {
    const end = () => {
      ended = true;
      done();
    };
    child.once('exit', end);
    child.once('error', end);
  });
  child.stdin?.on('error', () => {}); // the watchdog is gone: its exit tells
  let ready: PidFile | undefined;
  for (const until = Date.now() + 60_000; ready === undefined; await wait(10)) {
    const found = readPidFile(data);
    if (found?.ready) ready = found;
    else if (ended || Date.now() > until || (found === undefined && /FATAL|PANIC/.test(tail))) {
      child.stdin?.end();
      throw failed(`Postgres did not start in ${folder}:\n${tail}`);
    }
  }
  // a server that runs must not keep a finished program alive
  child.unref();
  for (const stream of [child.stderr, child.stdin]) (stream as { unref?: () => void } | null)?.unref?.();
  return {
    pid: ready.pid,
    port,
    async stop(pgCtl: string): Promise<void> {
      child.ref();
      if (ended) return;
      if (windows) execFileSync(pgCtl, ['stop', '-D', data, '-m', 'fast'], { stdio: 'ignore' });
      else child.stdin?.end();
      await exited;
    },
  };
}
