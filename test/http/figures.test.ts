import { readFileSync } from 'node:fs';
import { Registry } from 'prom-client';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { bookSpend } from '../../app/flow/book-spend.ts';
import { changeSetting } from '../../app/flow/change-setting.ts';
import type { Deps } from '../../app/flow/deps.ts';
import { readFigures } from '../../app/flow/read-figures.ts';
import { FIGURES, registerFigures } from '../../app/http/figures.ts';
import { createMetrics } from '../../app/http/health.ts';
import { addResidentPool } from '../../db/store/pool.ts';
import { addRunner } from '../../db/store/runner.ts';
import { leaseModels } from '../helpers/admit.ts';
import { type TestDatabase, testDatabase } from '../helpers/database.ts';
import { INSTALLATION, openQueueRun, queueDeps, seedRepository } from '../helpers/queue.ts';

let db: TestDatabase;
let deps: Deps;
beforeAll(async () => {
  db = await testDatabase();
  deps = queueDeps(db.database);
  await seedRepository(db.database, {
    slots: 2,
    providers: ['command', 'openai', 'openai@llm.one.example', 'xai'],
  });
  await openQueueRun(deps, 'r', 1);
});
afterAll(() => db.drop());

const scrape = async () => {
  const metrics = createMetrics({
    jobs: async () => 1,
    deliveries: async () => 2,
    stuckChecks: async () => 3,
    figures: () => readFigures(deps),
  });
  return metrics.registry.metrics();
};

test('OPS-7: docs/operations.md names every figure that there is, and no other', async () => {
  const text = await scrape();
  const served = [...text.matchAll(/^# TYPE (countersign_\w+) /gm)].map((match) => match[1]);
  const table = readFileSync('docs/operations.md', 'utf8');
  const named = [...table.matchAll(/`(countersign_[a-z_]+)`/g)]
    .map((match) => match[1])
    .filter((name) => name !== 'countersign_app');
  expect([...new Set(named)].sort()).toEqual([...new Set(served)].sort());
});

test('OPS-7: tickets, leases, slots, waiting admissions, spend and the kill switch are told as they stand', async () => {
  const leases = await leaseModels(deps, 'r', ['a.ts', 'b.ts', 'c.ts']);
  expect(leases).toHaveLength(2);
  const sessions = await Promise.all(leases.map((one) => one.admit({ promptTokens: 500 })));
  await leases[0]?.admit({ purpose: 'repair' });
  await db.moveClock(20_000);
  const text = await scrape();
  const told = (name: string) => new RegExp(`^${name} ([0-9.e+]+)$`, 'm').exec(text)?.[1];
  expect(told('countersign_tickets\\{state="ready"\\}')).toBe('1');
  expect(told('countersign_tickets\\{state="leased"\\}')).toBe('2');
  expect(Number(told('countersign_queue_age_seconds'))).toBeGreaterThanOrEqual(20);
  expect(told('countersign_leases')).toBe('2');
  expect(told('countersign_sessions')).toBe('2');
  expect(told('countersign_reserved_tokens')).toBe('2000');
  expect(told('countersign_admissions_waiting')).toBe('1');
  expect(Number(told('countersign_admission_age_seconds'))).toBeGreaterThanOrEqual(20);
  // two servers of one kind are one label
  expect(told('countersign_slots_busy\\{provider="openai"\\}')).toBe('2');
  expect(told('countersign_slots_free\\{provider="openai"\\}')).toBe('2');
  expect(text).not.toContain('example');
  for (const [i, one] of sessions.entries())
    if (one.outcome === 'admitted') await leases[i]?.end(one.session, 300);
  await bookSpend(deps);
  await changeSetting(deps, {
    installation: INSTALLATION,
    key: 'kill',
    value: 'on',
    by: 'o',
    reason: 'r',
    via: 'command_line',
  });
  const after = await readFigures(deps);
  expect(after).toMatchObject({ leases: 0, sessions: 0, killSwitches: 1, admissionsWaiting: 0 });
  expect(after.spend).toEqual({ sessions: 2, tokens: 600, micro: 0 });
});

test('OPS-7: a resident pool is told with what lives of it, and at 0 where nothing does', async () => {
  await db.database.transaction(async (tx) => {
    for (const name of ['own', 'dead']) await addResidentPool(tx, name, ['review']);
    await addRunner(tx, {
      id: 'resident',
      installationId: null,
      repositoryId: null,
      pool: 'own',
      instance: 'one-process',
      workflowRun: null,
      attempt: null,
      job: null,
      version: '1',
      capacity: 8,
      keys: null,
    });
  });
  const text = await scrape();
  for (const line of [
    'countersign_resident_runners{pool="own"} 1',
    'countersign_resident_runners{pool="dead"} 0',
    'countersign_resident_capacity{pool="own"} 8',
    'countersign_resident_leased{pool="own"} 0',
  ])
    expect(text).toContain(line);
});

test('OPS-7: a scrape reads the database once, and does without it where it does not answer', async () => {
  const registry = new Registry();
  let asked = 0;
  registerFigures(registry, async () => {
    asked++;
    throw new Error('away');
  });
  const text = await registry.metrics();
  expect(asked).toBe(1);
  const values = [...text.matchAll(/^countersign_\S+ (\S+)$/gm)].map((match) => match[1]);
  expect(new Set(values)).toEqual(new Set(['Nan']));
  expect(
    FIGURES.every(({ label }) => label === undefined || ['state', 'provider', 'pool'].includes(label)),
  ).toBe(true);
});
