/** A2: the rows of eight callers of one run in one commit. */
import pg from 'pg';
import { appendRows } from '../db/store/ledger.ts';
import { type Bench, interleave, perSecond, perSecondBy, versionsOf } from './bench.ts';
import { withBenchDatabase } from './database.ts';
import { benchSigner, makeRawTables, openBenchRun, RAW_INSERT, rawValues, signNext } from './ledger.ts';

const REPS = 81;
// short windows, many times: the disk of a shared machine changes its mind within a second
const MS = 50;
const CALLERS = 8;
const MUST = 1.0;

/** Eight rows signed, chained and guarded in one statement, against eight callers with a raw INSERT each, fsync on. */
export const bench: Bench = {
  id: 'A2',
  what: 'rows of 8 callers of one run in one commit, signed, chained, triggers on, vs 8 callers with raw INSERTs',
  must: MUST,
  aim: 1.5,
  unit: 'rows/s',
  run: () =>
    withBenchDatabase(CALLERS, async ({ url, database, version }) => {
      await makeRawTables(url, pg.Client);
      const signer = benchSigner();
      let tip = await openBenchRun(database, signer, 'a2', 1);
      let raw = 0;
      const sample = signNext(signer, tip, 1).rows[0];
      if (sample === undefined) throw new Error('no row');
      const result = await interleave(REPS, {
        ours: () =>
          perSecond(MS, async () => {
            const signed = signNext(signer, tip, CALLERS);
            await appendRows(database.db, 'a2', signed.rows);
            tip = signed.tip;
            return CALLERS;
          }),
        peer: () =>
          perSecondBy(CALLERS, MS, async () => {
            raw += 1;
            await database.pool.query({ ...RAW_INSERT, values: rawValues('a2', raw, sample) });
            return 1;
          }),
      });
      const ratio = result.ours / result.peer;
      const versions = versionsOf(['pg'], { postgres: version, body: `${sample.body.length} bytes` });
      return { value: result.ours, peer: result.peer, ratio, ok: ratio >= MUST, reps: REPS, versions };
    }),
};
