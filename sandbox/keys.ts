import { generateKeyPairSync, type KeyObject } from 'node:crypto';

const made = new Map<string, { readonly privateKey: KeyObject; readonly publicKey: KeyObject }>();

/**
 * The RSA key pair of a name, made at first use and the same for every sandbox of this process: making
 * one costs a tenth of a second, and whole test suites start a sandbox a file.
 */
export function keyPair(name: string): { readonly privateKey: KeyObject; readonly publicKey: KeyObject } {
  const pair = made.get(name) ?? generateKeyPairSync('rsa', { modulusLength: 2048 });
  made.set(name, pair);
  return pair;
}
