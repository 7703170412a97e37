/**
 * Starts processes for a worker of the suite (test/helpers/light-spawn.ts), from a process that is small.
 * Argument: the worker's socket, to which each pipe of a child is connected.
 */
import { spawn } from 'node:child_process';
import { connect, type Socket } from 'node:net';

/** What the worker asks for; `pipes` are the numbers of the child's streams that lead to it. */
export interface SpawnOrder {
  readonly id: number;
  readonly file: string;
  readonly args: readonly string[];
  readonly options: {
    readonly cwd?: string;
    readonly env: Readonly<Record<string, string>>;
    readonly detached?: boolean;
    readonly argv0?: string;
  };
  readonly pipes: readonly number[];
}

/** What becomes of a child, told in this order. */
export type SpawnNews =
  | { readonly id: number; readonly pid: number }
  | { readonly id: number; readonly failed: { readonly message: string; readonly code?: string } }
  | { readonly id: number; readonly exit: number | null; readonly signal: NodeJS.Signals | null };

const say = (news: SpawnNews): void => {
  if (process.connected) process.send?.(news);
};

function pipe(id: number, stream: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect(String(process.argv[2]));
    // a socket reads from when it is connected, and what it reads here the child would never see
    socket.pause();
    socket.once('error', reject);
    // what the socket brings from now on is the child's
    socket.write(`${id} ${stream}\n`, () => resolve(socket.off('error', reject)));
  });
}

async function start({ id, file, args, options, pipes }: SpawnOrder): Promise<void> {
  const sockets = await Promise.all(pipes.map((stream) => pipe(id, stream)));
  const at = (stream: number) => sockets[pipes.indexOf(stream)] ?? ('ignore' as const);
  const child = spawn(file, args, { ...options, stdio: [at(0), at(1), at(2)] });
  for (const socket of sockets) socket.destroy();
  child.on('spawn', () => say({ id, pid: child.pid ?? 0 }));
  child.on('error', (error: NodeJS.ErrnoException) => say({ id, failed: told(error) }));
  child.on('exit', (exit, signal) => say({ id, exit, signal }));
}

function told({ message, code }: NodeJS.ErrnoException) {
  return { message, ...(code === undefined ? {} : { code }) };
}

process.on('message', (order: SpawnOrder) => {
  start(order).catch((error: Error) => say({ id: order.id, failed: told(error) }));
});
process.on('disconnect', () => process.exit());
