import type pg from 'pg';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { rowHash } from '../../app/domain/ledger/row.ts';
import { type UnitDeps, withRun } from '../../app/flow/append-rows.ts';
import { verifyRun } from '../../app/flow/verify-run.ts';
import { findRun, type Run } from '../../db/store/run.ts';
import { asOwner, type TestDatabase, testDatabase } from '../helpers/database.ts';
import { openTestRun, smallRow, unitDeps } from '../helpers/ledger.ts';

let one: TestDatabase;
let deps: UnitDeps;
let run: Run;
let n = 0;
beforeAll(async () => {
  one = await testDatabase();
  deps = unitDeps(one.database);
});
afterAll(() => one.drop());
beforeEach(async () => {
  n += 1;
  await openTestRun(deps, `run-${n}`, String(n));
  for (const code of ['a', 'b', 'c', 'd']) {
    await withRun(deps, `run-${n}`, async (unit) => unit.append('command.refused', smallRow(code)));
  }
  const found = await findRun(one.database.db, `run-${n}`);
  if (found === null) throw new Error('no run');
  run = found;
});

const asApp = (text: string, values: unknown[] = []) => one.database.pool.query(text, values);
const refused = (attempt: Promise<unknown>, code: string) => expect(attempt).rejects.toMatchObject({ code });
const insert =
  'insert into ledger_row (run_id, seq, prev, hash, mac, kind, body) values ($1, $2, $3, $4, $5, $6, $7)';

async function rowAfter(
  seqBy: number,
  change: { prev?: Buffer; hash?: Buffer; mac?: Buffer; body?: Buffer } = {},
) {
  const { rows } = await asApp(
    'select seq, coalesce(hash, genesis) as hash from ledger_head where run_id = $1',
    [run.id],
  );
  const body = change.body ?? Buffer.from(`body ${Math.random()}`);
  const { seq, hash } = rows[0] as { seq: string; hash: Buffer };
  return [
    run.id,
    Number(seq) + seqBy,
    change.prev ?? hash,
    change.hash ?? rowHash(body),
    change.mac ?? Buffer.alloc(32, 1),
    'x',
    body,
  ];
}

describe('LED-5: what Postgres accepts', () => {
  test('rows that continue the chain, one or several in a statement', async () => {
    await asApp(insert, await rowAfter(1));
    const { rows } = await asApp('select seq from ledger_head where run_id = $1', [run.id]);
    expect(Number(rows[0].seq)).toBe(6);
  });

  test('case 62: a second child of a row is refused by Postgres itself', async () => {
    const [child] = await Promise.all([rowAfter(1)]);
    await asApp(insert, child);
    const second = [...child];
    second[1] = Number(child[1]) + 1;
    await refused(asApp(insert, second), '23505');
    const { rows } = await asApp(
      `select conname from pg_constraint where conrelid = 'ledger_row'::regclass and contype in ('p', 'u') order by conname`,
    );
    expect(rows.map((row) => row.conname)).toEqual(['ledger_row_prev', 'ledger_row_run_id_seq_pk']);
  });

  test.each([
    ['a gap', 2, {}, 'CSL02'],
    ['another predecessor', 1, { prev: Buffer.alloc(32, 7) }, 'CSL02'],
    ['a hash that is not the body’s', 1, { hash: Buffer.alloc(32, 7) }, 'CSL01'],
    ['a body over 32 KiB', 1, { body: Buffer.alloc(32_769, 7) }, 'CSL01'],
    ['a MAC of 31 bytes', 1, { mac: Buffer.alloc(31, 1) }, 'CSL01'],
    ['a `prev` of 31 bytes', 1, { prev: Buffer.alloc(31, 7) }, 'CSL02'],
  ] as const)('%s is refused', async (_, by, change, code) => {
    await refused(asApp(insert, await rowAfter(by, change)), code);
  });

  test('rows that do not follow each other inside one statement are refused whole', async () => {
    const first = await rowAfter(1);
    const second = await rowAfter(2, { prev: Buffer.alloc(32, 9) });
    const text = `${insert}, ($8, $9, $10, $11, $12, $13, $14)`;
    await refused(asApp(text, [...first, ...second]), 'CSL02');
    // linked in the order they come, but not in that of their numbers
    const later = await rowAfter(3, { prev: first[3] as Buffer });
    await refused(asApp(text, [...first, ...later]), 'CSL02');
    const { rows } = await asApp('select count(*)::int as n from ledger_row where run_id = $1', [run.id]);
    expect(rows[0].n).toBe(5);
  });
});

