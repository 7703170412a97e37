/** Repositories that have the App and no policy: what it does there, what it asks for, and how it begins. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { NOTHING, seen, spent, sticky } from '../helpers/sight.ts';
import { markerPolicy, type TestStage, testStage } from '../helpers/stage.ts';

let stage: TestStage;
beforeAll(async () => {
  stage = await testStage();
});
afterAll(() => stage.close());

const POLICY = '.github/countersign.yml';

describe('a repository without policy', () => {
  it('RUN-9: nothing asks for the check: no check, no run, no answer, nothing spent', async () => {
    const { repository } = await stage.repository({ name: 'silent', policy: null, workflow: false });
    repository.requiredChecks.length = 0;
    await repository.commit({ branch: 'topic', author: stage.author, files: { 'a.ts': 'a\n' } });
    const pull = await repository.openPull({ head: 'topic', user: stage.author });
    const asked = await pull.comment(stage.author, '/status\n/help');
    await pull.push({ files: { 'b.ts': 'b\n' } });
    await stage.settle();
    await stage.advance(6 * 60_000); // a reconciliation finds nothing to do either
    await stage.settle();
    expect(stage.gh.world.checkRuns.filter((run) => run.repositoryId === repository.id)).toEqual([]);
    expect(asked.reactions).toEqual([]);
    expect(stage.gh.comments(pull)).toEqual([asked]);
    expect(await stage.run(pull)).toBeNull();
    expect(await spent(stage, repository)).toEqual(NOTHING);
  });

  it('RUN-9: where a rule requires the check it says how to enrol, and a policy on the base enrols', async () => {
    const { repository } = await stage.repository({ name: 'required', policy: null });
    await repository.commit({ branch: 'topic', author: stage.author, files: { 'a.ts': 'a\n' } });
    const pull = await repository.openPull({ head: 'topic', user: stage.author });
    const held = await stage.verdict(pull);
    expect(seen(stage, pull)).toEqual({
      state: 'action_required',
      title: 'The base branch has no policy, and a rule requires this check',
      mergeable: false,
    });
    const page = `${stage.gh.url}/acme/required/new/main`;
    expect(held.summary, 'three steps, each a link that opens the new file').toContain(
      `${page}?filename=.github%2Fcountersign.yml&value=`,
    );
    expect(held.summary).toContain(`${page}?filename=.github%2Fworkflows%2Fcountersign.yml&value=`);
    expect(held.summary).toMatch(
      /1\. .*policy.*\n2\. .*workflow.*\n3\. Push to this pull request, or comment `\/rerun`\./,
    );
    await stage.settle();
    expect(await spent(stage, repository)).toEqual(NOTHING);

    // somebody pushes the policy to main: what has been open for long waits, and says for what (RUN-10)
    await stage.advance(3_600_000);
    await repository.commit({ message: 'Enrol', files: { [POLICY]: markerPolicy() } });
    await stage.settle();
    await stage.advance(6_000);
    await stage.settle();
    expect(seen(stage, pull)).toMatchObject({ state: 'action_required', mergeable: false });
    expect(await spent(stage, repository)).toEqual(NOTHING);

    const rerun = await pull.comment(stage.author, '/rerun');
    await stage.verdict(pull, { until: (run) => run.conclusion === 'success' });
    expect(seen(stage, pull)).toEqual({
      state: 'success',
      title: 'Passed: 1 file reviewed, nothing blocks',
      mergeable: true,
    });
    await stage.settle();
    expect(rerun.reactions.map((one) => one.content)).toEqual(['eyes', 'rocket']);
  });

  it('RUN-9: a forgotten key is said by name, is no outage, and `/reload` goes on once it is there', async () => {
    const policy = `version: 1\nreviewers: {gpt: {uses: openai, model: m}}\n`;
    const { repository } = await stage.repository({ name: 'keyless', policy });
    await repository.commit({ branch: 'topic', author: stage.author, files: { 'a.ts': 'a\n' } });
    const pull = await repository.openPull({ head: 'topic', user: stage.author });
    const held = await stage.verdict(pull, { until: (run) => run.conclusion === 'action_required' });
    expect(held.summary).toMatch(/`setup_incomplete` [^|]*no key of a model: it needs OPENAI\\_API\\_KEY/);
    await stage.settle();
    const once = await spent(stage, repository);
    expect(once, 'no session, no second runner, no strike at the provider').toMatchObject({
      dispatches: 1,
      leases: 0,
      sessions: 0,
    });
    await pull.comment(stage.owner, '/reload');
    await stage.settle();
    expect(await spent(stage, repository), 'one more look').toMatchObject({ dispatches: 2, leases: 0 });
    expect(seen(stage, pull)?.state).toBe('action_required');
  });

  it('RUN-10: enrolled while pull requests are open: they wait for a push, newer ones do not', async () => {
    const { repository } = await stage.repository({ name: 'late', policy: null });
    repository.requiredChecks.length = 0;
    await repository.commit({ branch: 'old', author: stage.author, files: { 'old.ts': 'old\n' } });
    const old = await repository.openPull({ head: 'old', user: stage.author });
    await stage.settle();
    expect(stage.gate(old)).toBeNull();

    await stage.advance(3_600_000);
    await repository.commit({ message: 'Enrol', files: { [POLICY]: markerPolicy() } });
    await stage.verdict(old, { until: (run) => run.conclusion === 'action_required' });
    await stage.settle();
    expect(seen(stage, old)?.title).toBe('Waits until somebody with write allows its review');
    expect(await spent(stage, repository)).toEqual(NOTHING);
    expect(sticky(stage, old)).toBe('');

    await repository.commit({ branch: 'new', author: stage.author, files: { 'new.ts': 'new\n' } });
    const young = await repository.openPull({ head: 'new', user: stage.author });
    expect((await stage.verdict(young)).conclusion).toBe('success');
    expect(seen(stage, old)?.state).toBe('action_required');

    const sha = await old.push({ files: { 'old.ts': 'newer\n' } });
    expect((await stage.verdict(old, { sha })).conclusion, 'a push is the consent it waited for').toBe(
      'success',
    );
  });
});
