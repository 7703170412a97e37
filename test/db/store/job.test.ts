import { afterAll, beforeAll, expect, test } from 'vitest';
import { addJob, addJobs } from '../../../db/store/job.ts';
import { type TestDatabase, testDatabase } from '../../helpers/database.ts';

let one: TestDatabase;
beforeAll(async () => {
  one = await testDatabase();
});
afterAll(() => one.drop());
const jobs = async (task: string) =>
  (
    await one.database.pool.query(
      `select j.key, p.payload, j.priority from graphile_worker.jobs j join graphile_worker._private_jobs p using (id)
       where j.task_identifier = $1 order by j.id`,
      [task],
    )
  ).rows;

test('jobs with one key are one job, the last one counts; jobs without a key are all kept', async () => {
  await one.database.transaction(async (tx) => {
    await addJob(tx, 'a', { n: 1 }, { key: 'k' });
    await addJobs(tx, [
      { task: 'a', payload: { n: 2 }, key: 'k' },
      { task: 'a', payload: { n: 3 }, key: 'k', priority: 5 },
      { task: 'a', payload: {} },
      { task: 'a', payload: {} },
    ]);
  });
  const rows = await jobs('a');
  expect(rows.filter((row) => row.key === 'k')).toEqual([{ key: 'k', payload: { n: 3 }, priority: 5 }]);
  expect(rows.filter((row) => row.key === null)).toHaveLength(2);
});

test('a job of a transaction that rolled back never was', async () => {
  await one.database
    .transaction(async (tx) => {
      await addJob(tx, 'b', {});
      throw new Error('no');
    })
    .catch(() => {});
  expect(await jobs('b')).toEqual([]);
});

test('many transactions with the same keys in other orders do not deadlock', async () => {
  const list = Array.from({ length: 30 }, (_, i) => ({ task: 'c', payload: {}, key: `key-${i}` }));
  await Promise.all(
    Array.from({ length: 6 }, (_, i) =>
      one.database.transaction((tx) => addJobs(tx, i % 2 === 0 ? list : [...list].reverse())),
    ),
  );
  expect(await jobs('c')).toHaveLength(30);
});

test('a job that begins later keeps the time of the one that waits; one that begins now brings it forward', async () => {
  const waits = async (key: string) => {
    const { rows } = await one.database.pool.query<{ ms: number }>(
      `select (extract(epoch from run_at - clock_timestamp()) * 1000)::float8 as ms from graphile_worker.jobs where key = $1`,
      [key],
    );
    return rows.map(({ ms }) => ms);
  };
  const later = (key: string, afterMs: number) => ({ task: 'd', payload: {}, key, afterMs });
  await addJobs(one.database.db, [later('late', 3_600_000), { task: 'd', payload: {}, key: 'm' }]);
  await addJobs(one.database.db, [
    later('late', 9_000_000),
    later('z', 60_000),
    { task: 'd', payload: {}, key: 'x' },
  ]);
  const [first] = await waits('late');
  expect(first).toBeGreaterThan(1_800_000);
  expect(first, 'not put off by the second').toBeLessThanOrEqual(3_600_000);
  // in one commit: whatever the order of asking, now wins
  await addJobs(one.database.db, [{ task: 'd', payload: { n: 1 }, key: 'late' }, later('late', 60_000)]);
  expect((await waits('late')).every((ms) => ms <= 0)).toBe(true);
  expect(await waits('late')).toHaveLength(1);
  await addJobs(one.database.db, [later('late', 60_000)]);
  expect(
    (await waits('late')).every((ms) => ms <= 0),
    'what begins now stays',
  ).toBe(true);
});
