/** A verdict that becomes undecided again on the same head gets another check run, whatever made it so (PUB-2). */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { storePolicy } from '../../../db/store/policy.ts';
import { updateRun } from '../../../db/store/run.ts';
import { type GateStage, gateStage, type TestRun } from '../../helpers/gate-stage.ts';
import { app as appActor, cause } from '../../helpers/ledger.ts';

let stage: GateStage;
let serial = 0;
beforeAll(async () => {
  stage = await gateStage();
});
afterAll(async () => {
  await stage.close();
});

const by = { block: null, actor: appActor, cause };

async function green(policy = 'version: 1\n'): Promise<{ run: TestRun; path: string }> {
  const path = `turn-${++serial}.ts`;
  const run = await stage.open({ [path]: 'one\ntwo\n' }, { policy });
  await run.sync({ [path]: {} });
  await run.review(path);
  await decided(run);
  expect(stage.check(run)).toMatchObject({ conclusion: 'success' });
  return { run, path };
}
async function decided(run: TestRun): Promise<void> {
  await run.decide();
  await stage.work();
}
const gates = (run: TestRun, sha = run.pull.head.sha) =>
  stage.gh.checkRuns(run.repository, sha).filter((check) => check.name === 'countersign');

/** The governing check run is a new one and under way; the concluded one stays as it was. */
function turned(run: TestRun, before: number): void {
  const all = gates(run);
  expect(all).toHaveLength(before + 1);
  expect(stage.check(run)).toMatchObject({
    status: expect.stringMatching(/in_progress|queued/),
    conclusion: null,
  });
  expect(stage.check(run)?.externalId.endsWith(`:${before + 1}`)).toBe(true);
  const [old] = all.filter((check) => check !== stage.check(run));
  expect(old).toMatchObject({ status: 'completed', conclusion: 'success' });
}

describe('PUB-2: another check run, n+1', () => {
  test('when the base branch changes (retarget)', async () => {
    const { run } = await green();
    await run.rows((unit) => updateRun(unit.tx, run.id, { baseRef: 'other' }).then(() => {}));
    await decided(run);
    turned(run, 1);
  });

  test('when content is reviewed under another key: a rerun, another policy, another reviewer', async () => {
    const { run, path } = await green();
    await run.sync({ [path]: { key: 'e'.repeat(64) } });
    await decided(run);
    turned(run, 1);
    await run.review(path);
    await decided(run);
    expect(stage.check(run)).toMatchObject({ conclusion: 'success' });
    expect(gates(run)).toHaveLength(2);
    // and once more
    await run.sync({ [path]: { key: 'd'.repeat(64) } });
    await decided(run);
    expect(gates(run)).toHaveLength(3);
  });

  test('when it is a draft again, and when it is ready', async () => {
    const { run } = await green();
    await run.rows((unit) => updateRun(unit.tx, run.id, { draft: true }).then(() => {}));
    await decided(run);
    turned(run, 1);
    expect(stage.check(run)).toMatchObject({ status: 'queued' });
    await run.rows((unit) => updateRun(unit.tx, run.id, { draft: false }).then(() => {}));
    await decided(run);
    expect(stage.check(run)).toMatchObject({ conclusion: 'success' });
    expect(gates(run)).toHaveLength(2);
  });

  test('when a failure comes to life again by itself (revival): the failure is not set back', async () => {
    const path = `turn-${++serial}.ts`;
    const run = await stage.open({ [path]: 'one\n' });
    await run.sync({ [path]: {} });
    await decided(run);
    await stage.advance(7 * 3_600_000);
    expect(stage.check(run)).toMatchObject({ conclusion: 'failure' });
    // a person asks again: the machine has its time anew
    await run.rows((unit) => {
      unit.append('human.acted', {
        ...by,
        actor: { kind: 'person', id: '7', via: 'comment' },
        data: {
          act: 'rerun',
          head: run.pull.head.sha,
          permission: 'write',
          clause: 'all',
          paths: [],
          self: false,
          text: null,
        },
      });
    });
    await decided(run);
    const [newest, ...older] = gates(run).sort((a, b) => b.id - a.id);
    expect(newest).toMatchObject({ status: 'in_progress' });
    expect(older).toMatchObject([{ conclusion: 'failure' }]);
  });

  test('case 36: never back to in_progress on the one that was concluded, in any order of publishing', async () => {
    const { run, path } = await green();
    const first = stage.check(run);
    const since = stage.gh.requests.length;
    for (const key of ['a', 'b', 'c']) {
      await run.sync({ [path]: { key: key.repeat(64) } });
      await Promise.all([decided(run), decided(run)]);
      await run.review(path);
      await Promise.all([decided(run), decided(run)]);
    }
    await stage.advance(120_000);
    expect(stage.check(run)).toMatchObject({ conclusion: 'success' });
    const writes = stage.gh.requests
      .slice(since)
      .filter((one) => one.method === 'PATCH' && one.path.endsWith(`/${first?.id}`));
    expect(writes).toEqual([]);
    // the intermediate ones were concluded or taken over: exactly the newest governs, none is left open
    expect(gates(run).filter((check) => check.status !== 'completed')).toEqual([]);
  });

  test('force push away and back: the green is cancelled, and back on that commit n+1 starts', async () => {
    const { run, path } = await green();
    const sha = run.pull.head.sha;
    await run.pull.push({ message: 'Away', files: { [path]: 'away\n' } });
    await run.sync({ [path]: {} });
    await decided(run);
    expect(gates(run, sha)).toMatchObject([{ conclusion: 'cancelled' }]);
    expect(gates(run, sha)[0]?.summary).toContain('superseded by');
    await run.pull.forcePush(sha);
    await run.told();
    await decided(run);
    const all = gates(run, sha);
    expect(all).toHaveLength(2);
    expect(stage.check(run)).toMatchObject({ status: 'in_progress' });
    expect(all.filter((check) => check !== stage.check(run))).toMatchObject([{ conclusion: 'cancelled' }]);
  });

  test('GAT-3: advisory and enforcing verdicts have names of their own; a change of mode leaves no green behind', async () => {
    const { run } = await green();
    const hash = await stage.database.database.transaction((tx) =>
      storePolicy(tx, Buffer.from('version: 1\nmode: advisory\n')),
    );
    await run.rows(async (unit) => {
      const data = { state: 'valid', hash, commit: run.pull.head.sha, mode: 'advisory' } as const;
      unit.append('run.policy', { ...by, data });
      await updateRun(unit.tx, run.id, { mode: 'advisory' });
    });
    await decided(run);
    expect(stage.check(run)).toMatchObject({ conclusion: 'cancelled', title: 'Reported under another name' });
    expect(stage.check(run, 'countersign (advisory)')).not.toBeNull();
  });
});
