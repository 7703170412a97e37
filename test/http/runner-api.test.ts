import { setTimeout as delay } from 'node:timers/promises';
import { sql } from 'drizzle-orm';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { fingerprint } from '../../app/domain/finding.ts';
import { cutTickets } from '../../app/flow/cut-tickets.ts';
import { verifyRun } from '../../app/flow/verify-run.ts';
import { QUEUE_CHANNEL, wake } from '../../app/flow/wake.ts';
import { PROTOCOL_VERSION } from '../../app/protocol/runner.ts';
import { listenTo } from '../../db/listen.ts';
import { listFindings } from '../../db/store/finding.ts';
import { findRun } from '../../db/store/run.ts';
import { countTickets } from '../../db/store/ticket.ts';
import { lockPlan } from '../../db/store/waiting.ts';
import {
  call,
  claims,
  clearQueue,
  db,
  deps,
  dispatched,
  issuer,
  type Lease,
  leaseOne,
  logIn,
  loginBody,
  result,
  runWith,
  startApi,
  stopApi,
  submit,
} from '../helpers/api.ts';
import { asOwner } from '../helpers/database.ts';
import { changedFile, REPOSITORY, setFiles } from '../helpers/queue.ts';

beforeAll(startApi);
afterAll(stopApi);
beforeEach(clearQueue);

function found(lease: Lease, title: string, quote: string, more: Record<string, unknown> = {}) {
  const path = lease.ticket.path;
  return {
    fingerprint: fingerprint({ path, lens: 'correctness', title, quote, ordinal: 0 }),
    side: 'head' as const,
    start_line: 3,
    end_line: 3,
    severity: 'high' as const,
    lens: 'correctness',
    title,
    body: 'why',
    quote,
    suggestion: null,
    grounded: true,
    reviewer: lease.ticket.reviewers[0]?.name ?? '',
    ...more,
  };
}

async function kinds(run: string): Promise<Record<string, number>> {
  const { rows } = await db.database.db.execute<{ kind: string; n: number }>(
    sql`select kind, count(*)::int as n from ledger_row where run_id = ${run} group by kind`,
  );
  return Object.fromEntries(rows.map((row) => [row.kind, row.n]));
}

async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  for (let n = 0; n < 500; n++) {
    if (await holds()) return;
    await delay(20);
  }
  throw new Error('it never came');
}

async function verifies(id: string): Promise<boolean> {
  const run = await findRun(db.database.db, id);
  return run !== null && (await verifyRun(deps, run)).verdict.kind === 'intact';
}

