/** A process that takes jobs and never finishes one: to be killed. Prints `taken` when it holds a job. */
import { EventEmitter } from 'node:events';
import { Logger, run, type WorkerEvents } from 'graphile-worker';
import { claimPool } from '../../app/worker/pools.ts';
import { connect } from '../../db/client.ts';

const database = await connect(process.argv[2] ?? '', { max: 4 });
const events = new EventEmitter() as WorkerEvents;
const claim = await claimPool(database, events);
await run({
  pgPool: database.pool,
  noHandleSignals: true,
  events,
  logger: new Logger(() => () => {}),
  taskList: {
    'receive-delivery': () => {
      process.stdout.write('taken\n');
      return new Promise(() => {});
    },
  },
});
await claim.settled();
