/** The folder of an embedded cluster: reachable by the user that runs Postgres, and started by one process at a time. */
import { execFileSync } from 'node:child_process';
import { createHash, randomUUID } from 'node:crypto';
import {
  chmodSync,
  chownSync,
  closeSync,
  lstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeSync,
} from 'node:fs';
import { hostname } from 'node:os';
import { join, resolve } from 'node:path';
import { Fault } from '../../app/errors.ts';
import type { PostgresUser } from './binaries.ts';

function reaches(folder: string, user: PostgresUser): boolean {
  if (user.uid === undefined) return true;
  try {
    // the system's ls as that user: there is no other way to ask whether every parent lets it through
    execFileSync('ls', [folder], { ...user, stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

function take(folder: string, user: PostgresUser): void {
  mkdirSync(folder, { recursive: true });
  if (user.uid !== undefined) chownSync(folder, user.uid, user.gid ?? user.uid);
  chmodSync(folder, 0o700);
}

/** Where the cluster of a folder lies when the user that runs Postgres cannot reach the folder itself. */
export function fallbackFolder(wanted: string): string {
  const name = createHash('sha256').update(resolve(wanted)).digest('hex').slice(0, 16);
  return join('/var/tmp', `countersign-${name}`);
}

/**
 * The cluster's folder, made 0700 and owned by `user`. Root below a 0700 folder (a checkout in /root)
 * gets a folder of its own under /var/tmp instead, since Postgres cannot run as root.
 */
export function clusterFolder(wanted: string, user: PostgresUser): string {
  const folder = resolve(wanted);
  take(folder, user);
  if (reaches(folder, user)) return folder;
  const fallback = fallbackFolder(folder);
  try {
    mkdirSync(fallback, { mode: 0o700 });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    // anyone may create a name in /var/tmp first: only a plain folder of root's or of that user is taken
    const found = lstatSync(fallback);
    if (!found.isDirectory() || (found.uid !== 0 && found.uid !== user.uid)) {
      throw new Fault('embedded_failed', `${fallback} belongs to somebody else: set DATABASE_URL`);
    }
  }
  take(fallback, user);
  if (!reaches(fallback, user))
    throw new Fault(
      'embedded_failed',
      `${fallback} cannot be reached by the user that runs Postgres: set DATABASE_URL`,
    );
  return fallback;
}

const STALE_MS = 10_000;
const wait = (ms: number) => new Promise<void>((done) => setTimeout(done, ms));

/**
 * Runs `start` while this process alone holds the folder's lock file, so that two first starts never
 * run initdb on each other. The holder touches the file each second; one that was not touched for
 * 10 s, or whose process is gone from this host, is taken over.
 */
export async function withStartLock<T>(folder: string, start: () => Promise<T>): Promise<T> {
  const file = join(folder, 'start.lock');
  const mark = `${process.pid} ${hostname()} ${randomUUID()}`;
  for (const until = Date.now() + 90_000; ; ) {
    try {
      const handle = openSync(file, 'wx', 0o600);
      writeSync(handle, mark);
      closeSync(handle);
      break;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    }
    if (isStale(file)) {
      try {
        renameSync(file, `${file}.${process.pid}.stale`); // only one of several takers succeeds
        rmSync(`${file}.${process.pid}.stale`, { force: true });
      } catch {
        // another process took it over: try for the new one
      }
      continue;
    }
    if (Date.now() > until)
      throw new Fault('embedded_failed', `another process has been starting Postgres in ${folder} for 90 s`, {
        retryable: true,
      });
    await wait(25);
  }
  const touch = setInterval(() => {
    try {
      utimesSync(file, new Date(), new Date());
    } catch {
      // removed from outside: nothing to keep alive
    }
  }, 1_000);
  try {
    return await start();
  } finally {
    clearInterval(touch);
    try {
      if (readFileSync(file, 'utf8') === mark) rmSync(file, { force: true });
    } catch {
      // already gone
    }
  }
}

function isStale(file: string): boolean {
  try {
    if (Date.now() - statSync(file).mtimeMs > STALE_MS) return true;
    // a pid means something on one host only; containers that share a folder have host names of their own
    const [pid, host] = readFileSync(file, 'utf8').split(' ');
    if (host !== hostname() || Number(pid) === process.pid || !(Number(pid) > 0)) return false;
    process.kill(Number(pid), 0);
    return false;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ESRCH';
  }
}
