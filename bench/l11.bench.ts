/** L11: 32 runners of which some fall silent: nothing is ever over its cap, leased twice, or counted twice. */
import { type Bench, versionsOf } from './bench.ts';
import { withBenchDatabase } from './database.ts';
import { endedTurns, fillQueue, gatheredTurns, violations } from './queue.ts';

const RUNNERS = 32;
const TICKETS = 1_500;
const MOST_MS = 45_000;
const PARALLEL = 4;
const SLOTS = 5;

/** One lease in ten expires under its runner, which then submits all the same. */
export const bench: Bench = {
  id: 'L11',
  what: 'violations of cap, exclusivity and count while 32 runners work and leases expire',
  must: 0,
  aim: 0,
  unit: 'violations',
  run: () =>
    withBenchDatabase(10, async ({ url, database, version }) => {
      await fillQueue(url, { tickets: TICKETS, runs: 12, slots: SLOTS, parallel: PARALLEL });
      const found: string[] = [];
      const turn = gatheredTurns(database);
      const settle = endedTurns(database);
      let [ended, lost, fenced, polls, going] = [0, 0, 0, 0, true];
      const from = performance.now();
      const runner = async (n: number) => {
        let seed = n + 1;
        const random = () => {
          seed = (seed * 16_807) % 2_147_483_647;
          return seed / 2_147_483_647;
        };
        while (ended < TICKETS && performance.now() - from < MOST_MS) {
          const got = await turn(`runner-${n}`, [], 1 + Math.floor(random() * 3));
          if (got.length === 0) await new Promise((done) => setTimeout(done, 5 + random() * 10));
          for (const one of got) {
            if (random() < 0.1) {
              if (await settle(one.leaseId, 'expired')) lost++;
              // its own late submit
              if (await settle(one.leaseId, 'ended')) found.push('an expired lease was counted');
              else fenced++;
            } else if (await settle(one.leaseId, 'ended')) ended++;
            else found.push('a live lease would not end');
          }
        }
      };
      const watch = async () => {
        while (going) {
          found.push(...(await violations(database, { slots: SLOTS, parallel: PARALLEL })));
          polls++;
          await new Promise((done) => setTimeout(done, 10));
        }
      };
      const watching = watch();
      await Promise.all(Array.from({ length: RUNNERS }, (_, n) => runner(n)));
      going = false;
      await watching;
      const { rows } = await database.pool.query<{ n: number }>(
        `select count(*)::int as n from ticket where state = 'ended'`,
      );
      if (rows[0]?.n !== ended) found.push(`${ended} ends were told and ${rows[0]?.n} are stored`);
      if (lost !== fenced) found.push(`${lost} leases expired and ${fenced} late results were refused`);
      if (found.length > 0) console.error([...new Set(found)].slice(0, 10).join('\n'));
      const versions = versionsOf(['pg'], {
        postgres: version,
        seen: `${ended} ended, ${lost} expired, ${polls} looks`,
      });
      return { value: found.length, peer: null, ok: found.length === 0 && lost > 0, reps: 1, versions };
    }),
};
