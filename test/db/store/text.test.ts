import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  eraseTexts,
  eraseTextsBefore,
  putText,
  putTexts,
  readTexts,
  textRef,
} from '../../../db/store/text.ts';
import { type TestDatabase, testDatabase } from '../../helpers/database.ts';

let one: TestDatabase;
beforeAll(async () => {
  one = await testDatabase();
});
afterAll(() => one.drop());
const inTx = <T>(fn: Parameters<typeof one.database.transaction<T>>[0]) => one.database.transaction(fn);

test('LED-2: texts come back by their SHA-256, with NUL, emoji and nothing at all', async () => {
  const texts = ['a', 'b\u0000c', '\u{1F511} key', '', 'a'];
  const refs = await inTx((tx) => putTexts(tx, texts));
  expect(refs).toEqual(texts.map(textRef));
  const read = await readTexts(one.database.db, refs);
  expect(texts.map((_, i) => read.get(refs[i] ?? ''))).toEqual(texts);
  expect(await inTx((tx) => putTexts(tx, []))).toEqual([]);
});

test('LED-17: an erased text is null and its reference stays; put again it is back', async () => {
  const ref = await inTx((tx) => putText(tx, 'personal'));
  expect(await inTx((tx) => eraseTexts(tx, [ref, textRef('never stored')]))).toBe(1);
  expect(await readTexts(one.database.db, [ref, textRef('never stored')])).toEqual(new Map([[ref, null]]));
  await inTx((tx) => putText(tx, 'personal'));
  expect((await readTexts(one.database.db, [ref])).get(ref)).toBe('personal');
});

test('LED-17: age erases what was not put since', async () => {
  const [old, used] = await inTx((tx) => putTexts(tx, ['old', 'used']));
  await one.moveClock(3_600_000);
  const { rows } = await one.database.pool.query<{ now: Date }>('select cs_now() as now');
  await inTx((tx) => putText(tx, 'used'));
  const before = rows[0]?.now ?? new Date(0);
  expect(await inTx((tx) => eraseTextsBefore(tx, before))).toBeGreaterThanOrEqual(1);
  const read = await readTexts(one.database.db, [old ?? '', used ?? '']);
  expect([read.get(old ?? ''), read.get(used ?? '')]).toEqual([null, 'used']);
});

test('two transactions that store the same texts in other orders do not deadlock', async () => {
  const texts = Array.from({ length: 40 }, (_, i) => `text ${i}`);
  await Promise.all(
    [texts, [...texts].reverse(), texts, [...texts].reverse()].map((list) =>
      inTx((tx) => putTexts(tx, list)),
    ),
  );
  expect((await readTexts(one.database.db, texts.map(textRef))).size).toBe(40);
});
