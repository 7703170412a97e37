import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { STUCK_ATTEMPTS } from '../../app/domain/check.ts';
import { publishChecks } from '../../app/flow/publish-checks.ts';
import { listChecks, listStuckChecks } from '../../db/store/check.ts';
import { type GateStage, gateStage, type TestFinding, type TestRun } from '../helpers/gate-stage.ts';

let stage: GateStage;
beforeAll(async () => {
  stage = await gateStage();
});
afterAll(() => stage.close());

const FINDINGS = 'countersign / findings';
let serial = 0;

/** A pull request of one file with so many lines, read, its run ready to be reviewed. */
async function ready(lines = 1, policy = 'version: 1\n'): Promise<{ run: TestRun; path: string }> {
  const path = `file-${++serial}.ts`;
  const run = await stage.open({ [path]: 'line\n'.repeat(lines) }, { policy });
  await run.sync({ [path]: {} });
  return { run, path };
}
async function decided(run: TestRun): Promise<void> {
  await run.decide();
  await stage.work();
}
const ours = (run: TestRun, name: string) =>
  stage.gh.checkRuns(run.repository, run.pull.head.sha).filter((check) => check.name === name);
const many = (n: number, lines: number): TestFinding[] =>
  Array.from({ length: n }, (_, i) => ({
    title: `Finding ${i + 1}`,
    line: (i % lines) + 1,
    severity: 'high' as const,
  }));
const row = async (run: TestRun, name = 'countersign') =>
  (
    await listChecks(stage.database.database.db, {
      repositoryId: String(run.repository.id),
      sha: run.pull.head.sha,
      name,
    })
  )[0];
const writes = (since: number) =>
  stage.gh.requests
    .slice(since)
    .filter((one) => (one.method === 'POST' && one.path.endsWith('/check-runs')) || one.method === 'PATCH');

