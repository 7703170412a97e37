/** A1: one signed, chained row with triggers on, by one writer. */
import pg from 'pg';
import { appendRows } from '../db/store/ledger.ts';
import { type Bench, interleave, perSecond, versionsOf } from './bench.ts';
import { withBenchDatabase } from './database.ts';
import { benchSigner, makeRawTables, openBenchRun, RAW_INSERT, rawValues, signNext } from './ledger.ts';

const REPS = 81;
// short windows, many times: the disk of a shared machine changes its mind within a second
const MS = 50;
const MUST = 0.6;

/** Signing, chaining and the guard, against a raw INSERT of the same bytes, fsync on. */
export const bench: Bench = {
  id: 'A1',
  what: 'append of one signed, chained row, triggers on, one writer, vs raw INSERT of the same bytes',
  must: MUST,
  aim: 0.9,
  unit: 'rows/s',
  run: () =>
    withBenchDatabase(2, async ({ url, database, version }) => {
      await makeRawTables(url, pg.Client);
      const signer = benchSigner();
      let tip = await openBenchRun(database, signer, 'a1', 1);
      let raw = 0;
      const sample = signNext(signer, tip, 1).rows[0];
      if (sample === undefined) throw new Error('no row');
      const result = await interleave(REPS, {
        ours: () =>
          perSecond(MS, async () => {
            const signed = signNext(signer, tip, 1);
            await appendRows(database.db, 'a1', signed.rows);
            tip = signed.tip;
            return 1;
          }),
        peer: () =>
          perSecond(MS, async () => {
            raw += 1;
            await database.pool.query({ ...RAW_INSERT, values: rawValues('a1', raw, sample) });
            return 1;
          }),
      });
      const ratio = result.ours / result.peer;
      const versions = versionsOf(['pg'], { postgres: version, body: `${sample.body.length} bytes` });
      return { value: result.ours, peer: result.peer, ratio, ok: ratio >= MUST, reps: REPS, versions };
    }),
};
