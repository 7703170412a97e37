import { sql } from 'drizzle-orm';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { connect } from '../../db/client.ts';
import { asOwner, type TestDatabase, testDatabase } from '../helpers/database.ts';
import { startPooler } from '../helpers/pooler.ts';

let one: TestDatabase;
beforeAll(async () => {
  one = await testDatabase({ max: 2 });
});
afterAll(() => one.drop());

describe('connect', () => {
  test('LED-5: every connection acts as countersign_app', async () => {
    const { rows } = await one.database.pool.query('select current_user as who, session_user as login');
    expect(rows[0].who).toBe('countersign_app');
    expect(rows[0].login).not.toBe('countersign_app');
    expect(one.database.appRole).toBe(true);
  });

  test('LED-5: a server with fsync off is refused where the database is not marked as throw-away', async () => {
    const real = await testDatabase({ throwaway: true });
    const { rows } = await real.database.pool.query<{ fsync: string }>(
      `select current_setting('fsync') as fsync`,
    );
    await asOwner(real.url, async (client) => {
      await client.query(`alter database ${new URL(real.url).pathname.slice(1)} reset countersign.throwaway`);
    });
    if (rows[0]?.fsync === 'off') {
      await expect(connect(real.url, { max: 1 })).rejects.toMatchObject({ code: 'database_refused' });
    }
    await real.drop();
  });

  test('LED-5: a pooler in transaction mode is refused, one in session mode is not', async () => {
    const bad = await startPooler(one.url, 'transaction');
    await expect(connect(bad.url, { max: 3 })).rejects.toMatchObject({
      code: 'database_refused',
      retryable: false,
    });
    await bad.close();
    const good = await startPooler(one.url, 'session');
    const database = await connect(good.url, { max: 1 });
    await expect(database.transaction(async () => 1)).resolves.toBe(1);
    await database.close();
    await good.close();
  });

  test('an unreachable server is a retryable fault that names no password', async () => {
    const failure = await connect('postgres://u:verysecret@127.0.0.1:1/x', { max: 1 }).catch(
      (error: unknown) => error,
    );
    expect(failure).toMatchObject({ code: 'database_unreachable', retryable: true });
    expect(String(failure)).not.toContain('verysecret');
  });
});

describe('transaction', () => {
  test('commits what resolves, with synchronous_commit on', async () => {
    const value = await one.database.transaction(async (tx) => {
      const { rows } = await tx.$client.query(`select current_setting('synchronous_commit') as c`);
      await tx.$client.query(`insert into stored_text (sha256, stored_at) values ('\\x01', cs_now())`);
      return rows[0].c;
    });
    expect(value).toBe('on');
    const { rows } = await one.database.pool.query(`select 1 from stored_text where sha256 = '\\x01'`);
    expect(rows).toHaveLength(1);
  });

  test('rolls back what rejects', async () => {
    const failing = one.database.transaction(async (tx) => {
      await tx.$client.query(`insert into stored_text (sha256, stored_at) values ('\\x02', cs_now())`);
      throw new Error('no');
    });
    await expect(failing).rejects.toThrow('no');
    const { rows } = await one.database.pool.query(`select 1 from stored_text where sha256 = '\\x02'`);
    expect(rows).toHaveLength(0);
  });

  test('a failed statement that fn swallowed is never reported as committed', async () => {
    const hidden = one.database.transaction(async (tx) => {
      await tx.$client.query('select 1/0').catch(() => {});
    });
    await expect(hidden).rejects.toMatchObject({ code: 'bug' });
  });

  test('a failed statement leaves with Postgres’s own error, which quotes no parameter', async () => {
    const failure = await one.database
      .transaction((tx) => tx.execute(sql`select 1 / length(replace(${'private text'}, 'private text', ''))`))
      .catch((error: unknown) => error);
    expect(failure).toMatchObject({ code: '22012' });
    expect(String(failure)).not.toContain('private text');
  });

  test('RUN-6: a transaction inside another is nested_unit_of_work, and one after it is not', async () => {
    const nested = one.database.transaction(() => one.database.transaction(async () => 1));
    await expect(nested).rejects.toMatchObject({ code: 'nested_unit_of_work' });
    await expect(one.database.transaction(async () => 1)).resolves.toBe(1);
  });

  test('a connection that breaks inside a transaction leaves the pool usable', async () => {
    const broken = one.database.transaction(async (tx) => {
      const { rows } = await tx.$client.query('select pg_backend_pid() as pid');
      await asOwner(one.url, (client) => client.query('select pg_terminate_backend($1)', [rows[0].pid]));
      await tx.$client.query('select 1');
    });
    await expect(broken).rejects.toThrow();
    await expect(one.database.transaction(async () => 1)).resolves.toBe(1);
  });
});

describe('product time', () => {
  test('cs_now moves with the test clock and never in a database that is not marked', async () => {
    const marked = await testDatabase();
    await marked.moveClock(7_200_000);
    const { rows } = await marked.database.pool.query(
      `select extract(epoch from cs_now() - clock_timestamp()) as s`,
    );
    expect(Number(rows[0].s)).toBeCloseTo(7200, 0);
    await asOwner(marked.url, async (client) => {
      await client.query(
        `alter database ${new URL(marked.url).pathname.slice(1)} reset countersign.throwaway`,
      );
      const after = await client.query(
        `select abs(extract(epoch from cs_now() - clock_timestamp())) < 1 as same`,
      );
      expect(after.rows[0].same).toBe(true);
      // a session variable of that name convinces nobody
      await client.query(`set countersign.throwaway = 'on'`);
      await expect(client.query(`update clock_offset set ahead = '1 day'`)).rejects.toMatchObject({
        code: '42501',
      });
    });
    await marked.drop();
  });

  test('due_at <= cs_now() can use an index', async () => {
    await one.database.transaction(async (tx) => {
      await tx.$client.query('set local enable_seqscan = off');
      const { rows } = await tx.$client.query('explain select * from check_run where due_at <= cs_now()');
      expect(rows.map((row) => row['QUERY PLAN']).join('\n')).toMatch(/Index Cond: \(due_at <= cs_now\(\)\)/);
    });
  });
});