describe('annotations', () => {
  for (const [n, posted, batches] of [
    [1, 1, 1],
    [50, 50, 1],
    [51, 51, 2],
    [500, 500, 10],
  ] as const) {
    test(`case 31: ${n} findings: one check run, ${batches} writes, the conclusion with the last`, async () => {
      const { run, path } = await ready(100);
      await run.review(path, many(n, 100));
      await decided(run);
      const since = stage.gh.requests.length;
      expect(ours(run, FINDINGS)).toHaveLength(1);
      const check = stage.check(run, FINDINGS);
      expect(check).toMatchObject({ conclusion: 'failure' });
      expect(check?.annotations).toHaveLength(posted);
      expect(new Set(check?.annotations.map((one) => one.title)).size).toBe(posted);
      expect((await row(run, FINDINGS))?.annotations).toBe(posted);
      await decided(run);
      expect(writes(since)).toHaveLength(0);
    });
  }

  test('case 31: no finding makes no findings check, and the gate is green', async () => {
    const { run, path } = await ready();
    await run.review(path);
    await decided(run);
    expect(ours(run, FINDINGS)).toHaveLength(0);
    expect(stage.check(run)?.conclusion).toBe('success');
  });

  test('case 31: 2,607 findings: the cap is posted, the rest is counted and linked', async () => {
    const { run, path } = await ready(50);
    await run.review(path, many(2_607, 50));
    await decided(run);
    const check = stage.check(run, FINDINGS);
    expect(check?.annotations).toHaveLength(500);
    expect(check?.summary).toContain('**2107 more** than the policy lets us annotate');
    expect(check?.summary).toContain(`https://countersign.test/runs/${run.id}`);
    expect(check?.title).toBe('2607 findings block');
  });

  test('case 31: 2,607 findings under a cap of 3,000 are all posted, in 53 writes', async () => {
    const { run, path } = await ready(50, 'version: 1\npublish:\n  annotations: 3000\n');
    await run.review(path, many(2_607, 50));
    const since = stage.gh.requests.length;
    await decided(run);
    expect(stage.check(run, FINDINGS)?.annotations).toHaveLength(2_607);
    expect(writes(since)).toHaveLength(53 + 1);
  });

  test('TKT-7, case 31: a crash after batch 3 and a retry append nothing twice', async () => {
    const { run, path } = await ready(100);
    await run.review(path, many(230, 100));
    // batch 1 goes with the create; the answer to the PATCH of batch 3 is lost after it was done
    let patches = 0;
    const fault = stage.gh.faults.add({
      on: 'checks/update',
      when: 'after',
      status: 502,
      times: 1,
      match: (request) => request.path.includes('/check-runs/') && ++patches === 2,
    });
    await decided(run);
    expect(fault.hits).toBe(1);
    const check = stage.check(run, FINDINGS);
    expect(check).toMatchObject({ status: 'in_progress', conclusion: null });
    expect(check?.annotations).toHaveLength(150);
    expect((await row(run, FINDINGS))?.annotations).toBe(100);
    await stage.advance(60_000);
    expect(ours(run, FINDINGS)).toHaveLength(1);
    expect(check).toMatchObject({ status: 'completed', conclusion: 'failure' });
    expect(check?.annotations.map((one) => one.title)).toEqual(
      Array.from({ length: 230 }, (_, i) => `F${i + 1} high: Finding ${i + 1}`),
    );
  });

  test('case 29: lines are counted by LF from the blob; a line past the end goes to the summary with the reason', async () => {
    const path = 'odd-lines.txt';
    const run = await stage.open({
      [path]: 'one\r\ntwo\r\nthr\ree\r\nfour\r\nfi\u2028ve\r\nsix\r\nsev\fen\r\nlast',
    });
    await run.sync({ [path]: {} });
    await run.review(path, [
      { title: 'On the last line', line: 8 },
      { title: 'Counted by another rule', line: 11 },
      { title: 'Ends past the end', line: 7, end: 30 },
    ]);
    await decided(run);
    const check = stage.check(run, FINDINGS);
    expect(check?.annotations.map((one) => [one.title, one.start_line, one.end_line])).toEqual([
      ['F1 high: On the last line', 8, 8],
      ['F3 high: Ends past the end', 7, 8],
    ]);
    expect(check?.summary).toContain('line 11 is past the end \\(8 lines\\)');
    expect(check?.summary).toContain('Counted by another rule');
  });

  test('case 24: a finding on a deleted file is shown in the summary, not on a line', async () => {
    await stage.repository.commit({ message: 'Old', files: { 'old/auth.ts': 'old\n' } });
    const run = await stage.open({ 'old/auth.ts': null });
    await run.sync({ 'old/auth.ts': {} });
    await run.review('old/auth.ts', [{ title: 'Still used' }]);
    await decided(run);
    const check = stage.check(run, FINDINGS);
    expect(check?.annotations).toHaveLength(0);
    expect(check?.summary).toContain('the file is not in this head');
    expect(check?.conclusion).toBe('failure');
  });

  test('case 33: one annotation that GitHub refuses is found by halving and moved to the summary; no other is lost', async () => {
    const { run, path } = await ready(100);
    await run.review(path, many(60, 100));
    const refusing = stage.gh.faults.add({
      on: ['checks/create', 'checks/update'],
      status: 422,
      message: 'Invalid request.',
      match: ({ body }) =>
        JSON.stringify((body as { output?: { annotations?: unknown } }).output?.annotations ?? []).includes(
          'F17 ',
        ),
    });
    await decided(run);
    refusing.remove();
    const check = stage.check(run, FINDINGS);
    expect(ours(run, FINDINGS)).toHaveLength(1);
    expect(check).toMatchObject({ conclusion: 'failure' });
    const titles = check?.annotations.map((one) => one.title) ?? [];
    expect(titles).toHaveLength(59);
    expect(new Set(titles).size).toBe(59);
    expect(titles).not.toContain('F17 high: Finding 17');
    expect(check?.summary).toContain('GitHub refused it');
    expect(check?.summary).toContain('Finding 17');
  });

  test('case 33: where GitHub refuses every annotation, all are shown in the summary, and halving ends', async () => {
    const { run, path } = await ready(100);
    await run.review(path, many(120, 100));
    const refusing = stage.gh.faults.add({
      on: ['checks/create', 'checks/update'],
      status: 422,
      message: 'Invalid request.',
      match: ({ body }) =>
        (body as { output?: { annotations?: unknown[] } }).output?.annotations !== undefined,
    });
    const since = stage.gh.requests.length;
    await decided(run);
    refusing.remove();
    const check = stage.check(run, FINDINGS);
    expect(check).toMatchObject({ conclusion: 'failure' });
    expect(check?.annotations).toHaveLength(0);
    expect(check?.summary?.match(/GitHub refused it/g)).toHaveLength(100);
    expect(check?.summary).toContain('… and 20 more findings');
    expect(writes(since).length).toBeLessThan(75);
    await decided(run);
    expect(ours(run, FINDINGS)).toHaveLength(1);
  });

  test('PUB-3: a finding that ends on the same head starts another check run; an added one is appended', async () => {
    const { run, path } = await ready(10);
    await run.review(path, many(2, 10));
    await decided(run);
    const first = stage.check(run, FINDINGS);
    await run.review(path, [{ title: 'Another', line: 3 }]);
    await decided(run);
    expect(stage.check(run, FINDINGS)?.id).toBe(first?.id);
    expect(first?.annotations).toHaveLength(3);
    await run.rows(async (unit) => {
      for (const finding of [1, 2, 3]) {
        unit.append('finding.ended', {
          block: null,
          actor: { kind: 'app', id: '1', via: 'delivery' },
          cause: { kind: 'delivery', id: 'd', sha256: null },
          data: { finding, state: 'dismissed', reason: 'test', head: run.pull.head.sha, text: null },
        });
      }
    });
    await decided(run);
    expect(stage.check(run)?.conclusion).toBe('success');
    const second = stage.check(run, FINDINGS);
    expect(second?.id).not.toBe(first?.id);
    expect(second).toMatchObject({ conclusion: 'success', title: 'No open findings' });
  });

  test('REV-8: a secret in a finding is redacted again before it leaves the server', async () => {
    const token = `ghp_${'a1B2c3D4'.repeat(5).slice(0, 36)}`;
    const { run, path } = await ready();
    await run.review(path, [{ title: `Leaks ${token}`, body: `The token ${token} is in the file.` }]);
    await decided(run);
    const shown = JSON.stringify([stage.check(run)?.summary, stage.check(run, FINDINGS)?.annotations]);
    expect(shown).not.toContain(token);
    expect(shown).toContain('[redacted:');
  });
});

