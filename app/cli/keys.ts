/** `countersign keys`: the ledger's keys, made, listed and rotated; never printed (LED-6, LED-7). */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { type DataConfig, loadDataConfig } from '../config.ts';
import { parseKeys } from '../domain/ledger/keys-derive.ts';
import { Refusal } from '../errors.ts';
import { rotateKeys } from '../flow/rotate-keys.ts';
import { openStore } from '../server/store.ts';
import { newKeys, rotateKeyFile } from '../signing/keys.ts';
import { createSigner } from '../signing/signer.ts';
import { type Entry, quiet, read, Usage } from './entry.ts';

/** The command `keys`. */
export const keysCommand: Entry = {
  usage: ['keys new --out FILE [--origin NAME]', 'keys list [--file FILE]', 'keys rotate [--file FILE]'],
  what: 'make a key file (mode 0600), show what it can sign with, or sign under a new root from now on',
  options: [
    ['--out FILE', 'where to write new keys; never over a file that exists'],
    ['--origin NAME', 'the name of the log that they sign, by default countersign.local'],
    ['--file FILE', 'another key file than COUNTERSIGN_KEYS, or keys.json in the data directory'],
  ],
  run: keys,
};

async function keys(args: readonly string[]): Promise<number> {
  const options = { out: { type: 'string' }, origin: { type: 'string' }, file: { type: 'string' } } as const;
  const { values, positionals } = read(() => parseArgs({ args: [...args], options, allowPositionals: true }));
  if (positionals.length !== 1) throw new Usage('keys new, keys list or keys rotate');
  if (positionals[0] === 'new') {
    if (values.out === undefined) throw new Usage('--out is needed: keys are never printed');
    const text = `${JSON.stringify(newKeys(values.origin ?? 'countersign.local'), null, 2)}\n`;
    // never over a file that exists: it may hold the only keys of a ledger
    try {
      writeFileSync(values.out, text, { mode: 0o600, flag: 'wx' });
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
      throw new Refusal(
        'conflict',
        `${values.out} exists and may hold the only keys of a ledger: name another`,
      );
    }
    console.log(`keys written to ${values.out}; set COUNTERSIGN_KEYS to it`);
    return 0;
  }
  const config = loadDataConfig();
  const setting = values.file ?? config.keys ?? join(config.dataDir, 'keys.json');
  if (positionals[0] === 'rotate') return rotate(config, setting);
  if (positionals[0] !== 'list') throw new Usage('keys new, keys list or keys rotate');
  const file = parseKeys(setting.startsWith('{') ? setting : readFileSync(setting, 'utf8'));
  for (const kid of Object.keys(file.roots))
    console.log(`${kid}${kid === file.current ? ' (signs now)' : ''}`);
  console.log(createSigner(file).vkey);
  return 0;
}

async function rotate(config: DataConfig, path: string): Promise<number> {
  if (path.startsWith('{')) throw new Usage('the keys are given inline: put them into a file to rotate them');
  const store = await openStore(config, quiet());
  try {
    let chains = 0;
    const kid = await rotateKeyFile(path, async (signer, to) => {
      chains = await rotateKeys({ database: store.database, signer }, { from: signer.kid, to });
    });
    console.log(
      `${kid} signs from now on, recorded in ${chains} chain(s); restart every server with ${path}`,
    );
    return 0;
  } finally {
    await store.close();
  }
}
