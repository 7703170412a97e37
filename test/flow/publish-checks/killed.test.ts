/** The kill switch on GitHub: what was green is so no more, says who and why, and comes back by itself (CTL-5). */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { changeSetting } from '../../../app/flow/change-setting.ts';
import { findRun } from '../../../db/store/run.ts';
import { type GateStage, gateStage } from '../../helpers/gate-stage.ts';

let stage: GateStage;
beforeAll(async () => {
  stage = await gateStage();
});
afterAll(() => stage.close());

test('CTL-5: no success stands while the kill switch is on, its summary names who and why, and off all goes on', async () => {
  const run = await stage.open({ 'a.ts': 'a\n' });
  await run.sync({ 'a.ts': {} });
  await run.review('a.ts');
  await run.decide();
  await stage.work();
  expect(stage.check(run)?.conclusion).toBe('success');
  const installation = (await findRun(stage.database.database.db, run.id))?.installationId ?? '';
  const set = (value: unknown) =>
    changeSetting(stage.deps, {
      installation,
      key: 'kill',
      value,
      by: 'olga',
      reason: 'a *leaked* key',
      via: 'command_line',
    });
  await set('on');
  await stage.work();
  const held = stage.check(run);
  expect(held).toMatchObject({ conclusion: 'action_required' });
  const summary = held?.summary ?? '';
  expect(summary).toContain('`killed` The operator switched everything off: by olga: a ');
  expect(summary, 'free text is neutralised').not.toContain('a *leaked* key');
  await set(undefined);
  await stage.work();
  expect(stage.check(run)?.conclusion).toBe('success');
});
