/**
 * Named ports (VER-2): free ones are found by listening on them, are kept until the command is let go, and
 * are marked by a file as long as it runs, so that two commands of one machine never get the same.
 */
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { Fault } from '../../app/errors.ts';

/** Ports that are held. */
export type Ports = Readonly<{
  ports: readonly { name: string; port: number }[];
  /** Stops listening, so that the command can; the marks stay. */
  handOver: () => Promise<void>;
  /** Gives everything back; may be called at any time, more than once. */
  release: () => Promise<void>;
}>;

const TRIES = 50;

/** Reserves a port for each name, marked in `dir`; throws Fault `lock_busy` where none is to be had, holding nothing. */
export async function reservePorts(names: readonly string[], dir: string): Promise<Ports> {
  const held: { name: string; port: number; server: Server }[] = [];
  const handOver = async (): Promise<void> => {
    await Promise.all(held.map(({ server }) => closed(server)));
  };
  const release = async (): Promise<void> => {
    await handOver();
    await Promise.all(held.map(({ port }) => rm(mark(dir, port), { force: true })));
  };
  try {
    if (names.length > 0) await mkdir(dir, { recursive: true, mode: 0o700 });
    for (const name of names) held.push({ name, ...(await reserveOne(dir)) });
  } catch (error) {
    await release();
    throw error;
  }
  return { ports: held.map(({ name, port }) => ({ name, port })), handOver, release };
}

function mark(dir: string, port: number): string {
  return join(dir, String(port));
}

async function reserveOne(dir: string): Promise<{ port: number; server: Server }> {
  for (let n = 0; n < TRIES; n++) {
    const server = await listening();
    const address = server.address();
    const port = address !== null && typeof address === 'object' ? address.port : 0;
    if (port > 0 && (await marked(dir, port))) return { port, server };
    await closed(server);
  }
  throw new Fault('lock_busy', 'no free port was to be had', { retryable: true });
}

async function marked(dir: string, port: number): Promise<boolean> {
  const file = mark(dir, port);
  for (let n = 0; n < 2; n++) {
    try {
      await writeFile(file, String(process.pid), { flag: 'wx', mode: 0o600 });
      return true;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    }
    // the mark of a runner that was killed is nobody's
    const owner = Number(await readFile(file, 'utf8').catch(() => ''));
    if (Number.isInteger(owner) && owner > 0 && isAlive(owner)) return false;
    await rm(file, { force: true });
  }
  return false;
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

function listening(): Promise<Server> {
  return new Promise((resolve, reject) => {
    const server = createServer((socket) => socket.destroy());
    server.once('error', reject);
    server.listen({ port: 0, host: '127.0.0.1', exclusive: true }, () => resolve(server));
  });
}

function closed(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
  });
}