describe('reconciling', () => {
  test('case 36: a create that answers 502 after creating is found by its external id: one check run', async () => {
    const { run, path } = await ready();
    const fault = stage.gh.faults.add({ on: 'checks/create', when: 'after', status: 502, times: 1 });
    await decided(run);
    expect(fault.hits).toBe(1);
    expect(ours(run, 'countersign')).toHaveLength(1);
    expect(await row(run)).toMatchObject({ state: 'intended', githubId: null, attempts: 1 });
    await run.review(path);
    await decided(run);
    expect(ours(run, 'countersign')).toHaveLength(1);
    expect(stage.check(run)).toMatchObject({ conclusion: 'success' });
    expect(await row(run)).toMatchObject({ n: 1, state: 'concluded', attempts: 0 });
  });

  test('case 36: a create that answers 502 before creating is done again, under the same number', async () => {
    const { run } = await ready();
    stage.gh.faults.add({ on: 'checks/create', when: 'before', status: 502, times: 1 });
    await decided(run);
    expect(ours(run, 'countersign')).toHaveLength(0);
    await stage.advance(10_000);
    expect(ours(run, 'countersign')).toHaveLength(1);
    expect(stage.check(run)?.externalId.endsWith(':1')).toBe(true);
  });

  test('case 36: of two check runs of one intent the newest is completed and the other is closed out', async () => {
    const { run, path } = await ready();
    stage.gh.faults.add({ on: 'checks/create', when: 'after', status: 502, times: 1 });
    await decided(run);
    const [first] = ours(run, 'countersign');
    // a retry of somebody in between (a proxy) made it twice
    const github = await stage.deps.github.installation(
      String(stage.gh.world.installations.find((one) => one.app === stage.app)?.id),
    );
    const at = { id: String(run.repository.id), owner: 'acme', name: run.repository.name };
    await github.createCheckRun(at, {
      name: 'countersign',
      headSha: run.pull.head.sha,
      externalId: first?.externalId ?? '',
      status: 'in_progress',
      title: 'Twin',
      summary: 'Twin',
    });
    await run.review(path);
    await decided(run);
    expect(first).toMatchObject({ conclusion: 'cancelled', title: 'Made twice' });
    expect(stage.check(run)).toMatchObject({ conclusion: 'success' });
    expect(ours(run, 'countersign')).toHaveLength(2);
  });

  test('case 7: a fork commit that has not arrived (422 twice) is tried again with back-off until the gate is there', async () => {
    const { run } = await ready();
    const fault = stage.gh.faults.add({
      on: 'checks/create',
      status: 422,
      message: 'No commit found for SHA',
      times: 2,
    });
    await decided(run);
    expect(ours(run, 'countersign')).toHaveLength(0);
    await stage.advance(2_500);
    expect(fault.hits).toBe(2);
    await stage.advance(2_500);
    expect(ours(run, 'countersign')).toHaveLength(0);
    await stage.advance(2_500);
    expect(ours(run, 'countersign')).toHaveLength(1);
    expect(stage.check(run)?.status).toBe('in_progress');
  });

  test('OPS-6: a rate limit is waited out as told', async () => {
    const { run } = await ready();
    stage.gh.faults.add({ on: 'checks/create', status: 429, headers: { 'retry-after': '120' }, times: 1 });
    await decided(run);
    await stage.advance(60_000);
    expect(ours(run, 'countersign')).toHaveLength(0);
    await stage.advance(61_000);
    expect(ours(run, 'countersign')).toHaveLength(1);
  });

  test('PUB-1: updates under way are 5 s apart; a conclusion never waits', async () => {
    const run = await stage.open({ 'p1.ts': 'a\n', 'p2.ts': 'b\n' });
    await decided(run);
    const since = stage.gh.requests.length;
    await run.sync({ 'p1.ts': {}, 'p2.ts': { block: 'second-block' } });
    await decided(run);
    expect(writes(since)).toHaveLength(0);
    expect(stage.check(run)?.title).toBe('Reading the pull request');
    await stage.advance(5_100);
    expect(writes(since)).toHaveLength(1);
    expect(stage.check(run)?.title).toBe('Reviews are under way · 0 of 2 files done');
    await run.review('p1.ts');
    await run.review('p2.ts');
    await decided(run);
    expect(stage.check(run)?.conclusion).toBe('success');
    expect(writes(since)).toHaveLength(2);
  });

  test('PUB-2: ten publishers at once write once', async () => {
    const { run } = await ready();
    await run.decide();
    const input = { repository: String(run.repository.id), sha: run.pull.head.sha, name: 'countersign' };
    await stage.work();
    const since = stage.gh.requests.length;
    await Promise.all(Array.from({ length: 10 }, () => publishChecks(stage.deps, input)));
    expect(writes(since)).toHaveLength(0);
    expect(ours(run, 'countersign')).toHaveLength(1);
  });

  test('case 41: asked for again, a check ends in its conclusion again, on an old head as well', async () => {
    const { run, path } = await ready();
    await run.review(path);
    await decided(run);
    const old = run.pull.head.sha;
    const ask = (commit: string) =>
      publishChecks(stage.deps, {
        repository: String(run.repository.id),
        sha: commit,
        name: 'countersign',
        again: true,
      });
    const check = stage.check(run);
    // what GitHub shows by itself after a request
    Object.assign(check ?? {}, { status: 'queued', conclusion: null });
    expect(await ask(old)).toMatchObject({ kind: 'updated', n: 1 });
    expect(check).toMatchObject({ status: 'completed', conclusion: 'success' });
    await run.pull.push({ message: 'More', files: { [path]: 'other\n' } });
    await run.told();
    await decided(run);
    Object.assign(check ?? {}, { status: 'queued', conclusion: null });
    await ask(old);
    expect(check).toMatchObject({ status: 'completed', conclusion: 'cancelled' });
  });

  // what the case says of reading other people's results waits for verify commands (VER-1)
  test('case 40: gate and findings are on the head of the pull request and on no other commit', async () => {
    const { run, path } = await ready();
    await run.review(path, [{}]);
    await decided(run);
    const shas = new Set(
      stage.gh.world.checkRuns
        .filter((check) => check.externalId.includes(run.pull.head.sha) || check.summary?.includes(run.id))
        .map((check) => check.headSha),
    );
    expect([...shas]).toEqual([run.pull.head.sha]);
  });
});

