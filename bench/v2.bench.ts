/** V2: verifying a chain as it comes from Postgres. */
import { createHmac, createSecretKey, randomBytes } from 'node:crypto';
import { ChainVerifier } from '../app/domain/ledger/chain.ts';
import { genesisOf } from '../app/domain/ledger/row.ts';
import { appendRows, readRows } from '../db/store/ledger.ts';
import { type Bench, interleave, versionsOf } from './bench.ts';
import { withBenchDatabase } from './database.ts';
import { benchSigner, openBenchRun, signNext } from './ledger.ts';

const REPS = 41;
const ROWS = 10_000;
/** Rows of one read, as the product reads them (app/flow/verify-run.ts). */
const PAGE = 500;
const MUST = 0.4;

/** Hash, chain and MAC of every row read in pages, against one bare HMAC a row over the same bytes in memory. */
export const bench: Bench = {
  id: 'V2',
  what: 'verify a chain streamed from Postgres vs one bare HMAC per row in memory',
  must: MUST,
  aim: 0.5,
  unit: 'rows/s',
  run: () =>
    withBenchDatabase(2, async ({ database, version }) => {
      const signer = benchSigner();
      let tip = await openBenchRun(database, signer, 'v2', 1);
      for (let i = 0; i < ROWS; i += PAGE) {
        const signed = signNext(signer, tip, PAGE);
        await appendRows(database.db, 'v2', signed.rows);
        tip = signed.tip;
      }
      const { log, run, repo } = tip;
      const genesis = genesisOf(log, { kind: 'pull', repositoryId: '74', name: '1', epoch: 1 });
      const bodies = (await readRows(database.db, 'v2', 0, ROWS)).map((row) => row.body);
      const key = createSecretKey(randomBytes(32));
      const timed = async (fn: () => Promise<void> | void) => {
        const start = performance.now();
        await fn();
        return (ROWS * 1_000) / (performance.now() - start);
      };
      const result = await interleave(REPS, {
        ours: () =>
          timed(async () => {
            const verifier = new ChainVerifier({ log, run, repo, genesis }, signer.checkMac);
            for (let after = 0; ; ) {
              const rows = await readRows(database.db, 'v2', after, PAGE);
              verifier.feed(rows);
              after += rows.length;
              if (rows.length < PAGE) break;
            }
            if (verifier.finish().kind !== 'intact' || verifier.head.seq !== tip.seq)
              throw new Error('the chain does not verify');
          }),
        peer: () =>
          timed(() => {
            for (const body of bodies) createHmac('sha256', key).update(body).digest();
          }),
      });
      const ratio = result.ours / result.peer;
      const versions = versionsOf(['pg'], { postgres: version, body: `${bodies[1]?.length} bytes` });
      return { value: result.ours, peer: result.peer, ratio, ok: ratio >= MUST, reps: REPS, versions };
    }),
};
