/** Where the keys come from: COUNTERSIGN_KEYS (a path, or the JSON itself), or a file made on first start (LED-6, LED-7). */
import { randomBytes } from 'node:crypto';
import {
  existsSync,
  linkSync,
  mkdirSync,
  readFileSync,
  renameSync,
  statSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { type KeyFile, parseKeys } from '../domain/ledger/keys-derive.ts';
import { Fault } from '../errors.ts';
import { createSigner, type Signer } from './signer.ts';

/** How the keys are configured. */
export interface KeySource {
  /** COUNTERSIGN_KEYS; undefined or empty: the file in `folder`. */
  readonly setting: string | undefined;
  /** The data directory. */
  readonly folder: string;
  /** The log's name (origin) for a file made now; a file that exists keeps its own for ever (LED-1). */
  readonly origin: string;
}

/** The signer, and where its keys are. */
export interface OpenedKeys {
  readonly signer: Signer;
  /** The key file; undefined when the keys came inline. */
  readonly path: string | undefined;
  /** True when the file was made by this call: the log says where (LED-7). */
  readonly created: boolean;
}

/** Opens the keys, making a file with mode 0600 where none is configured and none exists; `key_invalid` otherwise. */
export function openKeys(source: KeySource): OpenedKeys {
  const setting = source.setting?.trim() ?? '';
  if (setting.startsWith('{'))
    return { signer: createSigner(parseKeys(setting)), path: undefined, created: false };
  if (setting !== '') return { signer: createSigner(readKeys(setting)), path: setting, created: false };
  const path = join(source.folder, 'keys.json');
  const created = !existsSync(path) && createFile(path, source);
  const { mode } = statSync(path);
  if (process.platform !== 'win32' && (mode & 0o077) !== 0) {
    throw new Fault(
      'key_invalid',
      `${path} can be read by other users: chmod 600 it, or rotate the keys if they did`,
    );
  }
  return { signer: createSigner(readKeys(path)), path, created };
}

function readKeys(path: string): KeyFile {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    throw new Fault(
      'key_invalid',
      `the keys cannot be read from ${path}: ${(error as NodeJS.ErrnoException).code}`,
    );
  }
  return parseKeys(text);
}

/** New keys: one root and one log key, both random. */
export function newKeys(origin: string): KeyFile {
  const kid = `m${randomBytes(4).toString('hex')}`;
  const secret = () => randomBytes(32).toString('base64');
  return parseKeys(
    JSON.stringify({ roots: { [kid]: secret() }, current: kid, log: { name: origin, seed: secret() } }),
  );
}

/**
 * Adds a root to a key file and makes it the one that signs, in two steps: `record` runs between them,
 * under the old root and with the new one already safe on disk. Old roots stay, to verify (LED-6).
 */
export async function rotateKeyFile(
  path: string,
  record: (old: Signer, to: string) => Promise<void>,
): Promise<string> {
  const before = readKeys(path);
  const [to = '', root = ''] = Object.entries(newKeys(before.log.name).roots)[0] ?? [];
  const both = { ...before, roots: { ...before.roots, [to]: root } };
  replaceFile(path, both);
  await record(createSigner(both), to);
  replaceFile(path, { ...both, current: to });
  return to;
}

/** Puts a file in another's place, whole or not at all, for its owner alone. */
function replaceFile(path: string, keys: KeyFile): void {
  const partial = `${path}.${process.pid}.${randomBytes(4).toString('hex')}`;
  writeFileSync(partial, `${JSON.stringify(keys, null, 2)}\n`, { mode: 0o600, flag: 'wx', flush: true });
  renameSync(partial, path);
}

/** Makes the file whole or not at all; false when another process made it first, whose keys then count. */
function createFile(path: string, source: KeySource): boolean {
  mkdirSync(source.folder, { recursive: true });
  const partial = `${path}.${process.pid}.${randomBytes(4).toString('hex')}`;
  writeFileSync(partial, `${JSON.stringify(newKeys(source.origin), null, 2)}\n`, { mode: 0o600, flag: 'wx' });
  try {
    linkSync(partial, path); // fails where the name exists: never overwrites keys
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  } finally {
    unlinkSync(partial);
  }
}
