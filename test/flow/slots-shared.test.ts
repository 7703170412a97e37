/** Slots are of the installation: repositories that ask for one take turns (LSE-1, ADM-1). */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { acceptResult } from '../../app/flow/accept-result.ts';
import { admit } from '../../app/flow/admit.ts';
import { authenticate } from '../../app/flow/authenticate.ts';
import { cutTickets } from '../../app/flow/cut-tickets.ts';
import type { Deps } from '../../app/flow/deps.ts';
import { dispatch } from '../../app/flow/dispatch.ts';
import { type GivenLease, lease as leaseNow } from '../../app/flow/lease.ts';
import { upsertRepository } from '../../db/store/installation.ts';
import { type TestDatabase, testDatabase } from '../helpers/database.ts';
import {
  changedFile,
  INSTALLATION,
  OWNER,
  openQueueRun,
  queueDeps,
  seedRepository,
  setFiles,
} from '../helpers/queue.ts';
import { type TestRunner, testRunner } from '../helpers/runner.ts';

const OTHER = '9007199254740999';
let db: TestDatabase;
let deps: Deps;

beforeEach(async () => {
  db = await testDatabase({ max: 8 });
  deps = queueDeps(db.database);
  await seedRepository(db.database, { slots: 2, providers: ['command', 'openai', 'xai'] });
  await db.database.transaction((tx) =>
    upsertRepository(tx, {
      id: OTHER,
      installationId: INSTALLATION,
      ownerId: OWNER,
      owner: 'acme',
      name: 'other',
      defaultBranch: 'main',
      private: false,
    }),
  );
});
afterEach(() => db.drop());

async function waiting(id: string, pull: number, repositoryId: string | undefined, n: number): Promise<void> {
  const place = { installationId: INSTALLATION, repositoryId: repositoryId ?? '9007199254740997' };
  await openQueueRun(deps, id, pull, place);
  await setFiles(
    deps,
    id,
    Array.from({ length: n }, (_, i) => changedFile(id, `${id}${i}.ts`, { level: 'L2' })),
  );
  await cutTickets(deps, { run: id });
}

/** Submits a review, and asks for the next ticket in the same call. */
async function next(runner: TestRunner, lease: GivenLease): Promise<GivenLease | null> {
  const claim = await runner.claim(lease);
  const admitted = await admit(deps, claim, { reviewer: 'model', purpose: 'review', promptTokens: 1 });
  const outcome = await acceptResult(
    deps,
    claim,
    {
      end: 'reviewed',
      detail: null,
      retry_after_ms: null,
      blobs: lease.ticket.blob,
      verdict: 'approve',
      partial: false,
      sessions: [
        {
          id: admitted.outcome === 'admitted' ? admitted.session : '',
          reviewer: 'model',
          provider: 'openai',
          model: null,
          end: 'complete',
          detail: null,
          exit: null,
          tokens_in: 1,
          tokens_out: 1,
          cost_micro: 0,
          ms: 1,
        },
      ],
      findings: [],
      unplaced: [],
      brief_sha256: null,
      ms: 1,
    },
    { max: 1, request: null, again: false },
  );
  return outcome.next?.leases[0] ?? null;
}

test('LSE-1, ADM-1: within one slot a repository whose runner asks gets its share of what another turns over', async () => {
  await waiting('a', 1, undefined, 60);
  const mine = await testRunner(deps);
  const [first] = await mine.lease();
  const [second] = await mine.lease();
  if (first === undefined || second === undefined) throw new Error('no lease');
  await waiting('b', 2, OTHER, 30);
  // a process says at most twice a second what it wishes for: another one each time stands for the time between
  const asks = async (runner: TestRunner) => {
    const login = await authenticate(deps, runner.token);
    const outcome = await leaseNow({ ...deps }, { login, max: 1, request: null, again: false });
    return outcome.leases[0] ?? null;
  };
  const theirs = await testRunner(deps, OTHER);
  expect(await asks(theirs), 'both slots are taken').toBeNull();
  // who has nothing asks again, as a long poll does
  const ours: string[] = [];
  const held: { mine: (GivenLease | null)[]; theirs: (GivenLease | null)[] } = {
    mine: [first, second],
    theirs: [null],
  };
  const turnOver = (runner: TestRunner, lease: GivenLease | null) =>
    lease === null ? asks(runner) : next(runner, lease);
  for (let round = 0; round < 16; round++) {
    for (const [i, lease] of held.mine.entries()) {
      held.mine[i] = await turnOver(mine, lease);
      if (held.mine[i] !== null) ours.push('a');
      for (const [k, other] of held.theirs.entries()) {
        held.theirs[k] = await turnOver(theirs, other);
        if (held.theirs[k] !== null) ours.push('b');
      }
    }
  }
  const begun = ours.indexOf('b');
  expect(begun, 'after the window of who was there first').toBeLessThanOrEqual(6);
  const shared = ours.slice(begun, begun + 30).filter((one) => one === 'b').length;
  expect(shared, 'then they take turns').toBeGreaterThanOrEqual(13);
  expect(shared).toBeLessThanOrEqual(17);
});

test('POOL-2: a repository whose slots others hold is worth a runner that asks for its share', async () => {
  await waiting('a', 1, undefined, 30);
  const mine = await testRunner(deps);
  await mine.lease();
  await mine.lease();
  await waiting('b', 2, OTHER, 4);
  // the plan commits its intent before GitHub is called, which this test does not let it
  await dispatch(deps, { repository: OTHER }).catch(() => null);
  const { rows } = await db.database.pool.query('select 1 from dispatch where repository_id = $1', [OTHER]);
  expect(rows).toHaveLength(1);
});
