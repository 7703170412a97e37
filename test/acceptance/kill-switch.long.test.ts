/** The kill switch by the API while the built Action reviews, and what goes on afterwards (CTL-5, CTL-2). */
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { changeOperator } from '../../app/flow/change-operator.ts';
import { eventually, holdingPolicy, seen, spent } from '../helpers/sight.ts';
import { type TestStage, testStage } from '../helpers/stage.ts';

let stage: TestStage;
let folder: string;
beforeAll(async () => {
  stage = await testStage();
  folder = mkdtempSync(join(tmpdir(), 'countersign-kill-'));
});
afterAll(async () => {
  await stage.close();
  rmSync(folder, { recursive: true });
});

describe('the kill switch', { timeout: 180_000 }, () => {
  it('CTL-5: stops a review that is under way, ends its job, holds the gate by name, and lets it go on', async () => {
    const { repository, installation } = await stage.repository({
      name: 'killed',
      policy: holdingPolicy(folder),
    });
    await repository.commit({ branch: 'topic', author: stage.author, files: { 'a.ts': '// HOLD killed\n' } });
    const pull = await repository.openPull({ head: 'topic', user: stage.author });
    await eventually(
      () => existsSync(join(folder, 'killed.begun')),
      () => `not read: ${JSON.stringify(seen(stage, pull))}`,
    );
    const id = String(installation.id);
    const token = await changeOperator(stage.server.deps, 'pager', { change: 'add', installation: id });
    const throwIt = async (on: boolean) => {
      const answer = await fetch(`${stage.server.url}/api/v1/kill-switch`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
        body: JSON.stringify({ installation: id, on, reason: 'a provider leaks prompts' }),
      });
      return answer.json();
    };
    expect(await throwIt(true)).toMatchObject({ changed: true, revoked: 1 });
    const held = await stage.verdict(pull, { until: (run) => run.conclusion === 'action_required' });
    await stage.settle();
    expect(seen(stage, pull)).toMatchObject({ state: 'action_required', mergeable: false });
    expect(held.summary).toMatch(/\| `killed` [^|]*by pager: a provider leaks prompts[^|]*\|/);
    const [job] = stage.gh.actions.runs.filter((run) => run.repository === repository);
    expect([job?.status, job?.conclusion], 'its job was cancelled').toEqual(['completed', 'cancelled']);
    await stage.advance(60_000);
    await stage.settle();
    expect(await spent(stage, repository), 'and no other one started').toMatchObject({ jobs: 1, leases: 1 });

    writeFileSync(join(folder, 'killed.go'), '');
    expect(await throwIt(false)).toMatchObject({ on: false, changed: true });
    await stage.verdict(pull, { until: (run) => run.conclusion === 'success' });
    await stage.settle();
    expect(seen(stage, pull)).toMatchObject({ state: 'success', mergeable: true });
    expect(await spent(stage, repository)).toMatchObject({ jobs: 2, leases: 2 });
    const ends = (await stage.rows(pull)).flatMap((row) =>
      row.kind === 'ticket.ended' ? [row.data.end] : [],
    );
    expect(ends, 'the switch is no failure of the file').toEqual(['reviewed']);
    const missed = await stage.query('select 1 from pool where missed > 0');
    expect(missed, 'nor of the pool').toEqual([]);
  });
});
