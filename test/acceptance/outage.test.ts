/** A provider that is away for two hours, on a clock that the test moves (POOL-3). */
import { createServer, type Server } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ScriptedModel, startScriptedModel } from '../../sandbox/demo/model.ts';
import { eventually, seen, spent } from '../helpers/sight.ts';
import { type TestStage, testStage } from '../helpers/stage.ts';

const MINUTE = 60_000;

let stage: TestStage;
let model: ScriptedModel;
let front: Server;
/** What the provider answers: null lets the model speak. */
let fault: { status: number; headers: Record<string, string> } | null = null;
let asked = 0;
let address = '';

beforeAll(async () => {
  stage = await testStage();
  model = await startScriptedModel([
    { line: /BUG/, severity: 'high', lens: 'correctness', title: 'Marked line', body: 'The line is marked.' },
  ]);
  front = createServer(async (request, response) => {
    asked++;
    if (fault !== null) {
      request.resume();
      response.writeHead(fault.status, { 'content-type': 'application/json', ...fault.headers });
      response.end('{"error":{"message":"overloaded","type":"server_error"}}');
      return;
    }
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const answer = await fetch(`${new URL(model.url).origin}${request.url}`, {
      method: request.method ?? 'POST',
      body: Buffer.concat(chunks),
      headers: { 'content-type': 'application/json' },
    });
    response.writeHead(answer.status, { 'content-type': 'application/json' }).end(await answer.text());
  });
  await new Promise<void>((done) => front.listen(0, '127.0.0.1', done));
  const bound = front.address();
  address = `http://127.0.0.1:${typeof bound === 'object' && bound !== null ? bound.port : 0}/v1`;
});
afterAll(async () => {
  await stage.close();
  front.closeAllConnections();
  await new Promise((done) => front.close(done));
  await model.close();
});

const policy = (more = '') => `version: 1
reviewers:
  model:
    uses: openai-compatible
    model: scripted-1
    base_url: ${address}
    lenses: [correctness]
${more}`;

const files = Object.fromEntries(
  [1, 2, 3, 4, 5].map((n) => [`src/f${n}.ts`, `export const f${n} = ${n};\n`]),
);

async function open(name: string, more = '') {
  const { repository } = await stage.repository({ name, policy: policy(more) });
  await repository.commit({ branch: 'topic', author: stage.author, message: 'Add five', files });
  return { repository, pull: await repository.openPull({ head: 'topic', user: stage.author }) };
}

describe('a provider that is away', () => {
  it('POOL-3: for two hours it is said who, since when and until when, nothing is red, and it ends green by itself', async () => {
    fault = { status: 503, headers: {} };
    const { repository, pull } = await open('outage');
    await eventually(
      async () => (await stage.query('select 1 from provider where settled_until is not null')).length === 1,
      () => `the provider is not settled: ${JSON.stringify(seen(stage, pull))}`,
    );
    await stage.settle();
    await stage.advance(6_000); // titles of a wait are written every five seconds
    await stage.settle();
    const waiting = stage.gate(pull);
    expect(seen(stage, pull)).toEqual({
      state: 'in_progress',
      title: 'The reviewing provider does not answer · 0 of 5 files done',
      mergeable: false,
    });
    expect(waiting?.summary, 'who, since when, when it is tried next, and how many files wait').toMatch(
      /\| `provider_down` [^|]*: openai\S+127\.0\.0\.1:\d+ down since [\d\\-]+ [^|]+UTC, next try [\d\\-]+ [^|]+UTC, [45] files waiting \|/,
    );
    expect(waiting?.summary).toMatch(/\| nobody needs to act \|/);

    const shown: string[] = [];
    let minutes = 0;
    for (; minutes < 120; minutes += 10) {
      const before = asked;
      await stage.advance(10 * MINUTE);
      await stage.settle();
      const probes = asked - before;
      expect(probes, 'one ticket at a time is let through to try').toBeLessThanOrEqual(1);
      shown.push(seen(stage, pull)?.state ?? 'none');
    }
    expect(new Set(shown), 'never red, never green, at no moment').toEqual(new Set(['in_progress']));
    const during = await spent(stage, repository);
    expect(
      during['sessions'],
      'an outage costs a handful of tries, not two hours of them',
    ).toBeLessThanOrEqual(12);

    fault = null;
    const soFar = (await stage.rows(pull)).flatMap((row) =>
      row.kind === 'ticket.ended' ? [[row.data.end, row.data.final, row.data.detail]] : [],
    );
    expect(new Set(soFar.map(String)), 'nothing was given up').toEqual(
      new Set(['provider_error,false,model: status 503 server_error']),
    );
    for (; seen(stage, pull)?.state === 'in_progress' && minutes < 240; minutes += 10) {
      await stage.advance(10 * MINUTE);
      await stage.settle();
    }
    const given = (await stage.rows(pull)).flatMap((row) =>
      row.kind === 'ticket.ended' && row.data.final ? [[row.data.end, row.data.detail ?? '']] : [],
    );
    expect(given).toEqual(Array.from({ length: 5 }, () => ['reviewed', '']));
    expect(seen(stage, pull)).toEqual({
      state: 'success',
      title: 'Passed: 5 files reviewed, nothing blocks',
      mergeable: true,
    });
    expect(minutes, 'the longest wait between two tries is an hour').toBeLessThanOrEqual(190);
    expect(stage.gh.comments(pull), 'nobody had to say anything').toEqual([]);
    const changes = await stage.query<{ kind: string }>(
      "select kind from ledger_row where kind = 'provider.changed'",
    );
    expect(changes.length, 'settled and revived are facts of the installation').toBeGreaterThanOrEqual(2);
  });

  it('POOL-3: past the deadline it is red and says so, and a later revival still ends green', async () => {
    fault = { status: 429, headers: { 'retry-after': '60' } };
    const { pull } = await open('deadline', 'gate:\n  deadline: 30m\n');
    await eventually(
      async () => (await stage.query('select 1 from provider where settled_until is not null')).length >= 1,
      () => `the provider is not settled: ${JSON.stringify(seen(stage, pull))}`,
    );
    await stage.settle();
    for (let minutes = 0; minutes < 30; minutes += 10) {
      await stage.advance(10 * MINUTE);
      await stage.settle();
    }
    expect(seen(stage, pull)).toMatchObject({
      state: 'failure',
      title: 'The reviewing provider does not answer, past the deadline · 1 more reason',
      mergeable: false,
    });
    expect(stage.gate(pull)?.summary).toContain('(its time is up)');
    expect(stage.gate(pull)?.summary, 'and which files').toMatch(
      /\| `ticket_unavailable` Files could not be reviewed: no provider until the deadline \| `src\/f1\.ts`, /,
    );
    expect(stage.gate(pull)?.summary).not.toContain('Reviews are under way');

    fault = null;
    for (let minutes = 0; seen(stage, pull)?.state !== 'success' && minutes < 120; minutes += 10) {
      await stage.advance(10 * MINUTE);
      await stage.settle();
    }
    expect(seen(stage, pull)).toMatchObject({ state: 'success', mergeable: true });
    await stage.settle();
    const kept = (await stage.rows(pull)).flatMap((row) =>
      row.kind === 'gate.decided' ? [row.data.conclusion] : [],
    );
    const verdicts = kept.filter((one) => one !== 'in_progress');
    expect([verdicts[0], verdicts.at(-1)], 'both verdicts are on the record').toEqual(['failure', 'success']);
  });
});
