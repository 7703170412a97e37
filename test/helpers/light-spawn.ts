/**
 * Starts this worker's processes through a small one (test/processes/spawner.ts). A fork copies the page
 * tables of whoever forks and write-protects its pages: from a worker that has grown to 500 MB that costs
 * 20 to 50 ms of processor time on a virtual machine, from a small process 2, and the suite starts some
 * twenty thousand. Only plain starts go that way: pipes or nothing as streams, no shell, no channel.
 */
import childProcess, { type ChildProcess, fork, type SpawnOptions } from 'node:child_process';
import { EventEmitter } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import type { SpawnNews, SpawnOrder } from '../processes/spawner.ts';
import { programFile } from './process.ts';

const real = childProcess.spawn;
const STREAMS = [0, 1, 2];

/** A child that the spawner has: what callers use of a `ChildProcess`. */
class LightChild extends EventEmitter {
  pid: number | undefined;
  exitCode: number | null = null;
  signalCode: NodeJS.Signals | null = null;
  killed = false;
  readonly stdio: (PassThrough | null)[];
  readonly stdin: PassThrough | null;
  readonly stdout: PassThrough | null;
  readonly stderr: PassThrough | null;
  readonly spawnfile: string;
  readonly spawnargs: readonly string[];
  #wanted: NodeJS.Signals | number | undefined;
  #over = false;

  constructor(order: SpawnOrder) {
    super();
    this.spawnfile = order.file;
    this.spawnargs = [order.file, ...order.args];
    this.stdio = STREAMS.map((stream) => (order.pipes.includes(stream) ? new PassThrough() : null));
    [this.stdin = null, this.stdout = null, this.stderr = null] = this.stdio;
    for (const stream of [this.stdout, this.stderr]) stream?.once('close', () => this.#close());
  }

  /** A pipe of it has come. */
  attach(stream: number, socket: Socket): void {
    const end = this.stdio[stream];
    if (end === null || end === undefined) return void socket.destroy();
    socket.on('error', (error) => end.destroy(stream === 0 ? error : undefined));
    if (stream === 0) {
      socket.resume();
      end.pipe(socket);
    } else {
      socket.pipe(end);
      // a reader that asks no more learns of the end, as from a socket
      end.once('finish', () => end.read(0));
      // a reader that closes its end makes the child's next write fail, as with a pipe
      end.once('close', () => socket.destroy());
    }
  }

  hear(news: SpawnNews): void {
    if ('pid' in news) {
      this.pid = news.pid;
      this.emit('spawn');
      if (this.#wanted !== undefined) this.kill(this.#wanted);
    } else if ('failed' in news) {
      for (const stream of this.stdio) stream?.destroy();
      this.emit(
        'error',
        Object.assign(new Error(news.failed.message), {
          code: news.failed.code,
          syscall: `spawn ${this.spawnfile}`,
          path: this.spawnfile,
          spawnargs: this.spawnargs.slice(1),
        }),
      );
    } else {
      this.exitCode = news.exit;
      this.signalCode = news.signal;
      this.#over = true;
      this.emit('exit', news.exit, news.signal);
      // what nobody reads must not keep it from closing
      for (const stream of [this.stdout, this.stderr]) if (stream?.readable === true) stream.resume();
      this.stdin?.destroy();
      this.#close();
    }
  }

  kill(signal: NodeJS.Signals | number = 'SIGTERM'): boolean {
    if (this.#over) return false;
    this.#wanted = signal;
    if (this.pid === undefined) return true;
    try {
      process.kill(this.pid, signal);
    } catch {
      return false;
    }
    this.killed ||= signal !== 0;
    return true;
  }

  ref(): void {}
  unref(): void {}

  #close(): void {
    const open = [this.stdout, this.stderr].some((stream) => stream !== null && !stream.closed);
    if (this.#over && !open) setImmediate(() => this.emit('close', this.exitCode, this.signalCode));
  }
}

/** The spawner of this worker. */
class Spawner {
  readonly #children = new Map<number, LightChild>();
  readonly #process: ChildProcess;
  #last = 0;

  constructor() {
    const folder = mkdtempSync(join(tmpdir(), 'countersign-spawner-'));
    process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
    const server = createServer({ allowHalfOpen: true, pauseOnConnect: false }, (socket) =>
      this.#welcome(socket),
    );
    server.listen(join(folder, 'socket'));
    server.unref();
    this.#process = fork(programFile('spawner'), [join(folder, 'socket')], { execArgv: [] });
    this.#process.unref();
    this.#process.channel?.unref();
    this.#process.on('message', (news: SpawnNews) => {
      this.#children.get(news.id)?.hear(news);
    });
  }

  start(order: Omit<SpawnOrder, 'id'>): LightChild {
    const id = ++this.#last;
    const child = new LightChild({ ...order, id });
    this.#children.set(id, child);
    // not before: that it ended may be heard before its pipes have come
    child.once('close', () => this.#children.delete(id));
    child.once('error', () => this.#children.delete(id));
    this.#process.send({ ...order, id });
    return child;
  }

  #welcome(socket: Socket): void {
    let head = Buffer.alloc(0);
    const read = (chunk: Buffer) => {
      head = Buffer.concat([head, chunk]);
      const end = head.indexOf(0x0a);
      if (end < 0) return;
      socket.off('data', read);
      socket.pause();
      const [id, stream] = head.toString('latin1', 0, end).split(' ').map(Number);
      if (end + 1 < head.length) socket.unshift(head.subarray(end + 1));
      const child = this.#children.get(id ?? 0);
      if (child === undefined) socket.destroy();
      else child.attach(stream ?? 0, socket);
    };
    socket.on('data', read);
  }
}

/** The streams that lead here where a start is a plain one, else null. */
function plainPipes(options: SpawnOptions): number[] | null {
  const { stdio = 'pipe' } = options;
  const kinds = typeof stdio === 'string' ? STREAMS.map(() => stdio) : stdio;
  if (kinds.length > 3 || options.signal !== undefined || options.timeout !== undefined) return null;
  if (options.shell || options.uid !== undefined || options.gid !== undefined) return null;
  if (kinds.some((kind) => kind !== 'pipe' && kind !== 'ignore')) return null;
  return STREAMS.filter((stream) => kinds[stream] === 'pipe');
}

let spawner: Spawner | undefined;

function lightSpawn(file: string, args: readonly string[] = [], options: SpawnOptions = {}): ChildProcess {
  const pipes = Array.isArray(args) ? plainPipes(options) : null;
  if (pipes === null) return real(file, args as string[], options);
  spawner ??= new Spawner();
  const env = Object.entries(options.env ?? process.env).filter(
    (one): one is [string, string] => one[1] !== undefined,
  );
  return spawner.start({
    file,
    args,
    pipes,
    options: {
      env: Object.fromEntries(env),
      cwd: String(options.cwd ?? process.cwd()),
      ...(options.detached === undefined ? {} : { detached: options.detached }),
      ...(options.argv0 === undefined ? {} : { argv0: options.argv0 }),
    },
  }) as unknown as ChildProcess;
}

// once a worker, though this module is loaded anew for each file
const installed = Symbol.for('countersign.light-spawn');
const worker = globalThis as { [installed]?: true };
if (worker[installed] === undefined) {
  worker[installed] = true;
  childProcess.spawn = lightSpawn as typeof real;
  syncBuiltinESMExports();
}