describe('attack 37: as countersign_app', () => {
  test.each([
    ['update a row', `update ledger_row set body = ''`, '42501'],
    ['delete rows', 'delete from ledger_row', '42501'],
    ['truncate rows', 'truncate ledger_row', '42501'],
    ['delete a head', 'delete from ledger_head', '42501'],
    ['truncate heads with everything that hangs on them', 'truncate ledger_head cascade', '42501'],
    ['move a head', 'update ledger_head set seq = 1', '42501'],
    [
      'begin a chain with a forged head',
      `insert into ledger_head (run_id, installation_id, log, genesis, seq, hash) values ('f', 1, 'l', sha256('x'), 99, sha256('y'))`,
      '42501',
    ],
    ['disable the triggers', 'alter table ledger_row disable trigger all', '42501'],
    ['skip the triggers', 'set session_replication_role = replica', '42501'],
    ['drop the table', 'drop table ledger_row', '42501'],
    [
      'replace the guard',
      'create or replace function ledger_guard() returns trigger language sql as $$ select null $$',
      '42501',
    ],
    [
      'upsert',
      `insert into ledger_row select * from ledger_row on conflict (run_id, seq) do update set body = ''`,
      '42501',
    ],
    ['move the clock', `insert into clock_offset (ahead) values ('1 day')`, '42501'],
    ['forget a breaking migration', 'delete from schema_break', '42501'],
  ])('%s fails', async (_, text, code) => {
    await refused(asApp(text), code);
    expect((await verifyRun(deps, run, { full: true })).verdict.kind).toBe('intact');
  });
});

describe('attack 37: as the owner, with the triggers on', () => {
  test.each([
    ['update', `update ledger_row set body = ''`],
    ['delete', 'delete from ledger_row'],
    ['truncate', 'truncate ledger_row'],
    ['delete the parent', 'delete from ledger_head'],
    ['truncate the parent with cascade', 'truncate ledger_head cascade'],
    ['move a head back', 'update ledger_head set seq = 1'],
    [
      'begin a chain in its middle',
      `insert into ledger_head (run_id, installation_id, log, genesis, seq, hash) values ('f', 1, 'l', sha256('x'), 99, sha256('y'))`,
    ],
    [
      'begin a chain at a genesis that is no hash',
      `insert into ledger_head (run_id, installation_id, log, genesis) values ('f', 1, 'l', '\\x01')`,
    ],
    [
      'move a head back by upsert',
      `insert into ledger_head (run_id, installation_id, log, genesis) select run_id, 1, 'l', sha256('x') from ledger_head
       on conflict (run_id) do update set seq = 0, hash = null`,
    ],
    [
      'move a head back by merge',
      'merge into ledger_head h using (select 1) one on true when matched then update set seq = 0, hash = null',
    ],
    [
      'upsert',
      `insert into ledger_row select * from ledger_row on conflict (run_id, seq) do update set body = ''`,
    ],
  ])('%s raises, also with session_replication_role = replica', async (_, text) => {
    await asOwner(one.url, async (client) => {
      await refused(client.query(text), 'CSL03');
      await client.query('set session_replication_role = replica');
      await refused(client.query(text), 'CSL03');
      await refused(client.query(insert, await rowAfter(2)), 'CSL02');
    });
    expect((await verifyRun(deps, run, { full: true })).verdict.kind).toBe('intact');
  });
});

/** As a superuser who switches the guard off, and tidies up after. */
const tamper = (fn: (client: pg.Client) => Promise<unknown>) =>
  asOwner(one.url, async (client) => {
    await client.query('begin');
    const { rows: triggers } = await client.query<{ trigger: string; on: string }>(
      `select tgname as trigger, tgrelid::regclass as on from pg_trigger
       where tgrelid in ('ledger_row'::regclass, 'ledger_head'::regclass) and not tgisinternal`,
    );
    for (const table of ['ledger_row', 'ledger_head'])
      await client.query(`alter table ${table} disable trigger all`);
    await fn(client);
    for (const table of ['ledger_row', 'ledger_head'])
      await client.query(`alter table ${table} enable trigger all`);
    for (const one of triggers)
      await client.query(`alter table ${one.on} enable always trigger ${one.trigger}`);
    await client.query('commit');
  });