describe('a check run that cannot be written', () => {
  test('PUB-2: after 25 failures in a row it is stuck: named with its code, tried once an hour, and well again by itself', async () => {
    const { run, path } = await ready();
    const refusing = stage.gh.faults.add({ on: 'checks/create', status: 422, message: 'Invalid request.' });
    await decided(run);
    for (let n = 0; n < 40 && ((await row(run))?.attempts ?? 0) < 25; n++) await stage.advance(601_000);
    expect(await row(run)).toMatchObject({ attempts: 25, fault: 'github_refused' });
    const [stuck, ...others] = await listStuckChecks(stage.database.database.db, run.id, STUCK_ATTEMPTS, 10);
    expect(others).toEqual([]);
    expect(stuck?.failingSinceMs).toBeLessThan(stuck?.dueAtMs ?? 0);
    const hits = refusing.hits;
    await stage.advance(601_000);
    expect(refusing.hits).toBe(hits);
    await stage.advance(3_600_000);
    expect(refusing.hits).toBe(hits + 1);
    refusing.remove();
    await run.review(path);
    await stage.advance(3_601_000);
    expect(await row(run)).toMatchObject({ attempts: 0, fault: null, failingSinceMs: null });
    expect(await listStuckChecks(stage.database.database.db, run.id, STUCK_ATTEMPTS, 10)).toEqual([]);
    expect(ours(run, 'countersign')).toHaveLength(1);
  });

  test('case 77: a rate limit is no failure, however often it is met', async () => {
    const { run } = await ready();
    const limit = stage.gh.faults.add({ on: 'checks/create', status: 429, headers: { 'retry-after': '30' } });
    await decided(run);
    for (let n = 0; n < 30; n++) await stage.advance(31_000);
    expect(limit.hits).toBeGreaterThan(25);
    expect(await row(run)).toMatchObject({ attempts: 0, fault: null });
    limit.remove();
    await stage.advance(31_000);
    expect(ours(run, 'countersign')).toHaveLength(1);
    // nothing is ever said about limits on the pull request (case 77)
    expect(stage.gh.comments(run.pull)).toEqual([]);
  });
});
