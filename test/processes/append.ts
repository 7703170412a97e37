/**
 * A process that appends to runs of a database: arguments are url, key file, its own name, rows to
 * append, and the runs. A run has a writer for each time it is named, and all write at once. Each row
 * that was acknowledged is told on a line of its own.
 */
import { withRun } from '../../app/flow/append-rows.ts';
import { openKeys } from '../../app/signing/keys.ts';
import { connect } from '../../db/client.ts';
import { smallRow } from '../helpers/ledger.ts';

const [url, keys, name, count, ...runs] = process.argv.slice(2) as [
  string,
  string,
  string,
  string,
  ...string[],
];
const database = await connect(url, { max: Math.max(8, runs.length) });
const { signer } = openKeys({ setting: keys, folder: '', origin: '' });
await Promise.all(
  runs.map(async (run, writer) => {
    const own = runs.indexOf(run) === writer ? name : `${name}w${writer}`;
    for (let i = 0; i < Number(count); i++) {
      const code = `${own}-${i}`;
      const seq = await withRun({ database, signer }, run, async (unit) => {
        await unit.tx.$client.query(`insert into reason (run_id, code, since) values ($1, $2, cs_now())`, [
          run,
          code,
        ]);
        return unit.append('command.refused', smallRow(code));
      });
      process.stdout.write(`${run} ${seq} ${code}\n`);
    }
  }),
);
await database.close();
