/** I3: the slow end of I1: the time that 99 of 100 deliveries are answered within. */
import { type Bench, interleave, versionsOf } from './bench.ts';
import { withServers } from './i1/measure.ts';

const REPS = 7;
const MS = 1_500;
const MUST = 2.5;

/** p99 in ms at 16 connections, fsync on; lower is better, so `must` is a ceiling. */
export const bench: Bench = {
  id: 'I3',
  what: "p99 of durable webhook ingest at 16 connections vs Probot's server with a no-op handler (at most)",
  must: MUST,
  aim: 1,
  unit: 'ms',
  run: () =>
    withServers(async (load, postgres) => {
      const { ours, peer } = await interleave(REPS, {
        ours: async () => (await load('ours', MS)).p99,
        peer: async () => (await load('peer', MS)).p99,
      });
      const ratio = ours / peer;
      const versions = versionsOf(['probot', 'autocannon', 'pg', 'graphile-worker'], { postgres });
      return { value: ours, peer, ratio, ok: ratio <= MUST, reps: REPS, versions };
    }),
};
