/** The kill switch by the API, over HTTP (CTL-5). */
import { sql } from 'drizzle-orm';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { changeOperator, listOperators } from '../../app/flow/change-operator.ts';
import { verifyInstallation } from '../../app/flow/verify-run.ts';
import { upsertInstallation } from '../../db/store/installation.ts';
import {
  call,
  clearQueue,
  db,
  deps,
  leaseOne,
  logIn,
  result,
  runWith,
  startApi,
  stopApi,
  submit,
} from '../helpers/api.ts';
import { INSTALLATION } from '../helpers/queue.ts';

beforeAll(async () => {
  await startApi();
  await db.database.transaction((tx) =>
    upsertInstallation(tx, { id: '77', accountId: '7', accountLogin: 'other', status: 'active' }),
  );
});
afterAll(stopApi);
beforeEach(clearQueue);

const PATH = '/api/v1/kill-switch';
const operator = async (name: string, installation: string | null) =>
  (await changeOperator(deps, name, { change: 'add', installation })) ?? '';
const throwIt = (token: string | undefined, on: boolean, installation: string = INSTALLATION) =>
  call(PATH, { installation, on, reason: 'a *leaked* key' }, token);
const state = (token: string, installation: string) =>
  call(`${PATH}?installation=${installation}`, undefined, token);

test('CTL-5: on, every lease is revoked at once, the next heartbeat is 409 revoked, and nothing is leased until it is off', async () => {
  const token = await operator('on-call', INSTALLATION);
  const run = await runWith(['a.ts', 'b.ts']);
  const runner = await logIn(run);
  const lease = await leaseOne(runner.token);
  const beat = () =>
    call(`/api/v1/leases/${lease.id}/heartbeat`, { token: lease.token, grant: lease.grant }, runner.token);
  expect((await beat()).status).toBe(200);

  expect(await throwIt(token, true)).toEqual({
    status: 200,
    body: { installation: INSTALLATION, on: true, changed: true, installations: 1, revoked: 1 },
  });
  expect(await beat()).toMatchObject({ status: 409, body: { error: { code: 'revoked' } } });
  expect(await submit(lease, runner.token, result(lease))).toMatchObject({
    status: 409,
    body: { error: { code: 'revoked' } },
  });
  const { rows: kept } = await db.database.db.execute<{ reason: string }>(sql`
    select convert_from(body, 'UTF8')::jsonb -> 'data' ->> 'reason' as reason
    from ledger_row where run_id = ${run} and kind = 'ticket.refused'`);
  expect(kept, 'kept, shown and not counted').toEqual([{ reason: 'revoked' }]);
  const nothing = await call('/api/v1/leases', { max: 4, wait_ms: 0 }, runner.token);
  expect(nothing.body.leases).toEqual([]);
  expect((await throwIt(token, true)).body, 'again it changes nothing').toMatchObject({
    changed: false,
    revoked: 0,
  });
  expect((await state(token, INSTALLATION)).body).toEqual({
    installation: INSTALLATION,
    switches: [
      { installation: INSTALLATION, by: 'on-call', reason: 'a *leaked* key', at: expect.any(String) },
    ],
  });

  expect(await throwIt(token, false)).toMatchObject({ status: 200, body: { on: false, changed: true } });
  expect((await state(token, INSTALLATION)).body).toEqual({ installation: INSTALLATION, switches: [] });
  const again = await leaseOne(runner.token);
  expect(again.grant, 'it goes on by itself').toBeGreaterThan(0);
  const { verdict, rows } = await verifyInstallation(deps, { id: INSTALLATION, epoch: 1 });
  expect(verdict.kind).toBe('intact');
  expect(rows.map(({ kind, actor, cause, data }) => [kind, actor, cause.kind, data])).toEqual([
    [
      'settings.changed',
      { kind: 'app', id: 'countersign', via: 'command_line' },
      'command_line',
      { setting: 'operator.on-call', value: 'added' },
    ],
    ...['"on"', 'unset'].map((value) => [
      'settings.changed',
      { kind: 'person', id: 'on-call', via: 'api' },
      'api',
      { setting: 'kill', value, text: expect.any(String) },
    ]),
  ]);
});

test('CTL-5: a token speaks for its installation alone, one of the whole app for all', async () => {
  const mine = await operator('mine', INSTALLATION);
  for (const installation of ['77', 'all'])
    for (const refused of [await throwIt(mine, true, installation), await state(mine, installation)])
      expect(refused).toMatchObject({
        status: 403,
        body: {
          error: {
            code: 'forbidden',
            message: 'mine speaks for another installation',
            accepted: INSTALLATION,
          },
        },
      });
  const all = await operator('everything', null);
  expect((await throwIt(all, true, '77')).body).toMatchObject({ installations: 1 });
  expect((await throwIt(all, true, 'all')).body).toMatchObject({ installation: 'all', installations: 2 });
  expect((await state(mine, INSTALLATION)).body, "the app's switch holds here too").toMatchObject({
    switches: [{ installation: 'all', by: 'everything' }],
  });
  expect(await throwIt(mine, false)).toMatchObject({ status: 200, body: { changed: false } });
  expect((await state(all, '77')).body).toMatchObject({
    switches: [{ installation: 'all' }, { installation: '77' }],
  });
  await throwIt(all, false, '77');
  await throwIt(all, false, 'all');
});

test('CTL-5: a missing, unknown or revoked token, a login of a runner and a wrong body are refused, and change nothing', async () => {
  const token = await operator('gone', INSTALLATION);
  await changeOperator(deps, 'gone', { change: 'revoke' });
  const runner = await logIn(await runWith(['a.ts']));
  for (const one of [undefined, 'x'.repeat(43), token, runner.token])
    expect(await throwIt(one, true)).toMatchObject({
      status: 401,
      body: { error: { code: 'unauthorized' } },
    });
  const held = await operator('held', null);
  const said = (body: Record<string, unknown>) =>
    call(PATH, { installation: INSTALLATION, on: true, reason: 'r', ...body }, held);
  for (const body of [
    { on: 'yes' },
    { reason: '' },
    { reason: ' ' },
    { reason: 'x'.repeat(501) },
    { installation: '0' },
    { installation: 'acme' },
    { more: 1 },
  ])
    expect((await said(body)).body.error.code, JSON.stringify(body)).toBe('bad_request');
  expect(await said({ installation: '123' })).toMatchObject({
    status: 404,
    body: { error: { code: 'not_found' } },
  });
  expect((await state(held, INSTALLATION)).body).toMatchObject({ switches: [] });
});

test('CTL-5: a token is kept as its hash, one a name, and described for programs', async () => {
  const secret = await operator('hashed', INSTALLATION);
  const { rows } = await db.database.db.execute<{ text: string }>(
    sql`select t::text as text from operator_token t where name = 'hashed'`,
  );
  expect(rows[0]?.text).not.toContain(secret);
  await expect(operator('hashed', null)).rejects.toMatchObject({ code: 'conflict' });
  await expect(operator('nowhere', '123')).rejects.toMatchObject({ code: 'not_found' });
  await expect(changeOperator(deps, 'nobody', { change: 'revoke' })).rejects.toMatchObject({
    code: 'not_found',
  });
  expect(await listOperators(deps)).toContainEqual({
    name: 'hashed',
    installation: INSTALLATION,
    since: expect.any(Date),
  });
  const { body } = await call('/api/v1/openapi.json');
  expect(Object.keys(body.paths[PATH] as object)).toEqual(['get', 'post']);
});
