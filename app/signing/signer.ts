/** The only holder of keys: signs rows and heads, checks MACs. Nothing here ever returns a key (LED-6). */
import { createHmac, hash as digest, randomBytes, sign, verify } from 'node:crypto';
import { BODY_LIMIT } from '../domain/ledger/canonical.ts';
import type { CheckMac } from '../domain/ledger/chain.ts';
import { headText, type RunHead, signatureLine, vkeyOf } from '../domain/ledger/head.ts';
import {
  decodeSecret,
  installationKey,
  type KeyFile,
  privateKeyOf,
  publicKeyOf,
  rawPublicKey,
  redactionKeys,
  runKey,
} from '../domain/ledger/keys-derive.ts';
import {
  type AnyDraft,
  type AnyRow,
  ROW_TYPE,
  ROW_VERSION,
  rowBody,
  rowHash,
  type StoredRow,
} from '../domain/ledger/row.ts';
import type { RedactionKeys } from '../domain/redact/keyed.ts';
import { Fault } from '../errors.ts';

/** Where the next row of a chain goes. */
export interface ChainTip {
  readonly log: string;
  readonly run: string;
  readonly repo: string | null;
  /** Rows so far. */
  readonly seq: number;
  /** Hash of the last row, or the genesis. */
  readonly hash: Buffer;
}

/** What signs the ledger. */
export interface Signer {
  /** The log of an installation, `<origin>/i/<id>` (LED-1). */
  logOf(installationId: string): string;
  /** Signs one row at the tip; `at` is product time. `row_invalid` when its data does not fit its kind. */
  signRow(tip: ChainTip, at: Date, draft: AnyDraft): StoredRow;
  /** The signed note of a run's head (LED-10): text, blank line, signature line. */
  signHead(head: RunHead): string;
  /** Whether a MAC is ours; undefined where the key of that kid is absent. */
  readonly checkMac: CheckMac;
  /** The keys of one repository's redacted values, under the kid that signs now (REV-8). */
  redactionKeys(installationId: string, repositoryId: string): RedactionKeys;
  /** The verifier key of the notes, for outsiders (C2SP vkey). */
  readonly vkey: string;
  /** The kid that signs now. */
  readonly kid: string;
}

/** Run keys kept derived: deriving one costs more than signing a row. */
const KEPT_RUNS = 512;
const BLOCK = 64;
const MAC_PREFIX = `DSSEv1 ${Buffer.byteLength(ROW_TYPE)} ${ROW_TYPE} `;

/** Makes the signer of a key file; `key_invalid` when a key is short, empty or absent. */
export function createSigner(keys: KeyFile): Signer {
  return new KeySigner(keys);
}

class KeySigner implements Signer {
  // private fields: neither a logger nor an error's inspection prints them
  readonly #origin: string;
  readonly #roots = new Map<string, Buffer>();
  readonly #installations = new Map<string, Buffer>();
  readonly #runs = new Map<string, RunMac>();
  readonly #seed: ReturnType<typeof privateKeyOf>;
  readonly #publicKey: Buffer;
  #last: { kid: string; log: string; run: string; mac: RunMac } | undefined;
  readonly vkey: string;
  readonly kid: string;