describe('the road of a ticket', () => {
  test('LSE-4: login, lease, heartbeat, submit: one ticket.ended, findings and jobs in one commit, and the run verifies', async () => {
    const run = await runWith(['a.ts', 'b.ts']);
    const { token } = await logIn(run);
    const lease = await leaseOne(token);
    expect(lease.ticket).toMatchObject({ run, repository: { id: REPOSITORY, owner: 'acme' }, level: 'L1' });
    expect(lease.session).toBeNull();
    const beat = await call(
      `/api/v1/leases/${lease.id}/heartbeat`,
      { token: lease.token, grant: lease.grant },
      token,
    );
    expect(beat).toMatchObject({ status: 200, body: { control: 'none' } });
    const secret = `ghp_${'A1b2C3d4E5f6G7h8I9j0'.repeat(2).slice(0, 36)}`;
    const value = result(lease, {
      verdict: 'findings',
      findings: [found(lease, 'A hole', `const t = "${secret}"`)],
    });
    expect((await submit(lease, token, value)).body).toEqual({
      accepted: true,
      late: false,
      repeated: false,
    });
    expect(await kinds(run)).toMatchObject({ 'ticket.ended': 1, 'finding.raised': 1 });
    const [finding] = await listFindings(db.database.db, run);
    expect(finding).toMatchObject({ number: 1, state: 'open', command: true, severity: 'high' });
    const { rows } = await db.database.db.execute<{ n: number }>(
      sql`select count(*)::int as n from stored_text where position(${secret}::bytea in content) > 0`,
    );
    expect(rows[0]?.n).toBe(0);
    const jobs = await db.database.db.execute<{ key: string }>(
      sql`select key from graphile_worker.jobs where key like 'decide-gate:%'`,
    );
    expect(jobs.rows.map((row) => row.key)).toContain(`decide-gate:${run}`);
    expect(await verifies(run)).toBe(true);
  });

  test('LSE-4: the same result again is accepted once; another under the same grant is a conflict', async () => {
    const run = await runWith(['a.ts']);
    const { token } = await logIn(run);
    const lease = await leaseOne(token);
    const value = result(lease);
    expect((await submit(lease, token, value)).status).toBe(200);
    expect((await submit(lease, token, value)).body).toMatchObject({ accepted: true, repeated: true });
    const other = await submit(lease, token, { ...value, ms: 7 });
    expect(other).toMatchObject({ status: 409, body: { error: { code: 'conflict' } } });
    await submit(lease, token, { ...value, ms: 8 });
    expect(await kinds(run)).toMatchObject({ 'ticket.ended': 1, 'ticket.conflict': 1 });
  });

  test('attack 18: a submit after expiry is kept as refused and never counted', async () => {
    const run = await runWith(['a.ts']);
    const { token } = await logIn(run);
    const lease = await leaseOne(token);
    await db.database.db.execute(
      sql`update lease set expires_at = cs_now() - interval '1 second' where id = ${lease.id}`,
    );
    const answer = await submit(lease, token, result(lease));
    expect(answer).toMatchObject({ status: 409, body: { error: { code: 'expired' } } });
    await submit(lease, token, result(lease));
    expect(await kinds(run)).toMatchObject({ 'ticket.refused': 1 });
    expect((await kinds(run))['ticket.ended']).toBeUndefined();
    const beat = await call(
      `/api/v1/leases/${lease.id}/heartbeat`,
      { token: lease.token, grant: lease.grant },
      token,
    );
    expect(beat).toMatchObject({ status: 409, body: { error: { code: 'expired' } } });
  });

  test('case 40, case 55, AUT-3: another blob than the ticket’s is wrong_content', async () => {
    const run = await runWith(['a.ts']);
    const { token } = await logIn(run);
    const lease = await leaseOne(token);
    const answer = await submit(lease, token, result(lease, { blobs: { base: null, head: 'e'.repeat(40) } }));
    expect(answer).toMatchObject({ status: 409, body: { error: { code: 'wrong_content' } } });
    expect(await kinds(run)).toMatchObject({ 'ticket.refused': 1 });
    expect((await submit(lease, token, result(lease))).status).toBe(200);
  });

  test('REV-10: reviewed without a complete session of every reviewer is worker_error, never an approval', async () => {
    const run = await runWith(['a.ts']);
    const { token } = await logIn(run);
    const lease = await leaseOne(token);
    expect((await submit(lease, token, result(lease, { sessions: [] }))).status).toBe(200);
    const { rows } = await db.database.db.execute(
      sql`select end_code, verdict, state from ticket where run_id = ${run}`,
    );
    expect(rows).toEqual([{ end_code: 'worker_error', verdict: null, state: 'ended' }]);
  });

  test('ADM-1: a model session that was never admitted does not count', async () => {
    const run = await runWith(['a.ts'], 'L2');
    const { token } = await logIn(run);
    const lease = await leaseOne(token);
    expect(lease.session).not.toBeNull();
    const made = result(lease);
    await submit(lease, token, made);
    const { rows } = await db.database.db.execute(sql`select end_code from ticket where run_id = ${run}`);
    expect(rows).toEqual([{ end_code: 'worker_error' }]);
  });

  test('ADM-1: the lease’s slot is its first session’s; a second takes its own; ending frees it', async () => {
    const run = await runWith(['a.ts'], 'L2');
    const { token } = await logIn(run);
    const lease = await leaseOne(token);
    const ask = (reviewer: string, purpose: string) =>
      call(
        `/api/v1/leases/${lease.id}/admit`,
        { token: lease.token, grant: lease.grant, reviewer, purpose, prompt_tokens: 10 },
        token,
      );
    const first = await ask('model', 'review');
    expect(first.body).toMatchObject({ outcome: 'admitted', session: lease.session });
    const taken = async () =>
      (
        await db.database.db.execute<{ n: number }>(
          sql`select count(*)::int as n from slot where session_id is not null`,
        )
      ).rows[0]?.n;
    expect(await taken()).toBe(1);
    const second = await ask('model', 'repair');
    expect(second.body.outcome).toBe('admitted');
    expect(await taken()).toBe(2);
    const third = await ask('other', 'fallback');
    expect(third.body.outcome).toBe('admitted');
    expect(await taken()).toBe(3);
    expect((await ask('stranger', 'review')).status).toBe(400);
    const end = {
      token: lease.token,
      grant: lease.grant,
      end: 'complete',
      detail: null,
      tokens_in: 5,
      tokens_out: 6,
      cost_micro: 7,
      ms: 8,
    };
    expect((await call(`/api/v1/sessions/${second.body.session}/end`, end, token)).status).toBe(200);
    expect(await taken()).toBe(2);
    const value = result(lease, {
      sessions: [{ ...result(lease).sessions[0]!, id: first.body.session, provider: 'openai', model: 'm-1' }],
    });
    expect((await submit(lease, token, value)).status).toBe(200);
    expect(await taken()).toBe(0);
    const { rows } = await db.database.db.execute(
      sql`select end_code, verdict from ticket where run_id = ${run}`,
    );
    expect(rows).toEqual([{ end_code: 'reviewed', verdict: 'approve' }]);
  });

  test('LSE-5: a ticket given back waits for another runner and counts as no failure', async () => {
    const run = await runWith(['a.ts']);
    const { token } = await logIn(run);
    const lease = await leaseOne(token);
    const back = { token: lease.token, grant: lease.grant, reason: 'stopping' };
    expect((await call(`/api/v1/leases/${lease.id}/return`, back, token)).status).toBe(200);
    expect(await countTickets(db.database.db, run)).toEqual({ pending: 1 });
    const again = await leaseOne(token);
    expect(again).toMatchObject({ grant: 2, ticket: { id: lease.ticket.id } });
    expect((await submit(lease, token, result(lease))).body.error.code).toBe('superseded');
    const { rows } = await db.database.db.execute<{ reason: string }>(sql`
      select convert_from(body, 'UTF8')::jsonb -> 'data' ->> 'reason' as reason
      from ledger_row where run_id = ${run} and kind = 'ticket.refused'`);
    expect(rows, 'LSE-3: kept with why').toEqual([{ reason: 'superseded' }]);
  });

  test('LSE-5: a ticket given back is the first of its block again, before those that have lanes', async () => {
    const run = await runWith(Array.from({ length: 9 }, (_, i) => `f${i}.ts`));
    const { token } = await logIn(run);
    const first = await leaseOne(token);
    const second = await leaseOne(token);
    for (const lease of [first, second]) {
      const back = { token: lease.token, grant: lease.grant, reason: 'stopping' };
      expect((await call(`/api/v1/leases/${lease.id}/return`, back, token)).status).toBe(200);
    }
    const next = [await leaseOne(token), await leaseOne(token)].map((one) => one.ticket.id);
    expect(next).toEqual([first.ticket.id, second.ticket.id]);
  });

  test('LSE-6: registering and counting happen under one lock', async () => {
    const of = await dispatched(await runWith(['a.ts']));
    const body = loginBody(await issuer.mint(claims(of)), of.nonce);
    const registered = async () =>
      (
        await db.database.db.execute<{ n: number }>(
          sql`select count(*)::int as n from runner where workflow_run = ${of.workflowRun}`,
        )
      ).rows[0]?.n;
    const asked = await db.database.transaction(async (tx) => {
      await lockPlan(tx, REPOSITORY);
      const answer = call('/api/v1/login', body);
      await until(async () => {
        const { rows } = await db.database.db.execute(
          sql`select 1 from pg_locks where locktype = 'advisory' and not granted
              and database = (select oid from pg_database where datname = current_database())`,
        );
        return rows.length > 0;
      });
      expect(await registered()).toBe(0);
      return { answer };
    });
    expect((await asked.answer).status).toBe(200);
    expect(await registered()).toBe(1);
  });

  test('RND-1: what a command no longer finds on new content is fixed; on the same content it stands', async () => {
    const run = await runWith(['a.ts']);
    const { token } = await logIn(run);
    const first = await leaseOne(token);
    await submit(
      first,
      token,
      result(first, { verdict: 'findings', findings: [found(first, 'A', 'x'), found(first, 'B', 'y')] }),
    );
    // a rerun on the same content that is silent closes nothing
    await cutTickets(deps, { run, rerun: { scope: 'all' } });
    const second = await leaseOne(token);
    expect(second.ticket).toMatchObject({ round: 1 });
    expect(second.ticket.earlier.map((one) => one.title)).toEqual(['A', 'B']);
    await submit(second, token, result(second));
    expect((await listFindings(db.database.db, run)).map((one) => one.state)).toEqual(['open', 'open']);
    // new content: A is raised again, B is not
    await setFiles(deps, run, [changedFile(run, 'a.ts', { blobHead: 'f'.repeat(40), key: 'f'.repeat(64) })]);
    await cutTickets(deps, { run });
    const third = await leaseOne(token);
    await submit(third, token, result(third, { verdict: 'findings', findings: [found(third, 'A', 'x')] }));
    expect((await listFindings(db.database.db, run)).map((one) => [one.number, one.state])).toEqual([
      [1, 'open'],
      [2, 'fixed'],
    ]);
    expect(await verifies(run)).toBe(true);
  });

  test('RUN-4: a result whose key no head wants any more is late, and says so', async () => {
    const run = await runWith(['a.ts']);
    const { token } = await logIn(run);
    const lease = await leaseOne(token);
    await setFiles(deps, run, [changedFile(run, 'a.ts', { blobHead: 'f'.repeat(40), key: 'f'.repeat(64) })]);
    expect((await submit(lease, token, result(lease))).body).toMatchObject({ accepted: true, late: true });
    expect(await kinds(run)).toMatchObject({ 'ticket.ended': 1, 'ticket.late': 1 });
  });

  test('LSE-7: ping says the protocol and the run; another major version leases nothing', async () => {
    const run = await runWith(['a.ts']);
    expect((await call('/api/v1/ping')).body).toMatchObject({ protocol: PROTOCOL_VERSION, run: null });
    const { token } = await logIn(run);
    expect((await call('/api/v1/ping', undefined, token)).body).toMatchObject({ run });
    const of = await dispatched(run);
    const old = { ...loginBody(await issuer.mint(claims(of)), of.nonce), protocol: '2.0' };
    expect((await call('/api/v1/login', old)).body.error).toMatchObject({ code: 'protocol_version' });
  });

  test('LSE-1, case 72: a long poll is answered as soon as there is a ticket, by what the database says or by looking again', async () => {
    const run = await runWith([]);
    const { token } = await logIn(run);
    const waiting = async (name: string) => {
      const polling = call('/api/v1/leases', { max: 1, wait_ms: 55_000 }, token);
      await delay(50);
      await setFiles(deps, run, [changedFile(run, name)]);
      await cutTickets(deps, { run });
      const from = performance.now();
      const [lease] = (await polling).body.leases;
      if (lease === undefined) throw new Error('nothing');
      await submit(lease, token, result(lease));
      return performance.now() - from;
    };
    // nobody listens: it looks again by itself
    expect(await waiting('y.ts')).toBeLessThan(40_000);
    const heard: string[] = [];
    const queue = listenTo(db.database, QUEUE_CHANNEL, (repository) => {
      heard.push(repository);
      wake(db.database, repository);
    });
    try {
      await until(() => queue.heard());
      // longer than a NOTIFY may be, with what is around it: the message is an id
      await waiting(`${'\u{1f680}'.repeat(900)}.ts`);
      expect([...new Set(heard)]).toEqual([REPOSITORY]);
      // its connection breaks: it listens on another
      await asOwner(db.url, (client) =>
        client.query(
          "select pg_terminate_backend(pid) from pg_stat_activity where query like 'listen countersign_queue%'",
        ),
      );
      await until(() => !queue.heard());
      await until(() => queue.heard());
    } finally {
      await queue.close();
    }
  });

  test('LSE-1: a submit brings the next lease in the same answer, for whoever asks for it', async () => {
    const run = await runWith(['a.ts', 'b.ts']);
    const { token } = await logIn(run);
    const first = await leaseOne(token);
    const next = (lease: Lease, more: Record<string, unknown> = {}) =>
      call(
        `/api/v1/leases/${lease.id}/submit`,
        {
          token: lease.token,
          grant: lease.grant,
          result: result(lease),
          lease_next: { max: 1, request: 'n1', ...more },
        },
        token,
      );
    const answer = await next(first);
    expect(answer.body).toMatchObject({ accepted: true, next: { done: false } });
    const [second] = answer.body.next.leases;
    if (second === undefined) throw new Error('no next lease');
    expect(second.ticket.path).not.toBe(first.ticket.path);
    // that answer was lost: the same submit again, by the same name
    const again = await next(first, { again: true });
    expect(again.body).toMatchObject({ accepted: true, repeated: true });
    const [third] = again.body.next.leases;
    expect(third).toMatchObject({ ticket: { id: second.ticket.id }, grant: 2 });
    expect((await submit(second, token, result(second))).body.error.code).toBe('superseded');
    // a result that is refused leases nothing
    const late = await next(second);
    expect(late.status).toBe(409);
    const { rows } = await db.database.db.execute(sql`select state from lease where state = 'live'`);
    expect(rows).toHaveLength(1);
    expect(await verifies(run)).toBe(true);
  });

  test('LSE-5: what an answer that was lost had granted is given back when the runner asks again, and no grant is lost by it', async () => {
    const run = await runWith(['a.ts', 'b.ts']);
    const { token } = await logIn(run);
    const ask = (request: string, again: boolean) =>
      call('/api/v1/leases', { max: 1, wait_ms: 0, request, again }, token);
    const [held] = (await ask('q0', false)).body.leases;
    for (let n = 0; n < 4; n++) {
      const [lease] = (await ask('q1', n > 0)).body.leases;
      expect(lease?.ticket.id).not.toBe(held?.ticket.id);
    }
    const { rows } = await db.database.db.execute(
      sql`select count(*) filter (where l.state = 'live')::int as live, count(*) filter (where l.state = 'returned')::int as returned,
            max(t.losses)::int as losses, bool_or(t.suspect) as suspect
          from lease l join ticket t on t.id = l.ticket_id where t.run_id = ${run}`,
    );
    expect(rows).toEqual([{ live: 2, returned: 3, losses: 0, suspect: false }]);
    expect(await kinds(run)).not.toHaveProperty('ticket.ended');
    // another name takes nothing back
    expect((await ask('q2', true)).body.leases).toHaveLength(0);
  });

  test('LSE-5: a runner that went away before it was answered holds nothing', async () => {
    const run = await runWith([]);
    const { token } = await logIn(run);
    const gone = new AbortController();
    const polling = call('/api/v1/leases', { max: 1, wait_ms: 20_000, request: 'away' }, token, gone.signal);
    await delay(100);
    gone.abort();
    await expect(polling).rejects.toThrow();
    await setFiles(deps, run, [changedFile(run, 'z.ts')]);
    await cutTickets(deps, { run });
    await until(async () => (await leaseOne(token).catch(() => null)) !== null);
  });

  test('the API refuses what it does not know: fields, sizes, bodies, tokens', async () => {
    const run = await runWith(['a.ts']);
    const { token } = await logIn(run);
    expect((await call('/api/v1/leases', { max: 1, wait_ms: 0, extra: 1 }, token)).status).toBe(400);
    expect((await call('/api/v1/leases', '{', token)).body.error.code).toBe('bad_request');
    expect((await call('/api/v1/leases', { max: 1, wait_ms: 0 })).status).toBe(401);
    expect((await call('/api/v1/leases', { max: 1, wait_ms: 0 }, 'x'.repeat(43))).status).toBe(401);
    const big = await call('/api/v1/leases/x/submit', { token: 'a'.repeat(1_100_000) }, token);
    expect(big).toMatchObject({ status: 413, body: { error: { code: 'too_large' } } });
    const described = await call('/api/v1/openapi.json');
    expect(Object.keys(described.body.paths)).toEqual(
      expect.arrayContaining([
        '/api/v1/login',
        '/api/v1/leases',
        '/api/v1/leases/{id}/submit',
        '/api/v1/sessions/{id}/end',
      ]),
    );
  });
});
