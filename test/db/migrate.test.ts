import { createHash } from 'node:crypto';
import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { drizzle } from 'drizzle-orm/node-postgres';
import { migrate } from 'drizzle-orm/node-postgres/migrator';
import { afterEach, expect, test } from 'vitest';
import { connect } from '../../db/client.ts';
import { migrateDatabase, migrationsFolder } from '../../db/migrate.ts';
import { asOwner, type TestDatabase, testDatabase } from '../helpers/database.ts';
import { startChild } from '../helpers/process.ts';

let one: TestDatabase | undefined;
afterEach(async () => {
  await one?.drop();
  one = undefined;
});

const journal = JSON.parse(readFileSync(join(migrationsFolder(), 'meta', '_journal.json'), 'utf8')) as {
  entries: { tag: string; when: number }[];
};
const tags = journal.entries.map((entry) => entry.tag);
/** Migrations made before the first release ran on no database that an older app could meet. */
const FIRST_RELEASE = Date.parse('2026-12-01T00:00:00Z');

test('OPS-4: three processes that start at once on an empty database migrate it once', async () => {
  one = await testDatabase({ empty: true });
  const { url } = one;
  const children = [1, 2, 3].map(() => startChild('migrate', [url]));
  const ends = await Promise.all(children.map((child) => child.ended));
  expect(children.map((child) => child.errors())).toEqual(['', '', '']);
  expect(ends).toEqual([0, 0, 0]);
  const told = children.map(
    (child) => JSON.parse(child.lines[0] ?? '{}') as { applied: number; role: boolean },
  );
  expect(told.map((one) => one.applied).sort((a, b) => a - b)).toEqual([0, 0, tags.length]);
  expect(told.every((done) => done.role)).toBe(true);
});

test('OPS-4: an app that does not know a breaking migration refuses, and one that does starts', async () => {
  one = await testDatabase();
  await asOwner(one.url, (client) =>
    client.query(`insert into schema_break (tag) values ('9999_from_the_future')`),
  );
  await expect(migrateDatabase(one.url)).rejects.toMatchObject({ code: 'schema_newer', retryable: false });
  await asOwner(one.url, (client) => client.query(`update schema_break set tag = $1`, [tags[0]]));
  await expect(migrateDatabase(one.url)).resolves.toMatchObject({ applied: 0 });
});

test('OPS-4: a migration that drops or renames declares itself as breaking', () => {
  const files = readdirSync(migrationsFolder()).filter((name) => name.endsWith('.sql'));
  expect(files.map((name) => name.replace(/\.sql$/, '')).sort()).toEqual([...tags].sort());
  const later = journal.entries.filter((entry) => entry.when > FIRST_RELEASE);
  for (const { tag } of later) {
    const text = readFileSync(join(migrationsFolder(), `${tag}.sql`), 'utf8');
    if (/\b(drop\s+(table|column)|rename\s+(to|column))\b/i.test(text)) {
      expect(text, tag).toContain(`insert into schema_break (tag) values ('${tag}')`);
    }
  }
});

test('LED-5: a login that may not act as the role is told so at connect, and the triggers hold all the same', async () => {
  one = await testDatabase({ empty: true });
  const name = new URL(one.url).pathname.slice(1);
  const limited = `limited_${name}`;
  await asOwner(one.url, async (client) => {
    await client.query(`create role ${limited} login password 'limited'`);
    await client.query(`alter database ${name} owner to ${limited}`);
  });
  const url = new URL(one.url);
  url.username = limited;
  url.password = 'limited';
  const done = await migrateDatabase(url.href);
  // the role exists on this server already, and this login may not act as it
  expect(done.applied).toBe(tags.length);
  const warnings: string[] = [];
  const database = await connect(url.href, { max: 1, warn: (code) => warnings.push(code) });
  expect(database.appRole).toBe(false);
  expect(warnings).toEqual(['ledger_role_missing']);
  await database.pool.query(
    `insert into ledger_head (run_id, installation_id, log, genesis) values ('r', 1, 'l', sha256('x'))`,
  );
  await expect(database.pool.query('delete from ledger_head')).rejects.toMatchObject({ code: 'CSL03' });
  await database.close();
  await asOwner(one.url, async (client) => {
    await client.query(`reassign owned by ${limited} to current_user`);
    await client.query(`drop owned by ${limited}`);
    await client.query(`drop role ${limited}`);
  });
});

