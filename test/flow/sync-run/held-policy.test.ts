import { afterAll, beforeAll, expect, test } from 'vitest';
import { parsePolicy } from '../../../app/domain/policy.ts';
import { renderReport } from '../../../app/domain/summary/render.ts';
import { makeReport } from '../../../app/domain/summary/report.ts';
import { changeSetting } from '../../../app/flow/change-setting.ts';
import { decideGate } from '../../../app/flow/decide-gate.ts';
import { enrol } from '../../../app/flow/enrol.ts';
import { judgeRun } from '../../../app/flow/judge-run.ts';
import { simulateRuns } from '../../../app/flow/simulate-runs.ts';
import { loadPolicy } from '../../../db/store/policy.ts';
import { productNow } from '../../../db/store/run.ts';
import { readAll, type SyncStage, syncStage } from '../../helpers/sync.ts';

let stage: SyncStage;
beforeAll(async () => {
  stage = await syncStage();
});
afterAll(() => stage.close());

const ABOUT = {
  published: { run: 'r', seq: 1, hash: 'h', note: 'n' },
  places: { run: 'https://cs.test/runs/r', repository: 'https://github.test/acme/shop' },
  shared: [],
};
const never = (): never => {
  throw new Error('no policy');
};
const LAX = readAll('gate: {block_at: critical}\nreview: {parallel: 2}\n');

test('POL-2: a policy is held where it is read; runs, verdicts and the branch name what counts, and replay needs no settings', async () => {
  const repository = await stage.repository({ 'a.ts': 'one\n' }, LAX);
  await repository.commit({ branch: 'topic', files: { 'a.ts': 'two\n' } });
  const pull = await repository.openPull({ head: 'topic' });
  const id = await stage.open(pull);
  await stage.sync(id);
  const before = await stage.run(id);
  const place = { repository: before.repositoryId, baseRef: 'main' };
  await enrol(stage.deps, place);
  const installation = before.installationId;
  const set = (key: string, value: unknown) =>
    changeSetting(stage.deps, {
      installation,
      key: `policy.${key}`,
      value,
      by: 'olga',
      reason: 'audit',
      via: 'command_line',
    });
  await set('gate.block_at', 'medium');
  await set('people.approve', 'maintain');
  await set('review.parallel', 8);
  expect(await stage.jobs()).toContain(`enrol:${place.repository}:main`);
  const { enrolment } = await enrol(stage.deps, place);
  await stage.sync(id);
  const run = await stage.run(id);
  expect(run.policyHash).not.toBe(before.policyHash);
  expect(enrolment.policyHash, 'the branch and the run say the same').toBe(run.policyHash);
  const bytes = await loadPolicy(stage.deps.database.db, run.policyHash ?? '');
  const reading = parsePolicy(bytes ?? Buffer.alloc(0));
  expect(
    reading.ok && [
      reading.policy.gate.block_at,
      reading.policy.people.approve,
      reading.policy.review.parallel,
    ],
  ).toEqual(['medium', 'maintain', 2]);
  expect((await stage.state(id)).policy).toMatchObject({ held: ['gate.block_at', 'people.approve'] });
  const judged = await judgeRun(
    stage.deps,
    stage.deps.database.db,
    run,
    await productNow(stage.deps.database.db),
  );
  expect(judged.policy?.gate.block_at).toBe('medium');
  const summary = renderReport(makeReport(judged.state, judged.decision, new Map(), ABOUT));
  expect(summary).toContain('the settings of this installation decide `gate.block_at`, `people.approve`');
  await decideGate(stage.deps, { run: id });
  for (const key of ['gate.block_at', 'people.approve', 'review.parallel']) await set(key, undefined);
  const proposed = { policy: judged.policy ?? never(), hash: run.policyHash ?? '' };
  const [again] = await simulateRuns(stage.deps, { since: null, most: 1, proposed });
  expect(again?.outcome, 'from rows and hash alone').toMatchObject({ kind: 'decided', mismatches: [] });
  await stage.sync(id);
  expect((await stage.run(id)).policyHash, 'and back, by itself').toBe(before.policyHash);
});
