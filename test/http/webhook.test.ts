import { createHmac } from 'node:crypto';
import { createServer, request as httpRequest, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { sql } from 'drizzle-orm';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type StoreDelivery, storeDelivery } from '../../app/flow/store-delivery.ts';
import { MAX_BODY_BYTES, WEBHOOK_PATH, webhook } from '../../app/http/webhook.ts';
import { connect, type Database } from '../../db/client.ts';
import { cpuNow } from '../helpers/cpu.ts';
import { type TestDatabase, testDatabase } from '../helpers/database.ts';
import { payload } from '../helpers/payloads.ts';

const SECRET = 'the-present-secret-of-this-webhook-edge';
const PREVIOUS = 'the-previous-secret-of-this-webhook-edge';
const log = { info() {}, warn() {}, error() {} };

interface Edge {
  readonly server: Server;
  readonly url: string;
}
async function edge(store: StoreDelivery, more: { maxBuffered?: number } = {}): Promise<Edge> {
  const server = createServer(webhook({ secrets: [SECRET, PREVIOUS], store, log, ...more }));
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  return { server, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}${WEBHOOK_PATH}` };
}

let testing: TestDatabase;
let second: Database;
let one: Edge;
let two: Edge;
beforeAll(async () => {
  testing = await testDatabase();
  second = await connect(testing.url, { max: 4 });
  one = await edge(storeDelivery(testing.database));
  two = await edge(storeDelivery(second));
});
afterAll(async () => {
  for (const each of [one, two]) {
    each.server.closeAllConnections();
    await new Promise((done) => each.server.close(done));
  }
  await second.close();
  await testing.drop();
});
beforeEach(async () => {
  await testing.database.db.execute(sql`delete from delivery`);
  await testing.database.db.execute(sql`delete from graphile_worker._private_jobs`);
});

const sign = (body: string | Buffer, secret = SECRET) =>
  `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`;

const example = (name: string, action: string) => Buffer.from(JSON.stringify(payload(name, action)));
const opened = example('pull_request', 'opened');

let next = 0;
async function post(
  body: string | Buffer,
  headers: Record<string, string | undefined> = {},
  url = one.url,
): Promise<{ status: number; body: { accepted?: boolean; repeated?: boolean } }> {
  next += 1;
  const all: Record<string, string | undefined> = {
    'content-type': 'application/json',
    'x-github-event': 'pull_request',
    'x-github-delivery': `delivery-${next}`,
    'x-hub-signature-256': sign(body),
    ...headers,
  };
  const answer = await fetch(url, {
    method: 'POST',
    body: new Uint8Array(Buffer.from(body)),
    headers: Object.fromEntries(Object.entries(all).filter((e): e is [string, string] => e[1] !== undefined)),
  });
  return { status: answer.status, body: (await answer.json()) as object };
}

async function inbox(): Promise<{ id: string; event: string; body: Buffer; state: string }[]> {
  const { rows } = await testing.database.pool.query(
    'select id, event, body, state from delivery order by id',
  );
  return rows;
}
async function jobs(): Promise<string[]> {
  const { rows } = await testing.database.pool.query<{ key: string }>(
    'select key from graphile_worker.jobs order by key',
  );
  return rows.map((row) => row.key);
}

describe('a delivery that is signed', () => {
  it('OPS-1: is stored byte for byte with its job, in one transaction, and answered 202', async () => {
    const answer = await post(opened, { 'x-github-delivery': 'abc-1' });
    expect(answer).toEqual({ status: 202, body: { accepted: true } });
    const [stored] = await inbox();
    expect(stored).toMatchObject({ id: 'abc-1', event: 'pull_request', state: 'stored' });
    expect(stored?.body.equals(opened)).toBe(true);
    expect(await jobs()).toEqual(['delivery:abc-1']);
  });

  it('OPS-1: may be signed with the previous secret while secrets rotate', async () => {
    expect((await post(opened, { 'x-hub-signature-256': sign(opened, PREVIOUS) })).status).toBe(202);
  });

  it.each([
    ['emoji', '{"zen":"🚀 é","hook_id":1}'],
    ['a literal backslash-u', '{"zen":"\\\\u2028 \\u2028","hook_id":1}'],
    ['CRLF', '{\r\n"zen":"x",\r\n"hook_id":1}\r\n'],
    ['a byte order mark', '\uFEFF{"zen":"x","hook_id":1}'],
    ['unsorted keys', '{"hook_id":1,"zen":"x","a":1}'],
    ['duplicate keys', '{"zen":"x","zen":"y","hook_id":1}'],
  ])('case 68: verifies over the bytes received: %s', async (_, text) => {
    const body = text.replace('"zen"', '"action":"x","anything":1,"zen"');
    expect((await post(body, { 'x-github-event': 'something_new' })).status).toBe(202);
    const [stored] = await inbox();
    expect(stored?.body.equals(Buffer.from(body))).toBe(true);
  });

  it('answers a ping with 200 and stores nothing', async () => {
    const body = '{"zen":"Speak like a human.","hook_id":31}';
    expect((await post(body, { 'x-github-event': 'ping' })).status).toBe(200);
    expect(await inbox()).toEqual([]);
  });

  it('case 6: a push of 20 MB is accepted and verified over the raw bytes', async () => {
    const push = JSON.stringify({
      ref: 'refs/heads/main',
      before: 'a'.repeat(40),
      after: 'b'.repeat(40),
      repository: {},
      installation: { id: 1 },
      commits: Array.from({ length: 200 }, () => ({ message: 'm'.repeat(100_000) })),
    });
    expect(push.length).toBeGreaterThan(20_000_000);
    expect((await post(push, { 'x-github-event': 'push' })).status).toBe(202);
    const { rows } = await testing.database.pool.query('select length(body) as n from delivery');
    expect(rows).toEqual([{ n: push.length }]);
  });

  it('OPS-1, case 3: is answered once it is stored: that is all that is waited for, and no work was begun', async () => {
    let stored: () => void = () => {};
    const storing = new Promise<void>((done) => {
      stored = done;
    });
    const asked: string[] = [];
    const slow = await edge(async ({ id }) => {
      asked.push(id);
      await storing;
      return { fresh: true };
    });
    let answered = false;
    const answer = post(opened, { 'x-github-delivery': 'slow' }, slow.url).finally(() => {
      answered = true;
    });
    await expect.poll(() => asked).toEqual(['slow']);
    expect(answered).toBe(false);
    stored();
    expect((await answer).status).toBe(202);
    slow.server.closeAllConnections();
    await new Promise((done) => slow.server.close(done));
    // the real store: nobody works the queue here, and the answer came all the same
    await post(opened);
    expect((await inbox()).map(({ state }) => state)).toEqual(['stored']);
    expect(await jobs()).toHaveLength(1);
  });
});

describe('a delivery that is not', () => {
  it('attack 2: a SHA-1 signature alone is 401 and stores nothing', async () => {
    const sha1 = `sha1=${createHmac('sha1', SECRET).update(opened).digest('hex')}`;
    const answer = await post(opened, { 'x-hub-signature-256': undefined, 'x-hub-signature': sha1 });
    expect(answer.status).toBe(401);
    expect(await inbox()).toEqual([]);
  });

  const right = sign(opened).slice('sha256='.length);
  // a trailing space (case 68) is HTTP's own: no server sees it, so it is neither right nor wrong
  const wrong: [string, string | undefined][] = [
    ['absent', undefined],
    ['empty', ''],
    ['of SHA-1', `sha1=${right.slice(0, 40)}`],
    ['the right length, wrong value', `sha256=${'0'.repeat(64)}`],
    ['too short', `sha256=${right.slice(0, 63)}`],
    ['too long', `sha256=${right}0`],
    ['upper-case hex', `sha256=${right.toUpperCase()}`],
    ['without sha256=', right],
    ['64 multi-byte characters', `sha256=${'\u00e9'.repeat(64)}`],
    ['two in one', `sha256=${right}, sha256=${right}`],
    ['followed by something', `sha256=${right};`],
  ];
  it.each(wrong)(
    'attack 3, case 68: a signature header that is %s is 401, never 500, and stores nothing',
    async (_, header) => {
      const answer = await post(opened, { 'x-hub-signature-256': header });
      expect(answer.status).toBe(401);
      expect(await inbox()).toEqual([]);
    },
  );

  it('case 68: two signature headers are 401, even when both are right', async () => {
    const status = await new Promise<number>((done, failed) => {
      const sent = httpRequest(
        one.url,
        {
          method: 'POST',
          headers: [
            ...['Host', new URL(one.url).host, 'Content-Type', 'application/json'],
            ...['X-GitHub-Event', 'pull_request', 'X-GitHub-Delivery', 'two-headers'],
            ...['X-Hub-Signature-256', sign(opened), 'X-Hub-Signature-256', sign(opened)],
            ...['Content-Length', String(opened.length)],
          ],
        },
        (response) => {
          response.resume();
          done(response.statusCode ?? 0);
        },
      );
      sent.on('error', failed);
      sent.end(opened);
    });
    expect(status).toBe(401);
    expect(await inbox()).toEqual([]);
  });

  it('attack 4: the same JSON in other bytes under the old signature is 401', async () => {
    const spaced = JSON.stringify(JSON.parse(opened.toString()), null, 1);
    expect((await post(spaced, { 'x-hub-signature-256': sign(opened) })).status).toBe(401);
    expect(await inbox()).toEqual([]);
  });

  it.each([
    ['issue_comment'],
    ['push'],
    ['installation'],
    ['installation_repositories'],
    ['repository'],
    ['check_run'],
    ['check_suite'],
    ['workflow_run'],
    ['workflow_job'],
    ['ping'],
  ])('OPS-1: a pull_request body under the unsigned name %s is 400', async (name) => {
    expect((await post(opened, { 'x-github-event': name })).status).toBe(400);
    expect(await inbox()).toEqual([]);
  });

  it.each([
    ['no delivery id', { 'x-github-delivery': undefined }, 400],
    ['a delivery id with a path', { 'x-github-delivery': '../x' }, 400],
    ['no event', { 'x-github-event': undefined }, 400],
    ['an event with capitals', { 'x-github-event': 'Pull_Request' }, 400],
    ['a form', { 'content-type': 'application/x-www-form-urlencoded' }, 415],
    ['no content type', { 'content-type': '' }, 415],
  ])('is refused for %s', async (_, headers, status) => {
    expect((await post(opened, headers)).status).toBe(status);
    expect(await inbox()).toEqual([]);
  });

  it('answers another method with 405', async () => {
    expect((await fetch(one.url)).status).toBe(405);
  });
});

describe('attack 9: a body that means harm', () => {
  it('of 26 MB is 413, declared or not, and nothing is stored', async () => {
    const huge = Buffer.alloc(MAX_BODY_BYTES + 1024 * 1024, 0x20);
    expect((await post(huge)).status).toBe(413);
    const chunked = new ReadableStream<Uint8Array>({
      start(controller) {
        for (let at = 0; at < huge.length; at += 65_536) controller.enqueue(huge.subarray(at, at + 65_536));
        controller.close();
      },
    });
    const init: RequestInit & { duplex: 'half' } = {
      method: 'POST',
      body: chunked,
      duplex: 'half',
      headers: { 'content-type': 'application/json', 'x-hub-signature-256': sign(huge) },
    };
    expect((await fetch(one.url, init)).status).toBe(413);
    expect(await inbox()).toEqual([]);
  });

  it('in many pieces at once, none of them declared, is held to a bound; what came before is taken', async () => {
    const small = await edge(storeDelivery(testing.database), { maxBuffered: 1_000_000 });
    const begin = (body: Buffer) => {
      const headers = {
        'content-type': 'application/json',
        'transfer-encoding': 'chunked',
        'x-github-event': 'something_new',
        'x-github-delivery': `piece-${body.length}`,
        'x-hub-signature-256': sign(body),
      };
      const sent = httpRequest(small.url, { method: 'POST', headers });
      const status = new Promise<number>((done, failed) => {
        sent.on('response', (response) => {
          response.resume();
          done(response.statusCode ?? 0);
        });
        sent.on('error', failed);
      });
      return { sent, status };
    };
    const first = Buffer.from(`{"action":"x","a":"${'a'.repeat(800_000)}"}`);
    const other = Buffer.from(`{"action":"x","a":"${'a'.repeat(400_000)}"}`);
    let arrived = () => 0;
    small.server.once('connection', (socket) => {
      arrived = () => socket.bytesRead;
    });
    const held = begin(first);
    held.sent.write(first.subarray(0, 799_000));
    await expect.poll(() => arrived()).toBeGreaterThan(799_000);
    const late = begin(other);
    late.sent.end(other);
    expect(await late.status).toBe(503);
    held.sent.end(first.subarray(799_000));
    expect(await held.status).toBe(202);
    expect((await post(other, { 'x-github-event': 'something_new' }, small.url)).status).toBe(202);
    small.server.closeAllConnections();
    await new Promise((done) => small.server.close(done));
  });

  it.each([
    ['100,000 levels deep', `{"a":${'['.repeat(100_000)}${']'.repeat(100_000)}}`],
    ['100,000 levels deep and not closed', `{"a":${'{"a":'.repeat(100_000)}`],
    ['not UTF-8', Buffer.concat([Buffer.from('{"a":"'), Buffer.from([0xc3, 0x28]), Buffer.from('"}')])],
    ['not JSON', 'action=opened'],
    ['cut off', opened.subarray(0, opened.length - 1)],
    ['followed by more', Buffer.concat([opened, Buffer.from('{}')])],
    ['an array', '[1]'],
    ['a number', '7'],
    ['empty', ''],
  ])('%s is 400 and stores nothing', async (_, body) => {
    const started = cpuNow();
    expect((await post(body, { 'x-github-event': 'something_new' })).status).toBe(400);
    expect(cpuNow() - started).toBeLessThan(5_000);
    expect(await inbox()).toEqual([]);
  });

  // taken, not refused as the attack has it: GitHub signed it, and case 68 wants what is signed to count
  it('with __proto__ and constructor keys pollutes nothing', async () => {
    const body = '{"__proto__":{"polluted":true},"constructor":{"prototype":{"polluted":true}},"action":"x"}';
    expect((await post(body, { 'x-github-event': 'something_new' })).status).toBe(202);
    expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
  });
});

describe('the same delivery again', () => {
  it('attack 5, case 2: ten times at once on two replicas is one row and one job, all 2xx', async () => {
    const answers = await Promise.all(
      Array.from({ length: 10 }, (_, n) =>
        post(opened, { 'x-github-delivery': 'same' }, n % 2 === 0 ? one.url : two.url),
      ),
    );
    expect(answers.map((a) => a.status)).toEqual(Array(10).fill(202));
    expect(await inbox()).toHaveLength(1);
    expect(await jobs()).toEqual(['delivery:same']);
  });

  it('attack 8: an unfinished one is queued again with fresh attempts, and keeps its first bytes', async () => {
    await post(opened, { 'x-github-delivery': 'unfinished' });
    await testing.database.pool.query(
      `update graphile_worker._private_jobs set attempts = max_attempts, last_error = 'died'`,
    );
    const other = example('pull_request', 'closed');
    const answer = await post(other, { 'x-github-delivery': 'unfinished' });
    expect(answer.body).toEqual({ accepted: true, repeated: true });
    const { rows } = await testing.database.pool.query(
      'select attempts, max_attempts from graphile_worker.jobs where key is not null',
    );
    expect(rows).toEqual([{ attempts: 0, max_attempts: 25 }]);
    expect((await inbox())[0]?.body.equals(opened)).toBe(true);
  });

  it('attack 8: a finished one does nothing else', async () => {
    await post(opened, { 'x-github-delivery': 'finished' });
    await testing.database.pool.query(`update delivery set state = 'done'`);
    await testing.database.pool.query('delete from graphile_worker._private_jobs');
    expect((await post(opened, { 'x-github-delivery': 'finished' })).status).toBe(202);
    expect(await jobs()).toEqual([]);
  });
});

describe('when Postgres is away', () => {
  it('answers 503, so that GitHub counts the delivery as failed and reconciliation asks for it', async () => {
    const away = await edge(() => Promise.reject(new Error('away')));
    expect((await post(opened, {}, away.url)).status).toBe(503);
    away.server.closeAllConnections();
    await new Promise((done) => away.server.close(done));
  });
});
