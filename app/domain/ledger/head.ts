/**
 * Signed run heads as C2SP signed notes: what GitHub keeps for us outside the database (LED-10). The
 * MAC key that checks rows could also forge them, so a stranger's trust rests on these alone.
 */
import { createHash, verify } from 'node:crypto';
import { publicKeyOf } from './keys-derive.ts';

const ED25519 = 0x01;
const DASH = '\u2014';

/** The head of a chain: after `seq` rows the last one has this hash. */
export interface RunHead {
  readonly log: string;
  readonly run: string;
  readonly seq: number;
  readonly hash: Buffer;
}

/** The text that is signed: `<log>/run/<run>`, the count, the base64 hash, a line each. */
export function headText(head: RunHead): string {
  return `${head.log}/run/${head.run}\n${head.seq}\n${head.hash.toString('base64')}\n`;
}

/** The four-byte key id of an Ed25519 note key (C2SP signed-note). */
export function noteKeyId(name: string, publicKey: Buffer): Buffer {
  return createHash('sha256')
    .update(name)
    .update(Buffer.from([0x0a, ED25519]))
    .update(publicKey)
    .digest()
    .subarray(0, 4);
}

/** The verifier key `name+id+base64` that outsiders are given (C2SP). */
export function vkeyOf(name: string, publicKey: Buffer): string {
  const typed = Buffer.concat([Buffer.from([ED25519]), publicKey]);
  return `${name}+${noteKeyId(name, publicKey).toString('hex')}+${typed.toString('base64')}`;
}

/** A verifier key, read; undefined where it is not an Ed25519 one whose id fits. */
export function parseVkey(vkey: string): { name: string; publicKey: Buffer } | undefined {
  const match = /^([^+\s]+)\+([0-9a-f]{8})\+([A-Za-z0-9+/=]+)$/.exec(vkey);
  if (match === null) return undefined;
  const [, name = '', id = '', encoded = ''] = match;
  const typed = Buffer.from(encoded, 'base64');
  if (typed.length !== 33 || typed[0] !== ED25519 || typed.toString('base64') !== encoded) return undefined;
  const publicKey = Buffer.from(typed.subarray(1));
  return noteKeyId(name, publicKey).toString('hex') === id ? { name, publicKey } : undefined;
}

/** The signature line of a note: `— name base64(id ‖ signature)`. */
export function signatureLine(name: string, publicKey: Buffer, signature: Buffer): string {
  return `${DASH} ${name} ${Buffer.concat([noteKeyId(name, publicKey), signature]).toString('base64')}\n`;
}

/**
 * Opens a signed head that came from outside (our own check runs, an export). Undefined unless the
 * given key signed exactly this text: an unknown key proves nothing, a known one that fails is false.
 */
export function openHead(note: string, vkey: string): RunHead | undefined {
  const key = parseVkey(vkey);
  const cut = note.indexOf('\n\n');
  if (key === undefined || cut < 0 || note.length > 4_096) return undefined;
  const text = note.slice(0, cut + 1);
  const id = noteKeyId(key.name, key.publicKey);
  let signed = false;
  for (const line of note.slice(cut + 2).split('\n')) {
    if (line === '') continue;
    const match = /^\u2014 (\S+) ([A-Za-z0-9+/]+={0,2})$/.exec(line);
    if (match === null) return undefined;
    const blob = Buffer.from(match[2] ?? '', 'base64');
    // the last character may carry bits that are not read: one signature has one spelling
    if (blob.toString('base64') !== match[2]) return undefined;
    if (match[1] !== key.name || !blob.subarray(0, 4).equals(id)) continue; // another signer's line
    if (!verify(null, Buffer.from(text, 'utf8'), publicKeyOf(key.publicKey), blob.subarray(4)))
      return undefined;
    signed = true;
  }
  return signed ? parseHeadText(text) : undefined;
}

function parseHeadText(text: string): RunHead | undefined {
  const match = /^(\S+)\/run\/((?:i\/)?[A-Za-z0-9_-]+)\n([1-9][0-9]{0,15})\n([A-Za-z0-9+/]{43}=)\n$/.exec(
    text,
  );
  if (match === null) return undefined;
  const [, log = '', run = '', seq = '', hash = ''] = match;
  const bytes = Buffer.from(hash, 'base64');
  return bytes.toString('base64') === hash ? { log, run, seq: Number(seq), hash: bytes } : undefined;
}
