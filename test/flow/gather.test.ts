import { describe, expect, test } from 'vitest';
import { gather } from '../../app/flow/gather.ts';

/** A work whose batches end when the test says so. */
function held() {
  const batches: { inputs: readonly number[]; end: (error?: Error) => void }[] = [];
  const work = (inputs: readonly number[]) =>
    new Promise<number[]>((done, failed) => {
      batches.push({
        inputs,
        end: (error) => (error === undefined ? done(inputs.map((n) => n * 2)) : failed(error)),
      });
    });
  return { batches, work };
}
const turns = async () => {
  for (let n = 0; n < 10; n++) await Promise.resolve();
};

describe('LSE-1: callers at once become few statements', () => {
  test('who finds a flight free waits for nobody; who comes later goes with the next, in order, at most so many', async () => {
    const { batches, work } = held();
    const one = gather(2, 3, work);
    const first = one(1);
    await turns();
    const second = one(2);
    await turns();
    const rest = [3, 4, 5, 6].map((n) => one(n));
    await turns();
    expect(batches.map((batch) => batch.inputs)).toEqual([[1], [2]]);
    batches[0]?.end();
    expect(await first).toBe(2);
    await turns();
    expect(batches.map((batch) => batch.inputs)).toEqual([[1], [2], [3, 4, 5]]);
    batches[1]?.end();
    await turns();
    batches[2]?.end();
    batches[3]?.end();
    expect(await second).toBe(4);
    expect(await Promise.all(rest)).toEqual([6, 8, 10, 12]);
    expect(batches).toHaveLength(4);
  });

  test('what arrives together goes together', async () => {
    const { batches, work } = held();
    const one = gather(2, 16, work);
    const all = [1, 2, 3].map((n) => one(n));
    await turns();
    expect(batches.map((batch) => batch.inputs)).toEqual([[1, 2, 3]]);
    batches[0]?.end();
    expect(await Promise.all(all)).toEqual([2, 4, 6]);
  });

  test('what arrives together is shared out among the flights that are free', async () => {
    const { batches, work } = held();
    const one = gather(2, 16, work);
    const all = Array.from({ length: 11 }, (_, n) => one(n));
    await turns();
    expect(batches.map((batch) => batch.inputs)).toEqual([
      [0, 1, 2, 3, 4, 5],
      [6, 7, 8, 9, 10],
    ]);
    for (const batch of batches) batch.end();
    expect(await Promise.all(all)).toEqual(Array.from({ length: 11 }, (_, n) => n * 2));
  });

  test('inputs of one key are in one flight at a time, and others pass them', async () => {
    const { batches, work } = held();
    const one = gather(2, 16, work, (n) => (n < 10 ? 'small' : null));
    const all = [1, 2, 3, 4, 5, 6, 10].map((n) => one(n));
    await turns();
    // all of the key go along, beyond the share of their flight
    expect(batches.map((batch) => batch.inputs)).toEqual([[1, 2, 3, 4, 5, 6], [10]]);
    batches[1]?.end();
    const late = [7, 11].map((n) => one(n));
    await turns();
    expect(batches.map((batch) => batch.inputs)).toEqual([[1, 2, 3, 4, 5, 6], [10], [11]]);
    batches[2]?.end();
    batches[0]?.end(new Error('no'));
    await turns();
    expect(batches.at(-1)?.inputs, 'a key whose flight failed goes on').toEqual([7]);
    batches[3]?.end();
    expect(await Promise.all(late)).toEqual([14, 22]);
    await expect(Promise.all(all)).rejects.toThrow('no');
  });

  test('a failure is told to its own callers, and the next are worked', async () => {
    const { batches, work } = held();
    const one = gather(1, 2, work);
    const lost = [one(1), one(2)].map((promise) => promise.catch((error: Error) => error.message));
    const kept = one(3);
    await turns();
    batches[0]?.end(new Error('no'));
    expect(await Promise.all(lost)).toEqual(['no', 'no']);
    await turns();
    batches[1]?.end();
    expect(await kept).toBe(6);
  });
});
