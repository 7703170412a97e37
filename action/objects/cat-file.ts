/** One `git cat-file --batch` that answers for all tickets of a repository: a process start a blob would cost more than the blob. */
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { Fault } from '../../app/errors.ts';
import type { Git } from './git.ts';

/** A blob as read: its bytes, or null where it is larger than `LARGEST_BLOB`; `size` is in bytes. */
export type Blob = Readonly<{ oid: string; size: number; bytes: Buffer | null }>;

/** Blobs above this many bytes are not kept: no reviewer reads them (too_large). */
export const LARGEST_BLOB = 8 * 1024 * 1024;

type Waiting = { oid: string; resolve: (blob: Blob) => void; reject: (error: Error) => void };

/** Reads blobs by id, in the order they were asked for. */
export type CatFile = Readonly<{ read: (oid: string) => Promise<Blob>; close: () => Promise<void> }>;

/** Starts the reader; it starts its process when first asked and again after that one ended. */
export function openCatFile(at: Git): CatFile {
  let child: ChildProcessWithoutNullStreams | null = null;
  let closed: Promise<void> = Promise.resolve();
  const queue: Waiting[] = [];
  let chunks: Buffer[] = [];
  let held = 0;
  /** The object whose bytes are arriving: `left` counts them and the line break after. */
  let current: { size: number; left: number; kept: Buffer[] | null } | null = null;

  function failAll(message: string): void {
    for (const waiting of queue.splice(0))
      waiting.reject(new Fault('git_unavailable', message, { retryable: true }));
    chunks = [];
    held = 0;
    current = null;
  }

  function take(): Buffer {
    const all = chunks.length === 1 ? (chunks[0] ?? Buffer.alloc(0)) : Buffer.concat(chunks);
    chunks = [];
    held = 0;
    return all;
  }

  function onData(chunk: Buffer): void {
    chunks.push(chunk);
    held += chunk.length;
    while (held > 0) {
      const data = take();
      if (current === null) {
        const lineEnd = data.indexOf(10);
        if (lineEnd < 0) {
          chunks = [data];
          held = data.length;
          return;
        }
        header(data.subarray(0, lineEnd).toString('latin1'));
        put(data.subarray(lineEnd + 1));
        continue;
      }
      const part = data.subarray(0, current.left);
      current.kept?.push(part);
      current.left -= part.length;
      put(data.subarray(part.length));
      if (current.left === 0) deliver(current);
    }
  }

  function put(rest: Buffer): void {
    if (rest.length === 0) return;
    chunks.push(rest);
    held += rest.length;
  }

  function header(line: string): void {
    const [oid, type, size] = line.split(' ');
    if (type === 'blob' && size !== undefined && queue[0]?.oid === oid) {
      const bytes = Number(size);
      current = { size: bytes, left: bytes + 1, kept: bytes > LARGEST_BLOB ? null : [] };
      return;
    }
    queue.shift()?.reject(new Fault('git_unavailable', `Object is ${type ?? 'not readable'}, not a blob`));
    // an object of another type would be followed by its bytes: start over rather than guess
    if (type !== 'missing') child?.kill('SIGKILL');
  }

  function deliver(done: { size: number; kept: Buffer[] | null }): void {
    current = null;
    const waiting = queue.shift();
    const bytes = done.kept === null ? null : Buffer.concat(done.kept).subarray(0, done.size);
    waiting?.resolve({ oid: waiting.oid, size: done.size, bytes });
  }

  function start(): ChildProcessWithoutNullStreams {
    const started = spawn('git', ['cat-file', '--batch'], { cwd: at.dir, env: at.env, detached: true });
    started.stdout.on('data', onData);
    started.stderr.resume();
    started.stdin.on('error', () => undefined);
    started.on('error', () => failAll('git cat-file could not be started'));
    closed = new Promise((resolve) => {
      started.on('close', () => {
        if (child === started) child = null;
        failAll('git cat-file ended');
        resolve();
      });
    });
    return started;
  }

  return {
    read: (oid) =>
      new Promise((resolve, reject) => {
        queue.push({ oid, resolve, reject });
        child ??= start();
        child.stdin.write(`${oid}\n`);
      }),
    async close() {
      if (child?.pid === undefined) return;
      try {
        process.kill(-child.pid, 'SIGKILL');
      } catch {
        // it ended by itself
      }
      await closed;
    },
  };
}
