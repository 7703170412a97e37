import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type UnitDeps, withInstallation, withRun } from '../../app/flow/append-rows.ts';
import { verifyInstallation, verifyRun } from '../../app/flow/verify-run.ts';
import { findRun, type Run } from '../../db/store/run.ts';
import { type TestDatabase, testDatabase } from '../helpers/database.ts';
import { app, cause, openTestRun, smallRow, unitDeps } from '../helpers/ledger.ts';

let one: TestDatabase;
let deps: UnitDeps;
beforeAll(async () => {
  one = await testDatabase();
  deps = unitDeps(one.database);
});
afterAll(() => one.drop());

async function open(id: string, pull: string): Promise<Run> {
  await openTestRun(deps, id, pull);
  const run = await findRun(one.database.db, id);
  if (run === null) throw new Error('no run');
  return run;
}
const append = (id: string, count: number) =>
  withRun(deps, id, async (unit) => {
    for (let i = 0; i < count; i++) unit.append('command.refused', smallRow(`code-${i}`));
  });

describe('verifyRun', () => {
  test('LED-9: rows come in order, from the first; incrementally the same as in full', async () => {
    const run = await open('run-a', '1');
    await append('run-a', 3);
    const first = await verifyRun(deps, run);
    expect(first.rows.map((row) => row.seq)).toEqual([1, 2, 3, 4]);
    await append('run-a', 2);
    const incremental = await verifyRun(deps, run);
    const full = await verifyRun(deps, run, { full: true });
    expect(incremental).toEqual(full);
    expect(full.rows).toHaveLength(6);
    // what was handed out before is not changed afterwards
    expect(first.rows).toHaveLength(4);
  });

  test('a chain longer than one batch verifies', async () => {
    const run = await open('run-long', '2');
    await append('run-long', 1_200);
    const { verdict, rows } = await verifyRun(deps, run, { full: true });
    expect(verdict).toMatchObject({ kind: 'intact', head: { seq: 1_201 } });
    expect(rows).toHaveLength(1_201);
  });

  test('rows that are appended while it reads are no tampering', async () => {
    const run = await open('run-busy', '3');
    let over = false;
    const writer = (async () => {
      for (let i = 0; i < 60; i++) await append('run-busy', 1);
      over = true;
    })();
    let seen = 0;
    for (let i = 0; !over; i++) {
      const { verdict, rows } = await verifyRun(deps, run, { full: i % 3 === 0 });
      expect(verdict).toMatchObject({ kind: 'intact' });
      expect(rows.length).toBeGreaterThanOrEqual(seen);
      seen = rows.length;
    }
    await writer;
    expect((await verifyRun(deps, run)).rows).toHaveLength(61);
  });

  test('LED-9: a published head of the past is a prefix, also when a later head is in memory', async () => {
    const run = await open('run-b', '4');
    const { rows, verdict } = await verifyRun(deps, run);
    if (verdict.kind !== 'intact') throw new Error('not intact');
    const log = deps.signer.logOf(run.installationId);
    const note = deps.signer.signHead({ log, run: run.id, ...verdict.head });
    expect(rows).toHaveLength(1);
    await append('run-b', 4);
    await verifyRun(deps, run);
    expect((await verifyRun(deps, run, { published: [note] })).verdict).toMatchObject({
      kind: 'intact',
      head: { seq: 5 },
    });
  });

  test('inside a unit of work it sees the chain that the unit holds', async () => {
    const run = await open('run-c', '5');
    await withRun(deps, 'run-c', async (unit) => {
      const { rows } = await verifyRun(deps, unit.run, { reader: unit.tx });
      expect(rows).toHaveLength(unit.head.seq);
      unit.append('command.refused', smallRow('x'));
    });
    expect((await verifyRun(deps, run)).rows).toHaveLength(2);
  });

  test('LED-8: another process’s keys make it unverifiable, which is not invalid', async () => {
    const run = await open('run-d', '6');
    const strangers = unitDeps(one.database);
    expect((await verifyRun(strangers, run, { full: true })).verdict).toMatchObject({
      kind: 'unverifiable',
      seq: 1,
    });
    expect((await verifyRun(deps, run, { full: true })).verdict).toMatchObject({ kind: 'intact' });
  });
});

test('LED-4: an installation’s chain verifies through re-installs', async () => {
  const append = (epoch: number) =>
    withInstallation(deps, { id: '9', epoch }, async (unit) =>
      unit.append('key.rotated', { block: null, actor: app, cause, data: { from: 'a', to: 'b' } }),
    );
  await append(2);
  await append(3);
  const { verdict, rows } = await verifyInstallation(deps, { id: '9', epoch: 3 });
  expect(verdict).toMatchObject({ kind: 'intact', head: { seq: 2 } });
  expect(rows.map((row) => row.run)).toEqual(['i/9', 'i/9']);
  expect((await verifyInstallation(deps, { id: '10', epoch: 1 })).verdict).toMatchObject({
    kind: 'invalid',
    fault: 'truncated',
  });
});
