/**
 * Ledger keys: what a key file holds, and how a row's key is derived from a root (LED-6). A root is
 * never used itself: root → installation → run, each step bound to its name.
 */
import { createPrivateKey, createPublicKey, hkdfSync, type KeyObject } from 'node:crypto';
import * as z from 'zod';
import { Fault } from '../../errors.ts';
import { pae } from './row.ts';

const KEY_BYTES = 32;
const SALT = 'countersign/ledger/v1';
/** PKCS #8 wrapping of a raw Ed25519 seed (RFC 8410). */
const PKCS8 = Buffer.from('302e020100300506032b657004220420', 'hex');
/** SPKI wrapping of a raw Ed25519 public key (RFC 8410). */
const SPKI = Buffer.from('302a300506032b6570032100', 'hex');

const secret = z
  .string()
  .refine((text) => decodeSecret(text) !== undefined, 'not 32 bytes in base64, or all alike');
const kid = z.string().regex(/^[A-Za-z0-9._-]{1,40}$/);

/** COUNTERSIGN_KEYS: roots by kid, the kid that signs now, and the log's name with its Ed25519 seed. */
export const keysSchema = z
  .strictObject({
    roots: z.record(kid, secret),
    current: kid,
    log: z.strictObject({
      // it names the log for ever, in rows and notes: no space, no plus (C2SP signed-note)
      name: z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._:/-]{0,199}$/),
      seed: secret,
    }),
  })
  .refine((keys) => Object.hasOwn(keys.roots, keys.current), 'current is not among the roots');

/** A parsed key file. */
export type KeyFile = z.infer<typeof keysSchema>;

/** The 32 bytes of a base64 secret; undefined for another length, another alphabet, or one repeated byte. */
export function decodeSecret(text: string): Buffer | undefined {
  const bytes = Buffer.from(text, 'base64');
  // Buffer.from skips what it does not know: only the exact encoding is accepted
  if (bytes.length !== KEY_BYTES || bytes.toString('base64') !== text) return undefined;
  return bytes.every((byte) => byte === bytes[0]) ? undefined : bytes;
}

/** Parses a key file strictly; `key_invalid` says where it is wrong and never quotes a value. */
export function parseKeys(text: string): KeyFile {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    throw new Fault('key_invalid', 'the keys are not JSON'); // no cause: it would quote the text
  }
  const parsed = keysSchema.safeParse(json);
  if (parsed.success) return parsed.data;
  const where = parsed.error.issues.map((issue) => issue.path.map(String).join('.') || 'the file');
  throw new Fault('key_invalid', `the keys are wrong at: ${[...new Set(where)].join(', ')}`);
}

/** The key of one installation's log under one root. */
export function installationKey(root: Buffer, log: string): Buffer {
  return expand(root, 'installation', log);
}

/** The key that signs the rows of one run. */
export function runKey(installation: Buffer, run: string): Buffer {
  return expand(installation, 'run', run);
}

/** The keys under which one repository's redacted values are hashed (REV-8): one that runners are told, one that seals. */
export function redactionKeys(
  installation: Buffer,
  repository: string,
): { readonly salt: Buffer; readonly seal: Buffer } {
  return {
    salt: expand(installation, 'redaction salt', repository),
    seal: expand(installation, 'redaction seal', repository),
  };
}

function expand(key: Buffer, step: string, name: string): Buffer {
  if (key.length !== KEY_BYTES) throw new Fault('key_invalid', `a ledger key has ${KEY_BYTES} bytes`);
  return Buffer.from(hkdfSync('sha256', key, SALT, pae(step, Buffer.from(name, 'utf8')), KEY_BYTES));
}

/** The Ed25519 private key of a raw 32-byte seed. */
export function privateKeyOf(seed: Buffer): KeyObject {
  return createPrivateKey({ key: Buffer.concat([PKCS8, seed]), format: 'der', type: 'pkcs8' });
}

/** The raw 32 bytes of an Ed25519 public key, from either half of its pair. */
export function rawPublicKey(key: KeyObject): Buffer {
  const half = key.type === 'private' ? createPublicKey(key) : key;
  return half.export({ format: 'der', type: 'spki' }).subarray(SPKI.length);
}

/** The Ed25519 public key of its raw 32 bytes. */
export function publicKeyOf(raw: Buffer): KeyObject {
  return createPublicKey({ key: Buffer.concat([SPKI, raw]), format: 'der', type: 'spki' });
}
