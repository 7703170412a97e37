import { sql } from 'drizzle-orm';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { acceptResult } from '../../app/flow/accept-result.ts';
import { cutTickets } from '../../app/flow/cut-tickets.ts';
import type { Deps } from '../../app/flow/deps.ts';
import type { GivenLease } from '../../app/flow/lease.ts';
import { takeTurn } from '../../app/flow/take-turn.ts';
import { verifyRun } from '../../app/flow/verify-run.ts';
import type { TicketResult } from '../../app/protocol/runner.ts';
import type { Database } from '../../db/client.ts';
import { findRun } from '../../db/store/run.ts';
import { countTickets } from '../../db/store/ticket.ts';
import { type TestDatabase, testDatabase } from '../helpers/database.ts';
import {
  changedFile,
  INSTALLATION,
  openQueueRun,
  queueDeps,
  REPOSITORY,
  seedRepository,
  setFiles,
} from '../helpers/queue.ts';
import { type TestRunner, testRunner } from '../helpers/runner.ts';

const RUNS = ['t1', 't2', 't3', 't4'];
const FILES = 6;
const PLACE = { installationId: INSTALLATION, repositoryId: REPOSITORY };

let db: TestDatabase;
let deps: Deps;
/** Transactions that were begun through `deps`. */
let begun = 0;

beforeAll(async () => {
  db = await testDatabase({ max: 10 });
  const counting: Database = {
    ...db.database,
    transaction: (...args) => {
      begun += 1;
      return db.database.transaction(...args);
    },
  };
  deps = queueDeps(counting);
  await seedRepository(db.database);
  for (const [i, run] of RUNS.entries()) await openQueueRun(deps, run, i + 1);
});
afterAll(() => db.drop());

async function cut(round: string): Promise<void> {
  for (const run of RUNS) {
    await setFiles(
      deps,
      run,
      Array.from({ length: FILES }, (_, i) => changedFile(run, `${round}-${i}`)),
    );
    await cutTickets(deps, { run });
  }
}

const result = (lease: GivenLease, more: Partial<TicketResult> = {}): TicketResult => ({
  end: 'reviewed',
  detail: null,
  retry_after_ms: null,
  blobs: lease.ticket.blob,
  verdict: 'approve',
  partial: false,
  sessions: [
    {
      id: `${lease.id}.1`,
      reviewer: lease.ticket.reviewers[0]?.name ?? '',
      provider: 'command',
      model: null,
      end: 'complete',
      detail: null,
      exit: 0,
      tokens_in: 0,
      tokens_out: 0,
      cost_micro: 0,
      ms: 1,
    },
  ],
  findings: [],
  unplaced: [],
  brief_sha256: null,
  ms: 1,
  ...more,
});
const next = { max: 1, request: null, again: false };

async function expectIntact(): Promise<void> {
  for (const id of RUNS) {
    const run = await findRun(db.database.db, id);
    if (run === null) throw new Error('no run');
    expect((await verifyRun(deps, run, { full: true })).verdict.kind).toBe('intact');
  }
}

describe('LSE-1, LSE-4: results of many runners and runs in one commit', () => {
  test('LSE-4: eight runners drain four runs by submits that bring the next lease: each ticket once, rows that verify, fewer commits than results', async () => {
    await cut('a');
    const runners = await Promise.all(Array.from({ length: 8 }, () => testRunner(deps)));
    let submits = 0;
    begun = 0;
    const drain = async (runner: TestRunner) => {
      let [lease] = await runner.lease();
      while (lease !== undefined) {
        const done = await acceptResult(deps, await runner.claim(lease), result(lease), next);
        expect(done).toMatchObject({ accepted: true, late: false, repeated: false });
        submits += 1;
        [lease] = done.next?.leases ?? [];
      }
    };
    await Promise.all(runners.map(drain));
    // a runner that found nothing stopped while others still held some; what came free since is taken now
    await Promise.all(runners.map(drain));
    expect(submits).toBe(RUNS.length * FILES);
    expect(begun).toBeLessThan(submits);
    for (const run of RUNS) expect(await countTickets(db.database.db, run)).toEqual({ ended: FILES });
    const { rows } = await db.database.db.execute<{ n: number; tickets: number }>(
      sql`select count(*)::int as n, count(distinct convert_from(body, 'utf8')::json -> 'data' ->> 'ticket')::int as tickets
          from ledger_row where kind = 'ticket.ended'`,
    );
    expect(rows[0]).toEqual({ n: submits, tickets: submits });
    await expectIntact();
  });

  test('LSE-4: the same result twice at the same moment is one end and one repeat; two results are one conflict', async () => {
    await cut('b');
    const runner = await testRunner(deps);
    const [first, second] = await runner.lease(2);
    if (first === undefined || second === undefined) throw new Error('two leases');
    const [one, other] = await Promise.all([
      acceptResult(deps, await runner.claim(first), result(first)),
      acceptResult(deps, await runner.claim(first), result(first)),
    ]);
    expect([one.repeated, other.repeated].sort()).toEqual([false, true]);
    const both = await Promise.allSettled([
      acceptResult(deps, await runner.claim(second), result(second)),
      acceptResult(deps, await runner.claim(second), result(second, { ms: 9 })),
    ]);
    expect(both.map((settled) => settled.status).sort()).toEqual(['fulfilled', 'rejected']);
    const { rows } = await db.database.db.execute(
      sql`select kind from ledger_row where kind in ('ticket.conflict', 'ticket.refused')`,
    );
    expect(rows).toEqual([{ kind: 'ticket.conflict' }]);
    await expectIntact();
  });

  test('one that fails takes nobody with it: the others are done, each in a commit of its own', async () => {
    await cut('c');
    const runner = await testRunner(deps);
    const leases = await runner.lease(3);
    expect(leases).toHaveLength(3);
    const bad = takeTurn(deps, PLACE, {
      of: {
        runId: 't1',
        leaseId: 'none',
        work: async (unit) => {
          await unit.tx.execute(sql`select 1 / 0`);
          return { value: null, end: null, serves: true };
        },
      },
      ask: null,
    });
    const missing = takeTurn(deps, PLACE, {
      of: {
        runId: 'no-such-run',
        leaseId: 'none-2',
        work: async () => ({ value: null, end: null, serves: true }),
      },
      ask: null,
    });
    const good = leases.map(async (lease) => acceptResult(deps, await runner.claim(lease), result(lease)));
    const settled = await Promise.allSettled([bad, missing, ...good]);
    expect(settled.map((one) => one.status)).toEqual([
      'rejected',
      'rejected',
      'fulfilled',
      'fulfilled',
      'fulfilled',
    ]);
    expect(settled[1]).toMatchObject({ reason: { code: 'run_missing' } });
    await expectIntact();
  });

  test('LSE-1: a runner asks for at most 16, and gets what it asks for', async () => {
    await cut('d');
    const runner = await testRunner(deps);
    const got = await runner.lease(99);
    expect(got).toHaveLength(16);
    expect(new Set(got.map((lease) => lease.ticket.id)).size).toBe(16);
  });
});
