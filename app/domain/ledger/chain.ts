/**
 * Verifying a chain (LED-8): pure over stored rows and a MAC check. One bad row makes the whole run
 * unverifiable, since a row that is skipped can be the finding that blocked. Who controls the input:
 * anybody who can write to the database.
 */
import { hash as digest } from 'node:crypto';
import { BODY_LIMIT } from './canonical.ts';
import type { RunHead } from './head.ts';
import { isRowKind, ROW_VERSION, type StoredRow } from './row.ts';

/** What can be wrong with a chain (LED-8). */
export type ChainFault =
  | 'edited'
  | 'missing'
  | 'reordered'
  | 'duplicated'
  | 'foreign'
  | 'truncated'
  | 'unknown_version';

/** What a chain must be of. */
export interface ChainIdentity {
  readonly log: string;
  readonly run: string;
  readonly repo: string | null;
  /** What `prev` of row 1 must be, made from what the run is of, never from the ledger's own table. */
  readonly genesis: Buffer;
}

/** A head up to which every row was verified. Keep it in memory only: in the database it would prove nothing. */
export interface VerifiedHead {
  readonly seq: number;
  readonly hash: Buffer;
}

/** The answer: intact up to a head, or the first bad row and what is wrong, or a key that is absent. */
export type ChainVerdict =
  | { readonly kind: 'intact'; readonly head: VerifiedHead }
  | { readonly kind: 'invalid'; readonly seq: number; readonly fault: ChainFault; readonly detail: string }
  | { readonly kind: 'unverifiable'; readonly seq: number; readonly kid: string };

/** Whether a MAC is that of a body in a run of a log; undefined where the key is absent. */
export type CheckMac = (
  kid: string,
  log: string,
  run: string,
  body: Buffer,
  mac: Buffer,
) => boolean | undefined;

type Bad = Exclude<ChainVerdict, { kind: 'intact' }>;

const HEX_SALT = 32;
const HEX_HASH = 64;

/** Verifies one chain in order of `seq`, in as many parts as the caller likes: `feed` them all, then `finish`. */
export class ChainVerifier {
  readonly #chain: ChainIdentity;
  readonly #checkMac: CheckMac;
  readonly #watched: Map<number, Buffer>;
  readonly #from: number;
  #seq: number;
  #hash: Buffer;
  #kid = '';
  #bad: Bad | undefined;
  /** What a body says from the end of its data up to its salt, by kind, under `#kid`; `prev` is filled in per row. */
  readonly #expected = new Map<string, Buffer>();
  readonly #middle: string;
  readonly #scratch = Buffer.alloc(BODY_LIMIT + 1); // byte 0 stays 0x00, the leaf prefix
  /** The beginnings of the scratch space by length: making one a row costs as much as comparing one. */
  readonly #views: Buffer[] = [];

  /** Starts at the genesis, or at a head that was verified before; `published` heads must be prefixes of the chain (LED-9). */
  constructor(
    chain: ChainIdentity,
    checkMac: CheckMac,
    from?: VerifiedHead,
    published: readonly RunHead[] = [],
  ) {
    this.#chain = chain;
    this.#checkMac = checkMac;
    this.#from = from?.seq ?? 0;
    this.#seq = this.#from;
    this.#hash = from?.hash ?? chain.genesis;
    this.#watched = new Map();
    for (const head of published) this.#watch(head);
    this.#middle = `","repo":${JSON.stringify(chain.repo)},"run":${JSON.stringify(chain.run)},"salt":"`;
  }

  #watch(head: RunHead): void {
    const known = head.seq === this.#seq ? this.#hash : this.#watched.get(head.seq);
    if (head.log !== this.#chain.log || head.run !== this.#chain.run) {
      this.#fail(head.seq, 'foreign', 'a published head of another run');
    } else if (known !== undefined ? !known.equals(head.hash) : head.seq < this.#seq) {
      this.#fail(head.seq, 'truncated', 'the chain does not go through a head that was published');
    } else if (head.seq > this.#seq) this.#watched.set(head.seq, head.hash);
  }

