/** A4: the product's own path, a unit of work. The state change is the same hand-written statement on both sides. */
import pg from 'pg';
import { withRun } from '../app/flow/append-rows.ts';
import { type Bench, interleave, perSecond, versionsOf } from './bench.ts';
import { withBenchDatabase } from './database.ts';
import {
  benchSigner,
  draft,
  makeRawTables,
  openBenchRun,
  RAW_INSERT,
  rawValues,
  signNext,
} from './ledger.ts';

const REPS = 81;
// short windows, many times: the disk of a shared machine changes its mind within a second
const MS = 50;
const MUST = 0.7;
const UPDATE = (table: 'run' | 'raw_run') => ({
  name: `update_${table}`,
  text: `update ${table} set title = $2, version = version + 1 where id = $1`,
});

/** `withRun` with one state change and one row, against BEGIN, UPDATE, INSERT, COMMIT by hand, one writer, fsync on. */
export const bench: Bench = {
  id: 'A4',
  what: 'withRun with one state change and one row vs raw BEGIN, UPDATE, INSERT, COMMIT',
  must: MUST,
  aim: 0.95,
  unit: 'units/s',
  run: () =>
    withBenchDatabase(2, async ({ url, database, version }) => {
      await makeRawTables(url, pg.Client);
      const signer = benchSigner();
      const tip = await openBenchRun(database, signer, 'a4', 1);
      await database.pool.query(`insert into raw_run values ('a4', 1, '')`);
      const sample = signNext(signer, tip, 1).rows[0];
      if (sample === undefined) throw new Error('no row');
      let n = 0;
      const result = await interleave(REPS, {
        ours: () =>
          perSecond(MS, async () => {
            n += 1;
            await withRun({ database, signer }, 'a4', async (unit) => {
              await unit.tx.$client.query({ ...UPDATE('run'), values: ['a4', `title ${n}`] });
              unit.append('receipt.waiting', draft as never);
            });
            return 1;
          }),
        peer: () =>
          perSecond(MS, async () => {
            n += 1;
            const client = await database.pool.connect();
            await client.query('begin');
            await client.query({ ...UPDATE('raw_run'), values: ['a4', `title ${n}`] });
            await client.query({ ...RAW_INSERT, values: rawValues('a4', n, sample) });
            await client.query('commit');
            client.release();
            return 1;
          }),
      });
      const ratio = result.ours / result.peer;
      const versions = versionsOf(['pg', 'drizzle-orm'], {
        postgres: version,
        body: `${sample.body.length} bytes`,
      });
      return { value: result.ours, peer: result.peer, ratio, ok: ratio >= MUST, reps: REPS, versions };
    }),
};
