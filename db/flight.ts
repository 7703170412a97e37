/**
 * Several prepared statements under one Sync: one write, one answer of the server, and when one of them
 * fails the server skips those behind it. What comes back is text by column, without its description:
 * whoever sends a flight knows what it asked for. Half of what a small statement costs on either side is
 * not the statement (performance.md, A4).
 */
import pg from 'pg';

/** One statement: `name` stands for one text for ever (it is parsed once a connection); '' is parsed each time. */
export interface Statement {
  readonly name: string;
  readonly text: string;
  /** Text, or the exact bytes of a `bytea`, which may lie in several pieces. */
  readonly values: readonly Value[];
}

type Value = string | Buffer | readonly Buffer[] | null;

/** What a statement answered. */
export interface Answer {
  /** Rows, each its columns as Postgres writes them as text. */
  readonly rows: readonly (readonly (string | null)[])[];
  /** The server's word for what it did: `COMMIT`, `INSERT 0 1`. */
  readonly command: string;
}

/** The part of the driver's connection that a flight writes to. */
interface Wire {
  readonly stream: { cork(): void; uncork(): void; write(bytes: Buffer): void };
  close(what: { type: 'S'; name: string }): void;
  parse(what: { name: string; text: string }): void;
  execute(what: { portal: ''; rows: 0 }): void;
  sync(): void;
}

type Done = (error: Error | null | undefined, answers?: Answer[]) => void;

/** Names that a connection has a statement for, or was just sent one. */
const prepared = new WeakMap<Wire, Set<string>>();

/** Sends statements as one flight, at once; rejects with the error of the first that failed: none behind it was done. */
export function fly(client: pg.Pool | pg.PoolClient, statements: readonly Statement[]): Promise<Answer[]> {
  if (statements.length === 0) return Promise.resolve([]);
  return new Promise((resolve, reject) => {
    const done: Done = (error, answers) => (error == null ? resolve(answers ?? []) : reject(error));
    const flight = new Flight(statements);
    // a pool hands its own callback on, which gives the connection back first
    if (client instanceof pg.Pool)
      (client.query as unknown as PoolQuery).call(client, flight, undefined, done);
    else {
      flight.callback = done;
      client.query(flight as unknown as pg.Submittable);
    }
  });
}

type PoolQuery = (flight: Flight, values: undefined, done: Done) => void;

/** In pipeline mode the driver takes its own class only, and those that extend it. */
class Flight extends (pg.Query as unknown as new (text: string) => object) {
  callback: Done | undefined;
  readonly #statements: readonly Statement[];
  readonly #answers: Answer[] = [];
  #rows: (string | null)[][] = [];
  #fresh: string[] = [];
  #names: Set<string> | undefined;

  constructor(statements: readonly Statement[]) {
    super('');
    this.#statements = statements;
  }

  submit(wire: Wire): null {
    let names = prepared.get(wire);
    if (names === undefined) {
      names = new Set();
      prepared.set(wire, names);
    }
    this.#names = names;
    wire.stream.cork();
    try {
      for (const { name, text, values } of this.#statements) {
        if (name === '') wire.parse({ name, text });
        else if (!names.has(name)) {
          // after a flight that failed nobody knows whether it got as far as this one
          wire.close({ type: 'S', name });
          wire.parse({ name, text });
          names.add(name);
          this.#fresh.push(name);
        }
        for (const piece of bind(name, values)) wire.stream.write(piece);
        wire.execute({ portal: '', rows: 0 });
      }
      wire.sync();
    } finally {
      wire.stream.uncork();
    }
    return null;
  }

  handleRowDescription(): void {}

  handleDataRow(message: { fields: (string | null)[] }): void {
    this.#rows.push(message.fields);
  }

  handleCommandComplete(message: { text: string }): void {
    this.#answers.push({ rows: this.#rows, command: message.text });
    this.#rows = [];
  }

  handleEmptyQuery(): void {}

  handlePortalSuspended(): void {}

  handleError(error: Error): void {
    for (const name of this.#fresh) this.#names?.delete(name);
    this.callback?.(error);
  }

  handleReadyForQuery(): void {
    this.callback?.(null, this.#answers);
  }
}

/** A value of so many bytes is written from where it lies: copying it costs more than a write of its own. */
const LARGE = 4_096;

/**
 * The Bind message, in pieces. The driver's own copies every value twice, and what it wrote before whenever
 * another does not fit: 80 kB of memory for a body of 21 kB, which its collector then has to find.
 */
function bind(name: string, values: readonly Value[]): Buffer[] {
  const sizes = values.map(sizeOf);
  // length, unnamed portal, name, formats, count of values, lengths of values, all results as text
  const fixed = 4 + 1 + Buffer.byteLength(name) + 1 + 2 + 2 * values.length + 2 + 4 * values.length + 2;
  const length = sizes.reduce((sum, size) => sum + Math.max(size, 0), fixed);
  const apart = sizes.reduce((sum, size, i) => sum + (isApart(values[i], size) ? size : 0), 0);
  const small = Buffer.allocUnsafe(1 + length - apart);
  const pieces: Buffer[] = [];
  let from = 0;
  let at = small.write('B', 'latin1');
  at = small.writeInt32BE(length, at);
  at = small.writeInt8(0, at);
  at += small.write(name, at, 'utf8');
  at = small.writeInt8(0, at);
  at = small.writeUInt16BE(values.length, at);
  for (const value of values) at = small.writeInt16BE(typeof value === 'object' ? 1 : 0, at);
  at = small.writeUInt16BE(values.length, at);
  for (const [i, value] of values.entries()) {
    const size = sizes[i] ?? -1;
    at = small.writeInt32BE(size, at);
    if (value === null) continue;
    if (typeof value === 'string') at += small.write(value, at, 'utf8');
    else if (Buffer.isBuffer(value) && size < LARGE) at += value.copy(small, at);
    else {
      pieces.push(small.subarray(from, at), ...(Buffer.isBuffer(value) ? [value] : value));
      from = at;
    }
  }
  small.writeInt16BE(0, at);
  pieces.push(small.subarray(from));
  return pieces;
}

/** Bytes on the wire; -1 is null. */
function sizeOf(value: Value): number {
  if (value === null) return -1;
  if (typeof value === 'string') return Buffer.byteLength(value);
  return Buffer.isBuffer(value) ? value.length : value.reduce((sum, piece) => sum + piece.length, 0);
}

function isApart(value: Value | undefined, size: number): boolean {
  return Array.isArray(value) || (Buffer.isBuffer(value) && size >= LARGE);
}

/** An array of text (or null) as one value, written as Postgres reads it. */
export function arrayText(values: readonly (string | null)[]): string {
  return `{${values.map((one) => (one === null ? 'NULL' : `"${one.replace(/["\\]/g, '\\$&')}"`)).join(',')}}`;
}

const readMoment = pg.types.getTypeParser(pg.types.builtins.TIMESTAMPTZ) as (text: string) => Date;
const UTC = /^(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d(?:\.\d{1,6})?)\+00$/;

/** A moment as sessions of ours write it, in UTC; any other form goes the driver's way. */
export function momentOf(text: string): Date {
  return UTC.test(text) ? new Date(`${text.slice(0, 10)}T${text.slice(11, -3)}Z`) : readMoment(text);
}
