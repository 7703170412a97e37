import { afterAll, beforeAll, expect, test } from 'vitest';
import { foldRows } from '../../../app/domain/run-state/fold.ts';
import { acceptResult } from '../../../app/flow/accept-result.ts';
import { admit } from '../../../app/flow/admit.ts';
import { cutTickets } from '../../../app/flow/cut-tickets.ts';
import type { Deps } from '../../../app/flow/deps.ts';
import { verifyRun } from '../../../app/flow/verify-run.ts';
import { storePolicy } from '../../../db/store/policy.ts';
import { findRun, updateRun } from '../../../db/store/run.ts';
import { findTicket } from '../../../db/store/ticket.ts';
import { type TestDatabase, testDatabase } from '../../helpers/database.ts';
import { changedFile, openQueueRun, queueDeps, seedRepository, setFiles } from '../../helpers/queue.ts';
import { type TestRunner, testRunner } from '../../helpers/runner.ts';

let db: TestDatabase;
let deps: Deps;
let runner: TestRunner;
const POLICY = Buffer.from('version: 1\nreviewers:\n  bot: {uses: codex, model: gpt-5.4}\n');
const LOG = {
  clean: '{"type":"thread.started"}\n{"type":"turn.completed"}',
  tool: '{"type":"thread.started"}\n{"type":"item.started","item":{"type":"command_execution","command":"curl evil.example"}}\n{"type":"turn.completed"}',
};

beforeAll(async () => {
  db = await testDatabase();
  deps = queueDeps(db.database);
  await seedRepository(db.database);
  await openQueueRun(deps, 'r', 1);
  await deps.database.transaction(async (tx) => {
    await updateRun(tx, 'r', { policyHash: await storePolicy(tx, POLICY) });
  });
  await setFiles(
    deps,
    'r',
    ['a.ts', 'b.ts', 'c.ts'].map((file) => changedFile('r', file, { level: 'L2' })),
  );
  await cutTickets(deps, { run: 'r' });
  runner = await testRunner(deps);
});
afterAll(() => db.drop());

/** Works the next ticket as a runner that calls it reviewed and approved, whatever its log shows. */
async function approve(log: string | undefined): Promise<{ id: string; end: string | null }> {
  const [lease] = await runner.lease();
  if (lease === undefined) throw new Error('nothing to lease');
  const mine = await runner.claim(lease);
  const admitted = await admit(deps, mine, { reviewer: 'bot', purpose: 'review', promptTokens: 1 });
  if (admitted.outcome !== 'admitted') throw new Error(admitted.outcome);
  await acceptResult(deps, mine, {
    end: 'reviewed',
    detail: null,
    retry_after_ms: null,
    blobs: lease.ticket.blob,
    verdict: 'approve',
    partial: false,
    sessions: [
      {
        id: admitted.session,
        reviewer: 'bot',
        provider: 'codex',
        model: 'gpt-5.4',
        end: 'complete',
        detail: null,
        exit: 0,
        tokens_in: 1,
        tokens_out: 1,
        cost_micro: 0,
        ms: 1,
        ...(log === undefined ? {} : { log }),
      },
    ],
    findings: [],
    unplaced: [],
    brief_sha256: null,
    ms: 1,
  });
  const ticket = await findTicket(db.database.db, lease.ticket.id);
  return { id: lease.ticket.id, end: ticket?.end ?? null };
}

test('REV-7: the server looks at the log again: a tool event is a row that holds the gate, a missing log is no review', async () => {
  expect(await approve(LOG.clean)).toMatchObject({ end: 'reviewed' });
  const broken = await approve(LOG.tool);
  expect(broken.end).toBe('rule_break');
  expect(await approve(undefined)).toMatchObject({ end: 'bad_output' });
  const run = await findRun(db.database.db, 'r');
  if (run === null) throw new Error('no run');
  const { rows } = await verifyRun(deps, run);
  expect(rows.filter((row) => row.kind === 'rule.break').map((row) => row.data)).toEqual([
    expect.objectContaining({
      ticket: broken.id,
      detail: 'bot used a tool: command_execution: curl evil.example',
    }),
  ]);
  const state = foldRows(rows);
  expect(state.ruleBreaks).toMatchObject([{ ticket: broken.id }]);
  expect([...state.keys.values()].filter((key) => key.counted)).toHaveLength(1);
});
