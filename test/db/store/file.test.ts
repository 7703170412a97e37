import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { putClaims, removeClaim } from '../../../db/store/claim.ts';
import { findFile, listFiles, putFiles, removeFiles } from '../../../db/store/file.ts';
import { type TestDatabase, testDatabase } from '../../helpers/database.ts';
import { openTestRun, unitDeps } from '../../helpers/ledger.ts';
import { changedFile } from '../../helpers/queue.ts';

let one: TestDatabase;
beforeAll(async () => {
  one = await testDatabase();
});
afterAll(() => one.drop());

// 4,096 bytes that do not compress: more than a B-tree entry of Postgres may have
const longest = Buffer.from(randomBytes(4096).map((byte) => (byte === 0 ? 1 : byte)));

test('OWN-1: a path of the longest size is kept, found, replaced and removed by its exact bytes', async () => {
  const { database } = one;
  const id = 'long-paths';
  await openTestRun(unitDeps(database), id, '1');
  const stored = { ...changedFile(id, 'a.ts'), path: longest, fromPath: longest };
  await database.transaction((tx) => putFiles(tx, [stored]));
  await database.transaction((tx) => putFiles(tx, [{ ...stored, level: 'L0' }]));
  expect((await findFile(database.db, id, longest))?.level).toBe('L0');
  expect(await findFile(database.db, id, longest.subarray(1))).toBeNull();
  await database.transaction((tx) => removeFiles(tx, id, [longest]));
  expect(await listFiles(database.db, id)).toEqual([]);
});

test('OWN-6: a claim on a path of the longest size is kept once and released', async () => {
  const { database } = one;
  const id = 'long-claims';
  await openTestRun(unitDeps(database), id, '2');
  const claim = { runId: id, blockId: 'b', path: longest, entry: 'file', auto: false, seq: 1 };
  await database.transaction((tx) => putClaims(tx, [claim]));
  await database.transaction((tx) => putClaims(tx, [{ ...claim, blockId: 'c', seq: 2 }]));
  expect(await database.transaction((tx) => removeClaim(tx, id, 'b', longest))).toBe(false);
  expect(await database.transaction((tx) => removeClaim(tx, id, 'c', longest))).toBe(true);
});