  constructor(keys: KeyFile) {
    for (const [kid, text] of Object.entries(keys.roots)) this.#roots.set(kid, secretOf(text));
    if (!this.#roots.has(keys.current)) throw new Fault('key_invalid', 'the current kid has no root');
    this.kid = keys.current;
    this.#origin = keys.log.name;
    this.#seed = privateKeyOf(secretOf(keys.log.seed));
    this.#publicKey = rawPublicKey(this.#seed);
    this.vkey = vkeyOf(this.#origin, this.#publicKey);
  }

  logOf(installationId: string): string {
    return `${this.#origin}/i/${installationId}`;
  }

  signRow(tip: ChainTip, at: Date, draft: AnyDraft): StoredRow {
    const row = {
      actor: draft.actor,
      at: at.toISOString(),
      block: draft.block,
      cause: draft.cause,
      data: draft.data,
      kid: this.kid,
      kind: draft.kind,
      log: tip.log,
      prev: tip.hash.toString('hex'),
      repo: tip.repo,
      run: tip.run,
      salt: nextSalt(),
      seq: tip.seq + 1,
      v: ROW_VERSION,
    } as AnyRow;
    const body = rowBody(row);
    const mac = this.#macOf(this.kid, tip.log, tip.run)?.of(body);
    if (mac === undefined) throw new Fault('key_invalid', 'the current kid has no root');
    return {
      seq: row.seq,
      prev: tip.hash,
      hash: rowHash(body),
      mac: Buffer.from(mac, 'latin1'),
      kind: row.kind,
      body,
    };
  }

  signHead(head: RunHead): string {
    const text = headText(head);
    const signature = sign(null, Buffer.from(text, 'utf8'), this.#seed);
    // a fault in memory or in the library must not publish a signature that nobody can verify
    if (!verify(null, Buffer.from(text, 'utf8'), publicKeyOf(this.#publicKey), signature)) {
      throw new Fault('bug', 'a fresh signature does not verify');
    }
    return `${text}\n${signatureLine(this.#origin, this.#publicKey, signature)}`;
  }

  redactionKeys(installationId: string, repositoryId: string): RedactionKeys {
    const keys = redactionKeys(this.#installationKey(this.kid, this.logOf(installationId)), repositoryId);
    return {
      salt: keys.salt.toString('hex'),
      seal: (inner) =>
        createHmac('sha256', keys.seal).update('countersign redacted 1\n').update(inner).digest('hex'),
    };
  }

  readonly checkMac: CheckMac = (kid, log, run, body, mac) => {
    const key = this.#macOf(kid, log, run);
    if (key === undefined) return undefined;
    return mac.length === 32 && body.length <= BODY_LIMIT && sameBytes(key.of(body), mac);
  };

  #macOf(kid: string, log: string, run: string): RunMac | undefined {
    const last = this.#last;
    if (last !== undefined && last.run === run && last.kid === kid && last.log === log) return last.mac;
    if (!this.#roots.has(kid)) return undefined;
    // the separators are in no kid, log or run: names cannot run into each other
    const name = `${kid}\n${log}\n${run}`;
    let mac = this.#runs.get(name);
    if (mac === undefined) {
      mac = new RunMac(runKey(this.#installationKey(kid, log), run));
      keep(this.#runs, name, mac);
    }
    this.#last = { kid, log, run, mac };
    return mac;
  }

  #installationKey(kid: string, log: string): Buffer {
    const owner = `${kid}\n${log}`;
    const known = this.#installations.get(owner);
    if (known !== undefined) return known;
    const root = this.#roots.get(kid);
    if (root === undefined) throw new Fault('key_invalid', 'a kid has no root');
    const made = installationKey(root, log);
    keep(this.#installations, owner, made);
    return made;
  }
}

const SALT_BYTES = 16;
/** Random bytes of salts to come: drawing them one by one is a tenth of what a signature costs. */
let drawn = Buffer.alloc(0);

function nextSalt(): string {
  if (drawn.length === 0) drawn = randomBytes(SALT_BYTES * 256);
  const salt = drawn.toString('hex', 0, SALT_BYTES);
  drawn = drawn.subarray(SALT_BYTES);
  return salt;
}

function keep<T>(map: Map<string, T>, name: string, value: T): void {
  map.set(name, value);
  const oldest = map.keys().next().value;
  if (map.size > KEPT_RUNS && oldest !== undefined) map.delete(oldest);
}

function secretOf(text: string): Buffer {
  const bytes = decodeSecret(text);
  if (bytes === undefined) throw new Fault('key_invalid', 'a key is not 32 bytes in base64');
  return bytes;
}

/** Room for one row and its encoding; every use fills it and reads it without a pause. */
const scratch = Buffer.alloc(BLOCK + MAC_PREFIX.length + 8 + BODY_LIMIT);
scratch.write(MAC_PREFIX, BLOCK, 'latin1');
const LENGTH_AT = BLOCK + MAC_PREFIX.length;
/** Whose inner pad is in the scratch space now, and where the body begins after a length of so many digits. */
let padOf: RunMac | undefined;
let lengthIn = -1;
let bodyAt = LENGTH_AT;
/** The beginnings of the scratch space by length: making one a row costs as much as comparing one. */
const views: Buffer[] = [];

/**
 * HMAC-SHA256 of one run's rows over DSSE's encoding, made of two one-shot hashes over scratch space:
 * a Hmac object per row costs more than the hashing (performance.md §3).
 */
class RunMac {
  readonly #inner = Buffer.alloc(BLOCK);
  readonly #outer = Buffer.alloc(BLOCK + 32);

  constructor(key: Buffer) {
    for (let i = 0; i < BLOCK; i++) {
      this.#inner[i] = (key[i] ?? 0) ^ 0x36;
      this.#outer[i] = (key[i] ?? 0) ^ 0x5c;
    }
  }

  /** The MAC as 32 latin-1 characters: a string costs half of what a Buffer does. */
  of(body: Buffer): string {
    if (padOf !== this) {
      this.#inner.copy(scratch);
      padOf = this;
    }
    if (lengthIn !== body.length) {
      bodyAt = LENGTH_AT + scratch.write(`${body.length} `, LENGTH_AT, 'latin1');
      lengthIn = body.length;
    }
    scratch.set(body, bodyAt);
    const end = bodyAt + body.length;
    views[end] ??= scratch.subarray(0, end);
    this.#outer.write(digest('sha256', views[end] ?? scratch, 'binary'), BLOCK, 'latin1');
    return digest('sha256', this.#outer, 'binary');
  }
}

/** Compares all 32 bytes whatever they are, so that the time tells nothing of where they differ. */
function sameBytes(text: string, bytes: Buffer): boolean {
  let differs = 0;
  for (let i = 0; i < 32; i++) differs |= text.charCodeAt(i) ^ (bytes[i] ?? 256);
  return differs === 0;
}
