import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { findRunOfPull } from '../../db/store/run.ts';
import type { Pull } from '../../sandbox/pull.ts';
import type { Repository } from '../../sandbox/repository.ts';
import { type Fleet, rowsOf, startFleet } from '../helpers/fleet.ts';

/*
 * `npm run soak -- fleet`. FLEET_MINUTES: how long things are killed (20). FLEET_SEED: what is killed when.
 * It is no part of `npm test`: four apps and eight runners want the machine for themselves.
 */
const SOAKS = process.env['SOAK_ROUNDS'] !== undefined;
const MINUTES = Number(process.env['FLEET_MINUTES'] ?? 20);
const SEED = Number(process.env['FLEET_SEED'] ?? Date.now() % 1_000_000);

const APPS = 4;
/** Two repositories whose pools have four runners each. */
const REPOSITORIES = 2;
const CAPACITY = 4;
/** Pull requests under way at a time, and files of each. */
const OPEN = 6;
const FILES = 8;
/** Something is killed every 1 to 5 seconds. */
const PAUSE_MS = [1_000, 5_000] as const;

const pause = (ms: number) => new Promise<void>((done) => setTimeout(done, ms));

function random(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

describe.skipIf(!SOAKS)('a fleet', () => {
  let fleet: Fleet;
  const pulls: Pull[] = [];

  beforeAll(async () => {
    fleet = await startFleet(APPS);
  }, 120_000);
  afterAll(async () => {
    console.log(
      `FLEET_SEED=${SEED}: ${pulls.length} pull requests, ${fleet.kills.apps} apps and ${fleet.kills.runners} runners killed`,
    );
    await fleet.close();
  }, 120_000);

  const gate = (pull: Pull) => fleet.gh.governing(pull.repository, pull.head.sha, 'countersign', fleet.app);
  const concluded = (pull: Pull) => gate(pull)?.status === 'completed';

  /** A pull request whose reviews take a while each; every third one has something to find. */
  async function open(repository: Repository, n: number): Promise<Pull> {
    const branch = `topic-${n}`;
    const files = Object.fromEntries(
      Array.from({ length: FILES }, (_, i) => [
        `src/${n}/${i}.ts`,
        `export const n = ${n * 100 + i}; // SLEEP ${300 + 100 * i}${n % 3 === 0 && i === 0 ? ' BUG' : ''}\n`,
      ]),
    );
    await repository.commit({ branch, author: fleet.author, message: `Add ${n}`, files });
    return repository.openPull({ head: branch, user: fleet.author });
  }

  /** Opens pull requests as others come to their verdicts, and pushes to those that have one. */
  async function work(until: number, next: () => number): Promise<void> {
    const repositories: Repository[] = [];
    for (let n = 0; n < REPOSITORIES; n++) repositories.push(await fleet.repository(`fleet-${n}`, CAPACITY));
    while (Date.now() < until) {
      const waiting = pulls.filter((pull) => !concluded(pull));
      if (waiting.length < OPEN) {
        const n = pulls.length;
        const over = pulls.filter((pull) => concluded(pull));
        const again = over[Math.floor(next() * over.length)];
        if (again !== undefined && next() < 0.3)
          await again.push({
            message: 'Go on',
            files: { [`src/more-${Math.floor(next() * 1e9)}.ts`]: `export {}; // SLEEP 500\n` },
          });
        else pulls.push(await open(repositories[n % REPOSITORIES] as Repository, n));
      } else await pause(200);
      await fleet.database.moveClock(500);
    }
  }

  /** Kills apps and runners in turn, whichever is up. */
  async function kill(until: number, next: () => number): Promise<void> {
    while (Date.now() < until) {
      await pause(PAUSE_MS[0] + next() * (PAUSE_MS[1] - PAUSE_MS[0]));
      const jobs = fleet.jobs();
      const job = jobs[Math.floor(next() * jobs.length)];
      if (job === undefined || next() < 0.5) fleet.killApp(Math.floor(next() * APPS));
      else fleet.killRunner(job, 1_000 + next() * 10_000);
    }
  }

  /** Lets all of it come to its end: time goes on past back-offs and leases, and the sweeps run. */
  async function rest(patienceMs: number): Promise<void> {
    const end = Date.now() + patienceMs;
    for (;;) {
      const [left] = await fleet.query<{ jobs: number; tickets: number; checks: number }>(
        `select (select count(*)::int from graphile_worker.jobs where attempts < max_attempts and task_identifier <> 'reconcile') as jobs,
                (select count(*)::int from ticket where state in ('pending', 'leased', 'held')) as tickets,
                (select count(*)::int from check_run where written is distinct from wanted) as checks`,
      );
      const open = pulls.filter((pull) => !concluded(pull)).length;
      const running = fleet.jobs().length;
      if (open + running + (left?.jobs ?? 0) + (left?.tickets ?? 0) + (left?.checks ?? 0) === 0) return;
      if (Date.now() > end)
        throw new Error(`${open} pull requests without a verdict, ${running} jobs, ${JSON.stringify(left)}`);
      await pause(500);
      await fleet.database.moveClock(10_000);
      fleet.gh.advance(10_000);
      await fleet
        .query(
          'update graphile_worker._private_jobs set run_at = now() where run_at > now() and locked_at is null',
        )
        .catch(() => []);
      await fleet.witness.sweep();
    }
  }

  test(
    `LSE-3, LSE-4, TKT-6: ${APPS} apps on one database and ${REPOSITORIES * CAPACITY} runners, something killed every few seconds for ${MINUTES} min: every ticket ends once (FLEET_SEED=${SEED})`,
    async () => {
      const until = Date.now() + MINUTES * 60_000;
      await Promise.all([work(until, random(SEED)), kill(until, random(SEED + 1))]);
      await rest(10 * 60_000);

      expect(fleet.troubles()).toEqual([]);
      expect(fleet.kills.apps).toBeGreaterThan(0);
      expect(fleet.kills.runners).toBeGreaterThan(0);
      // nothing is held for nobody
      expect(
        await fleet.query(
          `select 'ticket ' || state as what from ticket where state in ('pending', 'leased', 'held')
           union all select 'lease ' || id from lease where state = 'live'
           union all select 'slot ' || session_id from slot where session_id is not null
           union all select 'session ' || id from session where state <> 'ended'
           union all select 'dispatch ' || id || ' ' || state from dispatch where ended_at is null and state <> 'answered'
           union all select 'delivery ' || id || ' ' || state from delivery where state not in ('done', 'ignored')`,
        ),
      ).toEqual([]);
      for (const pull of pulls) await whole(pull);
      expect(
        await fleet.query(`select grant_no, ticket_id from lease group by 1, 2 having count(*) > 1`),
      ).toEqual([]);
    },
    (MINUTES + 15) * 60_000,
  );

  /** The run of a pull request verifies, each ticket of its head ended once, and GitHub shows what the ledger says. */
  async function whole(pull: Pull): Promise<void> {
    const [installation] = fleet.gh.world.installations.filter((one) =>
      one.repositoryIds?.has(pull.repository.id),
    );
    const run = await findRunOfPull(fleet.database.database.db, {
      installationId: String(installation?.id),
      repositoryId: String(pull.repository.id),
      pull: String(pull.number),
    });
    if (run === null) throw new Error(`pull request ${pull.number} has no run`);
    const rows = await rowsOf(fleet, run);
    const finals = rows.flatMap((row) =>
      row.kind === 'ticket.ended' && row.data.final ? [row.data.ticket] : [],
    );
    const tickets = await fleet.query<{ id: string; state: string }>(
      `select id, state from ticket where run_id = $1 and state not in ('superseded', 'cancelled', 'skipped')`,
      [run.id],
    );
    expect(finals.sort()).toEqual(tickets.map((one) => one.id).sort());
    expect(tickets.length).toBeGreaterThanOrEqual(FILES);
    const last = rows.flatMap((row) => (row.kind === 'gate.decided' ? [row.data] : [])).at(-1);
    expect(last).toMatchObject({ head: pull.head.sha, conclusion: gate(pull)?.conclusion });
  }
});