test('case 62: the guard is the same on a database made anew and on one upgraded with rows in it', async () => {
  const guard = (url: string) =>
    asOwner(url, async (client) => {
      const constraints = await client.query(
        `select conrelid::regclass::text as table, conname as name, pg_get_constraintdef(oid) as text from pg_constraint
         where conrelid in ('ledger_row'::regclass, 'ledger_head'::regclass) order by 1, 2`,
      );
      const triggers = await client.query(
        `select tgrelid::regclass::text as table, tgname as name, tgenabled as enabled, pg_get_functiondef(tgfoid) as text
         from pg_trigger where tgrelid in ('ledger_row'::regclass, 'ledger_head'::regclass) and not tgisinternal order by 1, 2`,
      );
      return { constraints: constraints.rows, triggers: triggers.rows };
    });
  one = await testDatabase();
  const fresh = await guard(one.url);
  await one.drop();
  one = await testDatabase({ empty: true });
  const folder = mkdtempSync(join(tmpdir(), 'cs-migrations-'));
  const first = journal.entries.slice(0, 2);
  mkdirSync(join(folder, 'meta'));
  writeFileSync(join(folder, 'meta', '_journal.json'), JSON.stringify({ ...journal, entries: first }));
  for (const { tag } of first)
    copyFileSync(join(migrationsFolder(), `${tag}.sql`), join(folder, `${tag}.sql`));
  const insert = `insert into ledger_row (run_id, seq, prev, hash, mac, kind, body)
    select 'r', $1, $2, sha256('\\x00'::bytea || $3), sha256('mac'), 'run.opened', $3`;
  await asOwner(one.url, async (client) => {
    await migrate(drizzle({ client }), { migrationsFolder: folder });
    await client.query(
      `insert into ledger_head (run_id, installation_id, log, genesis) values ('r', 1, 'l', sha256('genesis'))`,
    );
    const genesis = createHash('sha256').update('genesis').digest();
    await client.query(insert, [1, genesis, Buffer.from('{"a":1}')]);
  });
  rmSync(folder, { recursive: true });
  expect(await migrateDatabase(one.url)).toMatchObject({ applied: tags.length - 2 });
  expect(await guard(one.url)).toEqual(fresh);
  expect(fresh.triggers.map((trigger) => trigger.enabled)).toEqual(fresh.triggers.map(() => 'A'));
  expect(fresh.constraints).toContainEqual({
    table: 'ledger_row',
    name: 'ledger_row_prev',
    text: 'UNIQUE (run_id, prev)',
  });
  const keys = fresh.constraints.map(({ text }) => String(text));
  expect(keys).toContain('PRIMARY KEY (run_id, seq)');
  // LED-5: whatever hangs on the ledger holds it
  for (const key of keys.filter((text) => text.startsWith('FOREIGN KEY')))
    expect(key).toMatch(/ON UPDATE RESTRICT ON DELETE RESTRICT$/);
  await asOwner(one.url, async (client) => {
    const child = (text: string, seq: number) => {
      const prev = createHash('sha256').update('\0{"a":1}').digest();
      return client.query(insert, [seq, prev, Buffer.from(text)]);
    };
    await child('{"b":2}', 2);
    await expect(child('{"c":3}', 3)).rejects.toMatchObject({
      code: expect.stringMatching(/^(23505|CSL02)$/),
    });
    await expect(client.query(`update ledger_row set seq = 9`)).rejects.toMatchObject({ code: 'CSL03' });
  });
});

test('case 70: no column that holds a foreign id is a 32-bit integer', async () => {
  one = await testDatabase();
  const { rows } = await one.database.pool.query<{ name: string; type: string }>(
    `select table_name || '.' || column_name as name, data_type as type from information_schema.columns
     where table_schema = 'public' and data_type in ('integer', 'smallint')
       and (column_name ~ '(^|_)id$' or column_name ~ '(^|_)(pull|comment|user|author|owner|repository|installation|check|workflow|job|delivery|run)(_|$)')`,
  );
  expect(rows).toEqual([]);
});
