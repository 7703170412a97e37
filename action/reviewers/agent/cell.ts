/**
 * Where a command-line agent runs (REV-11): as another user, in an empty folder of its own with a fresh
 * HOME, and nothing of it left running or lying there afterwards.
 */
import { chmod, chown, mkdir, mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

/** A place to run one agent in. */
export type Cell = Readonly<{
  work: string;
  home: string;
  temp: string;
  user: Readonly<{ uid: number; gid: number }>;
  /** Ends what still runs with this HOME and removes the folders. */
  close: () => Promise<void>;
}>;

/** Opens a cell, or says why there is none to be had on this machine. */
export async function openCell(passwd = '/etc/passwd'): Promise<Cell | Readonly<{ unsafe: string }>> {
  if (process.getuid?.() !== 0)
    return { unsafe: 'this runner is not root and cannot start an agent as another user' };
  const user = await nobody(passwd);
  if (user === null) return { unsafe: 'this machine has no user `nobody` to run an agent as' };
  const base = await reachable([tmpdir(), '/tmp', '/var/tmp']);
  if (base === null) return { unsafe: 'no temporary folder that another user can reach' };
  const root = await mkdtemp(join(base, 'countersign-agent-'));
  const remove = () => rm(root, { recursive: true, force: true }).catch(() => undefined);
  try {
    // passable, and nothing in it can be made or listed by anybody else
    await chmod(root, 0o711);
    for (const name of ['work', 'home', 'temp']) {
      await mkdir(join(root, name), { mode: 0o700 });
      await chown(join(root, name), user.uid, user.gid);
    }
  } catch (error) {
    await remove();
    throw error;
  }
  const home = join(root, 'home');
  return {
    work: join(root, 'work'),
    home,
    temp: join(root, 'temp'),
    user,
    async close() {
      await endLeftovers(user.uid, home);
      await remove();
    },
  };
}

async function nobody(passwd: string): Promise<{ uid: number; gid: number } | null> {
  const text = await readFile(passwd, 'utf8').catch(() => '');
  const match = /^nobody:[^:]*:(\d+):(\d+):/m.exec(text);
  const [uid, gid] = [Number(match?.[1] ?? 0), Number(match?.[2] ?? 0)];
  return uid > 0 && gid > 0 ? { uid, gid } : null;
}

/** The first folder that a user without rights can walk into. */
async function reachable(folders: readonly string[]): Promise<string | null> {
  for (const folder of folders) {
    let at = folder;
    let open = true;
    for (;;) {
      const mode = await stat(at).then(
        (found) => found.mode,
        () => 0,
      );
      open &&= (mode & 0o001) !== 0;
      if (!open || dirname(at) === at) break;
      at = dirname(at);
    }
    if (open) return folder;
  }
  return null;
}

/** Passes over what may be left, and the wait between two: a process that is killed takes a moment to go. */
const PASSES = 100;
const BETWEEN_PASSES_MS = 10;

/** Ends what left its group: looked at until a pass finds nothing, since one may miss what it starts. */
async function endLeftovers(uid: number, home: string): Promise<void> {
  for (let pass = 0; pass < PASSES; pass++) {
    const left = await leftovers(uid, home);
    if (left.length === 0) return;
    for (const { pid, known } of left) {
      try {
        if (known) process.kill(pid, 'SIGKILL');
      } catch {
        // it ended by itself
      }
    }
    await sleep(BETWEEN_PASSES_MS);
  }
}

/** Processes known by the HOME that they were started with, and those that show no environment: amid exec, or going. */
async function leftovers(uid: number, home: string): Promise<{ pid: number; known: boolean }[]> {
  const pids = (await readdir('/proc').catch((): string[] => [])).filter((name) => /^\d+$/.test(name));
  const left = await Promise.all(
    pids.map(async (pid) => {
      // not the owner of its folder there: a process can give that to root
      const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '');
      if (Number(/^Uid:\s+(\d+)/m.exec(status)?.[1] ?? -1) !== uid) return [];
      // over already: nobody has asked for its end yet
      if (/^State:\s+Z/m.test(status)) return [];
      const env = await readFile(`/proc/${pid}/environ`, 'utf8').catch(() => '');
      const known = env.split('\0').includes(`HOME=${home}`);
      return known || env === '' ? [{ pid: Number(pid), known }] : [];
    }),
  );
  return left.flat();
}

type Turn = { key: string; go: () => void };
const waiting: Turn[] = [];
let holding: { key: string; count: number } | null = null;

/** Runs `work` while no session with another key runs: agents share a user, and that user can read its own processes. */
export async function withKeyTurn<T>(key: string, work: () => Promise<T>): Promise<T> {
  await new Promise<void>((go) => {
    waiting.push({ key, go });
    admitNext();
  });
  try {
    return await work();
  } finally {
    if (holding !== null && --holding.count === 0) holding = null;
    admitNext();
  }
}

function admitNext(): void {
  for (let next = waiting[0]; next !== undefined; next = waiting[0]) {
    if (holding !== null && holding.key !== next.key) return;
    holding = { key: next.key, count: (holding?.count ?? 0) + 1 };
    waiting.shift();
    next.go();
  }
}
