import { expect, test } from 'vitest';
import { createFloors } from '../../app/flow/take-turn/floors.ts';

const heads = (tag: string) => new Map([['openai', tag]]);

test('LSE-2: a hint is passed on from turn to turn, and wears off by turns and by time', () => {
  let now = 0;
  const floors = createFloors(() => now);
  expect(floors.next(), 'the first look is at all there is').toEqual({});
  floors.learn(heads('5'));
  const told = floors.next();
  expect(told).toEqual({ floors: heads('5') });
  floors.learn(heads('9'));
  expect(floors.next()).toEqual({ floors: heads('9') });
  expect(told, 'what a turn was told stays as it was').toEqual({ floors: heads('5') });
  // 32 turns in all
  for (let n = 0; n < 30; n++) expect(floors.next()).not.toEqual({});
  expect(floors.next()).toEqual({});
  expect(floors.next(), 'of before nothing is known').toEqual({ floors: new Map() });
  floors.learn(heads('12'));
  now = 250;
  expect(floors.next()).toEqual({});
});