describe('as a superuser with the triggers off, the verifier tells', () => {
  const note = () => {
    const log = deps.signer.logOf(run.installationId);
    return asApp('select seq, hash from ledger_head where run_id = $1', [run.id]).then(({ rows }) =>
      deps.signer.signHead({ log, run: run.id, seq: Number(rows[0].seq), hash: rows[0].hash }),
    );
  };
  const verdict = async (published: string[] = []) =>
    (await verifyRun(deps, run, { full: true, published })).verdict;

  test.each(['prev', 'hash', 'mac', 'body'])(
    'attack 33: a byte of %s flipped is edited, at its row',
    async (column) => {
      await tamper((client) =>
        client.query(
          `update ledger_row set ${column} = set_byte(${column}, 9, get_byte(${column}, 9) # 1) where run_id = $1 and seq = 3`,
          [run.id],
        ),
      );
      expect(await verdict()).toMatchObject({ kind: 'invalid', seq: 3, fault: 'edited' });
    },
  );

  test('attack 33: a byte of the head flipped is found', async () => {
    await tamper((client) =>
      client.query(
        'update ledger_head set hash = set_byte(hash, 0, get_byte(hash, 0) # 1) where run_id = $1',
        [run.id],
      ),
    );
    expect(await verdict()).toMatchObject({ kind: 'invalid', seq: 5, fault: 'edited' });
  });

  test('attack 33: the pull request that the run is of, changed in the run’s own table, is foreign', async () => {
    await asApp(`update run set pull = 9999999 where id = $1`, [run.id]);
    run = { ...run, pull: '9999999' };
    expect(await verdict()).toMatchObject({ kind: 'invalid', seq: 1, fault: 'foreign' });
  });

  test('attack 34: a deleted row is missing', async () => {
    await tamper((client) => client.query('delete from ledger_row where run_id = $1 and seq = 3', [run.id]));
    expect(await verdict()).toMatchObject({ kind: 'invalid', seq: 3, fault: 'missing' });
  });

  test('attack 34: two rows swapped are reordered', async () => {
    await tamper(async (client) => {
      for (const [from, to] of [
        [3, 100],
        [4, 3],
        [100, 4],
      ]) {
        await client.query('update ledger_row set seq = $3 where run_id = $1 and seq = $2', [
          run.id,
          from,
          to,
        ]);
      }
    });
    expect(await verdict()).toMatchObject({ kind: 'invalid', seq: 3, fault: 'reordered' });
  });

  test('attack 34: a row inserted again is duplicated', async () => {
    await tamper((client) =>
      client.query(
        `insert into ledger_row select run_id, 6, sha256('free'), hash, mac, kind, body from ledger_row where run_id = $1 and seq = 2`,
        [run.id],
      ),
    );
    expect(await verdict()).toMatchObject({ kind: 'invalid', seq: 6, fault: 'duplicated' });
  });

  test('attack 34: a row moved here from another run is foreign', async () => {
    await openTestRun(deps, `other-${n}`, `${n}000`);
    await tamper((client) =>
      client.query(
        `insert into ledger_row select $1, 6, (select hash from ledger_row where run_id = $1 and seq = 5), hash, mac, kind, body
         from ledger_row where run_id = $2 and seq = 1`,
        [run.id, `other-${n}`],
      ),
    );
    expect(await verdict()).toMatchObject({ kind: 'invalid', seq: 6, fault: 'foreign' });
  });

  test('attack 35: the last k rows cut, and the head set back, is truncated against the published head', async () => {
    const published = [await note()];
    for (let left = 4; left >= 1; left--) {
      await tamper(async (client) => {
        await client.query('delete from ledger_row where run_id = $1 and seq > $2', [run.id, left]);
        await client.query(
          'update ledger_head set seq = $2, hash = (select hash from ledger_row where run_id = $1 and seq = $2) where run_id = $1',
          [run.id, left],
        );
      });
      expect(await verdict(published)).toMatchObject({ kind: 'invalid', seq: left + 1, fault: 'truncated' });
    }
  });

  test('attack 35: the whole chain gone is truncated, even without a published head', async () => {
    await tamper(async (client) => {
      await client.query('delete from ledger_row where run_id = $1', [run.id]);
      await client.query('delete from ledger_head where run_id = $1', [run.id]);
    });
    expect(await verdict()).toMatchObject({ kind: 'invalid', seq: 1, fault: 'truncated' });
  });

  test('LED-9: what was cut after it was verified is truncated against the head in memory', async () => {
    expect((await verifyRun(deps, run)).verdict.kind).toBe('intact');
    await tamper(async (client) => {
      await client.query('delete from ledger_row where run_id = $1 and seq > 3', [run.id]);
      await client.query(
        'update ledger_head set seq = 3, hash = (select hash from ledger_row where run_id = $1 and seq = 3) where run_id = $1',
        [run.id],
      );
    });
    expect((await verifyRun(deps, run)).verdict).toMatchObject({
      kind: 'invalid',
      seq: 4,
      fault: 'truncated',
    });
  });

  test('LED-9: an incremental check gives the rows that were verified, not what the table says now', async () => {
    const before = await verifyRun(deps, run);
    await tamper((client) =>
      client.query(`update ledger_row set body = '\\x00' where run_id = $1 and seq = 2`, [run.id]),
    );
    await withRun(deps, run.id, async (unit) => unit.append('command.refused', smallRow('new')));
    const after = await verifyRun(deps, run);
    expect(after.verdict).toMatchObject({ kind: 'intact', head: { seq: 6 } });
    expect(after.rows.slice(0, 5)).toEqual(before.rows);
    expect((await verifyRun(deps, run, { full: true })).verdict).toMatchObject({ seq: 2, fault: 'edited' });
  });

  test('LED-10: a head that another key signed is unverifiable, never ignored', async () => {
    const other = unitDeps(one.database);
    const log = other.signer.logOf(run.installationId);
    const forged = other.signer.signHead({ log, run: run.id, seq: 1, hash: Buffer.alloc(32, 1) });
    expect(await verdict([forged])).toMatchObject({ kind: 'unverifiable' });
  });
});
