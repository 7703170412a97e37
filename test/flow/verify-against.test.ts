import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type UnitDeps, withRun } from '../../app/flow/append-rows.ts';
import { verifyAgainst } from '../../app/flow/verify-against.ts';
import { verifyRun } from '../../app/flow/verify-run.ts';
import { findRun } from '../../db/store/run.ts';
import { asOwner, type TestDatabase, testDatabase } from '../helpers/database.ts';
import { openTestRun, smallRow, testSigner, unitDeps } from '../helpers/ledger.ts';

let one: TestDatabase;
let deps: UnitDeps;
beforeAll(async () => {
  one = await testDatabase();
  deps = unitDeps(one.database);
});
afterAll(() => one.drop());

/** Opens a run of so many rows; gives its head as a check run shows it. */
async function shown(id: string, pull: string, rows: number): Promise<{ hash: string; note: string }> {
  await openTestRun(deps, id, pull);
  await withRun(deps, id, async (unit) => {
    for (let i = 1; i < rows; i++) unit.append('command.refused', smallRow(`code-${i}`));
  });
  return headOf(id);
}

async function headOf(id: string, signer = deps.signer): Promise<{ hash: string; note: string }> {
  const run = await findRun(one.database.db, id);
  if (run === null) throw new Error('no run');
  const { verdict } = await verifyRun(deps, run, { full: true });
  if (verdict.kind !== 'intact') throw new Error(verdict.kind);
  const log = deps.signer.logOf(run.installationId);
  return {
    hash: verdict.head.hash.toString('hex'),
    note: signer.signHead({ log, run: id, ...verdict.head }),
  };
}

const GUARDED = ['ledger_row', 'ledger_head'];
/** Changes the ledger as whoever owns the database can. */
const tamper = (...texts: readonly string[]) =>
  asOwner(one.url, async (client) => {
    for (const table of GUARDED) await client.query(`alter table ${table} disable trigger user`);
    for (const text of texts) await client.query(text);
    for (const table of GUARDED) await client.query(`alter table ${table} enable trigger user`);
  });

/** Cuts the rows after `left` and sets the head back. */
const cut = (id: string, left: number) =>
  tamper(
    `delete from ledger_row where run_id = '${id}' and seq > ${left}`,
    `update ledger_head set seq = ${left}, hash = (select hash from ledger_row where run_id = '${id}' and seq = ${left}) where run_id = '${id}'`,
  );

describe('attack 35: a cut tail is never 0', () => {
  test('attack 35: every k last rows cut: 1 against a hash or a note from outside, 2 without', async () => {
    const head = await shown('cut', '1', 5);
    for (let left = 4; left >= 1; left--) {
      await cut('cut', left);
      expect(await verifyAgainst(deps, 'cut', {})).toMatchObject({ code: 2 });
      const outside = [{ hash: head.hash }, { note: head.note }, head];
      for (const given of outside) {
        const { code, says } = await verifyAgainst(deps, 'cut', given);
        expect([code, says[0]]).toEqual([
          1,
          expect.stringMatching(new RegExp(`^tampered: row ${left + 1}: truncated`)),
        ]);
      }
    }
  });

  test('attack 35: an intact chain is 0 only with a head; without one it says what was not proved', async () => {
    const head = await shown('whole', '2', 3);
    for (const given of [{ hash: head.hash }, { note: head.note }, head])
      expect(await verifyAgainst(deps, 'whole', given)).toEqual({
        code: 0,
        says: [`intact: 3 rows, head ${head.hash}`, 'the head given is its last row'],
      });
    const without = await verifyAgainst(deps, 'whole', {});
    expect(without.code).toBe(2);
    expect(without.says.join('\n')).toMatch(/^cannot tell: 3 rows .*\nnot proved: .*cut from the end/);
  });

  test('LED-9: a head that was shown before must be a prefix, and says nothing of rows after it', async () => {
    const head = await shown('grows', '3', 2);
    await withRun(deps, 'grows', async (unit) => void unit.append('command.refused', smallRow('later')));
    for (const given of [{ hash: head.hash }, { note: head.note }]) {
      const { code, says } = await verifyAgainst(deps, 'grows', given);
      expect(code).toBe(0);
      expect(says[1]).toMatch(/^the head given is row 2; .*after row 3/);
    }
    expect(await verifyAgainst(deps, 'grows', { hash: 'a'.repeat(64) })).toMatchObject({ code: 1 });
  });

  test('LED-10: a note that another key signed, or of another run, tells nothing', async () => {
    const { note } = await shown('mine', '4', 2);
    const { note: foreign } = await headOf('mine', testSigner());
    expect(await verifyAgainst(deps, 'mine', { note: foreign })).toMatchObject({ code: 2 });
    expect(await verifyAgainst(deps, 'mine', { note: note.replace('\n2\n', '\n1\n') })).toMatchObject({
      code: 2,
    });
    const other = await shown('other', '5', 2);
    expect(await verifyAgainst(deps, 'mine', { note: other.note })).toMatchObject({ code: 2 });
  });

  test('attack 35: a run that is gone altogether is 1 with its signed head, 2 without', async () => {
    const { hash, note } = await shown('gone', '6', 2);
    await tamper(
      ...['ledger_row', 'ledger_head'].map((table) => `delete from ${table} where run_id = 'gone'`),
      `delete from run where id = 'gone'`,
    );
    expect(await verifyAgainst(deps, 'gone', { note })).toMatchObject({ code: 1 });
    expect(await verifyAgainst(deps, 'gone', {})).toMatchObject({ code: 2 });
    expect(await verifyAgainst(deps, 'gone', { hash })).toMatchObject({ code: 2 });
  });
});