  /** The head verified so far. */
  get head(): VerifiedHead {
    return { seq: this.#seq, hash: this.#hash };
  }

  /** Takes the next rows, in the order of the table's `seq`. */
  feed(rows: readonly StoredRow[]): void {
    for (const row of rows) {
      if (this.#bad !== undefined) this.#classify(row);
      else if (this.#accepts(row)) this.#advance(row);
      else this.#bad = this.#diagnose(row);
    }
  }

  /** The verdict, once all rows were fed; `table` is what the ledger's own head says. */
  finish(table?: { readonly seq: number; readonly hash: Buffer | null }): ChainVerdict {
    if (this.#bad !== undefined) return this.#bad;
    for (const seq of this.#watched.keys()) {
      if (seq > this.#seq)
        return this.#fail(this.#seq + 1, 'truncated', `a head of ${seq} rows was published`);
    }
    if (table !== undefined) {
      if (table.seq > this.#seq)
        return this.#fail(this.#seq + 1, 'truncated', `the head tells of ${table.seq} rows`);
      if (table.seq < this.#from) {
        return this.#fail(table.seq + 1, 'truncated', `${this.#from} rows were verified before`);
      }
      const same = this.#seq === 0 ? table.hash === null : table.hash?.equals(this.#hash) === true;
      if (table.seq < this.#seq || !same)
        return this.#fail(this.#seq, 'edited', 'the head is not that of the rows');
    }
    return { kind: 'intact', head: this.head };
  }

  #fail(seq: number, fault: ChainFault, detail: string): Bad {
    this.#bad ??= { kind: 'invalid', seq, fault, detail };
    return this.#bad;
  }

  #advance(row: StoredRow): void {
    this.#seq += 1;
    this.#hash = row.hash;
    const wanted = this.#watched.size === 0 ? undefined : this.#watched.get(this.#seq);
    if (wanted === undefined) return;
    if (wanted.equals(row.hash)) this.#watched.delete(this.#seq);
    else this.#fail(this.#seq, 'truncated', 'the chain does not go through a head that was published');
  }

  /**
   * The whole check of a good row, without parsing it. In canonical JSON the fields after `data` are
   * the last bytes of the body, in a known order, so they are compared as bytes: whatever ends in
   * them says exactly this kid, kind, log, prev, repo, run, seq and version.
   */
  #accepts(row: StoredRow): boolean {
    const { body, kind } = row;
    if (body.length > BODY_LIMIT || row.seq !== this.#seq + 1 || !same(row.prev, this.#hash)) return false;
    let expected = this.#expected.get(kind);
    if (expected === undefined || !this.#endsIn(row, expected)) {
      if (!isRowKind(kind)) return false;
      this.#useKid(kidOf(body)); // a first row or a rotation: once a chain, not once a row
      const before = `,"kid":${JSON.stringify(this.#kid)},"kind":"${kind}","log":${JSON.stringify(this.#chain.log)},"prev":"`;
      expected = Buffer.from(before + '0'.repeat(HEX_HASH) + this.#middle, 'latin1');
      this.#expected.set(kind, expected);
      if (!this.#endsIn(row, expected)) return false;
    }
    if (row.hash.toString('latin1') !== this.#hashOf(body)) return false;
    return this.#checkMac(this.#kid, this.#chain.log, this.#chain.run, body, row.mac) === true;
  }

  #useKid(kid: string): void {
    if (kid === this.#kid) return;
    this.#kid = kid;
    this.#expected.clear();
  }

  #endsIn(row: StoredRow, expected: Buffer): boolean {
    const { body } = row;
    const after = `","seq":${row.seq},"v":${ROW_VERSION}}`;
    const afterAt = body.length - after.length;
    const start = afterAt - HEX_SALT - expected.length;
    if (start < 0 || body.toString('latin1', afterAt) !== after) return false;
    writeHex(this.#hash, expected, expected.length - this.#middle.length - HEX_HASH);
    return body.compare(expected, 0, expected.length, start, start + expected.length) === 0;
  }

  /** The hash of a body as latin-1 characters: a string costs half of what a Buffer does. */
  #hashOf(body: Buffer): string {
    this.#scratch.set(body, 1);
    this.#views[body.length] ??= this.#scratch.subarray(0, body.length + 1);
    return digest('sha256', this.#views[body.length] ?? this.#scratch, 'binary');
  }

  /** Names what is wrong with a row that was not accepted. */
  #diagnose(row: StoredRow): Bad {
    const seq = this.#seq + 1;
    const edited = (detail: string): Bad => ({ kind: 'invalid', seq, fault: 'edited', detail });
    if (row.body.length > BODY_LIMIT) return edited('the body is longer than any row');
    if (this.#hashOf(row.body) !== row.hash.toString('latin1'))
      return edited('the hash is not that of the body');
    const body = fieldsOf(row.body);
    if (body === undefined) return edited('the body is not a row');
    if (body.v !== ROW_VERSION)
      return { kind: 'invalid', seq, fault: 'unknown_version', detail: 'its version' };
    const authentic = this.#checkMac(body.kid, body.log, body.run, row.body, row.mac);
    if (authentic === undefined) return { kind: 'unverifiable', seq, kid: body.kid };
    if (!authentic) return edited('the MAC is not that of the body');
    if (!isRowKind(body.kind)) return { kind: 'invalid', seq, fault: 'unknown_version', detail: 'its kind' };
    const { log, run, repo } = this.#chain;
    if (body.log !== log || body.run !== run || body.repo !== repo) {
      return { kind: 'invalid', seq, fault: 'foreign', detail: 'the row belongs to another chain' };
    }
    if (body.seq < seq) return { kind: 'invalid', seq, fault: 'duplicated', detail: `row ${body.seq} again` };
    // until a later row turns out to be the one that belongs here
    if (body.seq > seq)
      return { kind: 'invalid', seq, fault: 'missing', detail: `row ${body.seq} in its place` };
    if (seq === 1 && body.prev !== this.#chain.genesis.toString('hex')) {
      return { kind: 'invalid', seq, fault: 'foreign', detail: 'the chain is not of this run' };
    }
    if (body.prev !== this.#hash.toString('hex')) return edited('it follows another row');
    return edited('a column differs from the body');
  }

  /** After the first bad row: was the missing one only moved? */
  #classify(row: StoredRow): void {
    const bad = this.#bad;
    if (bad?.kind !== 'invalid' || bad.fault !== 'missing' || row.body.length > BODY_LIMIT) return;
    const body = fieldsOf(row.body);
    if (body?.seq !== bad.seq || body.run !== this.#chain.run || body.log !== this.#chain.log) return;
    if (this.#checkMac(body.kid, body.log, body.run, row.body, row.mac) !== true) return;
    this.#bad = { ...bad, fault: 'reordered', detail: 'it comes later' };
  }
}

interface Fields {
  readonly v: number;
  readonly log: string;
  readonly run: string;
  readonly repo: string | null;
  readonly seq: number;
  readonly prev: string;
  readonly kind: string;
  readonly kid: string;
}

function fieldsOf(body: Buffer): Fields | undefined {
  try {
    const json: unknown = JSON.parse(body.toString('utf8'));
    if (typeof json !== 'object' || json === null) return undefined;
    const { v, log, run, repo, seq, prev, kind, kid } = json as Record<string, unknown>;
    const texts = [log, run, prev, kind, kid].every((text) => typeof text === 'string');
    if (!texts || typeof v !== 'number' || !Number.isSafeInteger(seq)) return undefined;
    if (repo !== null && typeof repo !== 'string') return undefined;
    return { v, log, run, repo, seq, prev, kind, kid } as Fields;
  } catch {
    return undefined;
  }
}

function kidOf(body: Buffer): string {
  return fieldsOf(body)?.kid ?? '';
}

/** A loop, since a call out of the engine costs several times the comparison of 32 bytes. */
function same(a: Buffer, b: Buffer): boolean {
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return false;
  return true;
}

const DIGITS = Buffer.from('0123456789abcdef', 'latin1');

function writeHex(bytes: Buffer, to: Buffer, at: number): void {
  for (let i = 0; i < bytes.length; i++) {
    const byte = bytes[i] ?? 0;
    to[at + 2 * i] = DIGITS[byte >> 4] ?? 0;
    to[at + 2 * i + 1] = DIGITS[byte & 15] ?? 0;
  }
}
