/** `countersign verify-run`: the ledger of a run held against a head from outside (LED-9, LED-10). */
import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { loadDataConfig } from '../config.ts';
import { verifyAgainst } from '../flow/verify-against.ts';
import { openSigner, openStore } from '../server/store.ts';
import { type Entry, quiet, read, Usage } from './entry.ts';

/** The command `verify-run`. */
export const verifyRunCommand: Entry = {
  usage: ['verify-run RUN [--head HASH] [--note FILE]'],
  what: 'verify the ledger of a run against a head that a check run shows',
  options: [
    ['--head HASH', 'the hash of a row, 64 hex digits'],
    ['--note FILE', 'the signed note that a check run shows'],
  ],
  exits: [
    [0, 'intact'],
    [1, 'tampered'],
    [2, 'cannot tell, as without a head'],
    [3, 'a wrong call'],
  ],
  run: verify,
};

async function verify(args: readonly string[]): Promise<number> {
  const options = { head: { type: 'string' }, note: { type: 'string' } } as const;
  const { values, positionals } = read(() => parseArgs({ args: [...args], options, allowPositionals: true }));
  const [id, ...rest] = positionals;
  if (id === undefined || rest.length > 0) throw new Usage('verify-run RUN');
  const hash = values.head?.toLowerCase();
  if (hash !== undefined && !/^[0-9a-f]{64}$/.test(hash))
    throw new Usage('--head is a hash of 64 hex digits, as a check run shows it');
  const { note: file } = values;
  const note = file === undefined ? undefined : read(() => readFileSync(file, 'utf8'));
  const config = loadDataConfig();
  const store = await openStore(config, quiet());
  try {
    const signer = await openSigner(config, store.database, 'countersign.local', quiet());
    const { code, says } = await verifyAgainst({ database: store.database, signer }, id, {
      ...(hash === undefined ? {} : { hash }),
      ...(note === undefined ? {} : { note }),
    });
    for (const line of says) console.log(line);
    return code;
  } finally {
    await store.close();
  }
}
