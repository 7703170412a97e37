/** I1: durable ingest, verify and store with its job, against Probot's own server whose handler does nothing and which stores nothing. */
import { type Bench, interleave, versionsOf } from './bench.ts';
import { withServers } from './i1/measure.ts';

const REPS = 7;
const MS = 1_500;
const MUST = 0.6;

/** Deliveries a second by 16 connections, fsync on. */
export const bench: Bench = {
  id: 'I1',
  what: "durable webhook ingest (verify, store, job), 16 connections, vs Probot's server with a no-op handler",
  must: MUST,
  aim: 1,
  unit: 'deliveries/s',
  run: () =>
    withServers(async (load, postgres) => {
      const { ours, peer } = await interleave(REPS, {
        ours: async () => (await load('ours', MS)).rate,
        peer: async () => (await load('peer', MS)).rate,
      });
      const ratio = ours / peer;
      const versions = versionsOf(['probot', 'autocannon', 'pg', 'graphile-worker'], { postgres });
      return { value: ours, peer, ratio, ok: ratio >= MUST, reps: REPS, versions };
    }),
};
