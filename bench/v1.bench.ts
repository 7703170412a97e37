/** V1: verifying stored rows in memory. */
import { createHmac, createSecretKey, randomBytes } from 'node:crypto';
import { ChainVerifier } from '../app/domain/ledger/chain.ts';
import { genesisOf } from '../app/domain/ledger/row.ts';
import { type Bench, interleave, versionsOf } from './bench.ts';
import { benchSigner, signNext } from './ledger.ts';

const REPS = 301;
// two milliseconds a window: most of them pass without another process on the core
const ROWS = 1_000;
const MUST = 0.8;

/** Hash, chain, MAC and the place of every row, against one bare HMAC a row over the same bytes. */
export const bench: Bench = {
  id: 'V1',
  what: 'verify stored bytes, chain and MAC in memory vs one bare HMAC per row',
  must: MUST,
  aim: 1.0,
  unit: 'rows/s',
  async run() {
    const signer = benchSigner();
    const log = signer.logOf('5');
    const genesis = genesisOf(log, { kind: 'pull', repositoryId: '74', name: '1', epoch: 1 });
    const chain = { log, run: 'v1', repo: '74', genesis };
    const { rows } = signNext(signer, { ...chain, seq: 0, hash: genesis }, ROWS);
    const key = createSecretKey(randomBytes(32));
    const timed = (fn: () => void) => {
      const start = performance.now();
      fn();
      return (ROWS * 1_000) / (performance.now() - start);
    };
    const result = await interleave(REPS, {
      ours: () =>
        timed(() => {
          const verifier = new ChainVerifier(chain, signer.checkMac);
          verifier.feed(rows);
          if (verifier.finish().kind !== 'intact') throw new Error('the chain does not verify');
        }),
      peer: () =>
        timed(() => {
          for (const row of rows) createHmac('sha256', key).update(row.body).digest();
        }),
    });
    const ratio = result.ours / result.peer;
    const versions = versionsOf([], {
      openssl: process.versions.openssl,
      body: `${rows[0]?.body.length} bytes`,
    });
    return { value: result.ours, peer: result.peer, ratio, ok: ratio >= MUST, reps: REPS, versions };
  },
};
