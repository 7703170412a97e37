/**
 * One `git cat-file` process that answers many questions: a process each would cost more than the
 * answers. It knows no remote, so it never fetches, and it ends with the read it was started for.
 */
import { execa } from 'execa';
import { Fault } from '../../errors.ts';
import { environmentOf, type GitCall } from './command.ts';

/** An object as `cat-file` gives it. */
export interface GitObject {
  readonly oid: string;
  readonly type: string;
  readonly bytes: Buffer;
}

/** How long one process may live: longer than any read, so that a forgotten one ends by itself. */
const LIFE_MS = 10 * 60_000;

/** Questions are answered in order; one at a time is asked. */
export class ObjectReader {
  readonly #child;
  readonly #source: AsyncIterator<Uint8Array>;
  #rest: Buffer = Buffer.alloc(0);

  constructor(call: Pick<GitCall, 'gitDir' | 'environment'>) {
    this.#child = execa('git', ['cat-file', '--batch-command', '--buffer'], {
      env: environmentOf(call),
      extendEnv: false,
      encoding: 'buffer',
      stdin: 'pipe',
      stderr: 'ignore',
      buffer: false,
      timeout: LIFE_MS,
      forceKillAfterDelay: 2000,
      reject: false,
    });
    // it may end before it has read a question: that is told by the answer that does not come
    this.#child.stdin.on('error', () => {});
    this.#source = this.#child.stdout[Symbol.asyncIterator]();
  }

  /** Objects by name, null where one is not here. */
  async contents(names: readonly string[]): Promise<(GitObject | null)[]> {
    this.#ask(names.map((name) => `contents ${name}\n`));
    const objects: (GitObject | null)[] = [];
    for (let i = 0; i < names.length; i++) {
      const [oid = '', type = '', size = ''] = (await this.#line()).split(' ');
      if (!/^[0-9]+$/.test(size)) objects.push(null);
      else {
        objects.push({ oid, type, bytes: await this.#take(Number(size)) });
        await this.#take(1);
      }
    }
    return objects;
  }

  /** Those of the objects that are not here. */
  async missing(oids: readonly string[]): Promise<string[]> {
    this.#ask(oids.map((oid) => `info ${oid}\n`));
    const missing: string[] = [];
    for (const oid of oids) if ((await this.#line()).endsWith(' missing')) missing.push(oid);
    return missing;
  }

  /** Ends the process. */
  async end(): Promise<void> {
    this.#child.stdin.end();
    this.#child.kill('SIGKILL');
    await this.#child;
  }

  #ask(lines: readonly string[]): void {
    this.#child.stdin.write(`${lines.join('')}flush\n`);
  }

  async #line(): Promise<string> {
    for (;;) {
      const end = this.#rest.indexOf(0x0a);
      if (end >= 0) {
        const line = this.#rest.toString('latin1', 0, end);
        this.#rest = this.#rest.subarray(end + 1);
        return line;
      }
      this.#rest = Buffer.concat([this.#rest, await this.#more()]);
    }
  }

  async #take(size: number): Promise<Buffer> {
    const parts = [this.#rest];
    let have = this.#rest.length;
    while (have < size) {
      const part = await this.#more();
      parts.push(part);
      have += part.length;
    }
    const all = parts.length === 1 ? this.#rest : Buffer.concat(parts);
    this.#rest = all.subarray(size);
    return all.subarray(0, size);
  }

  async #more(): Promise<Buffer> {
    const next = await this.#source.next();
    if (next.done === true)
      throw new Fault('git_unavailable', 'git ended in the middle of an answer', { retryable: true });
    return Buffer.from(next.value.buffer, next.value.byteOffset, next.value.byteLength);
  }
}
