/** Comments on the whole road: webhook, inbox, queue, GitHub's permissions, runners, gate. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Pull } from '../../sandbox/pull.ts';
import { markerPolicy, type TestStage, testStage } from '../helpers/stage.ts';

let stage: TestStage;
beforeAll(async () => {
  stage = await testStage();
});
afterAll(() => stage.close());

const sticky = (pull: Pull) => stage.gh.comments(pull).find((one) => one.viaApp === stage.app)?.body ?? '';

describe('commands', () => {
  it('RUN-10, CMD-5: a stranger waits, is told why, and is reviewed once a maintainer says /allow', async () => {
    const { repository } = await stage.repository({ name: 'stranger' });
    const maintainer = stage.gh.createUser('maintainer');
    const stranger = stage.gh.createUser('stranger');
    repository.setCollaborator(maintainer, 'maintain');
    const fork = await repository.fork(stranger);
    await fork.commit({ branch: 'fix', author: stranger, files: { 'src/a.ts': 'export const a = 1;\n' } });
    const pull = await repository.openPull({ head: 'fix', user: stranger, fork });
    const waiting = await stage.verdict(pull, { until: (run) => run.conclusion === 'action_required' });
    expect(waiting.summary).toContain('needs_allow');
    await stage.settle();
    expect(await stage.query('select 1 from ticket')).toEqual([]);

    await pull.comment(stranger, 'why?\r\n/status');
    await stage.settle();
    expect(sticky(pull)).toContain('`needs_allow`');
    await pull.comment(stranger, '/allow');
    await stage.settle();
    expect(sticky(pull)).toContain('`/allow` was not done: it needs write on this repository.');

    // the verdict was shown in an earlier second than the comment is made
    await new Promise((done) => setTimeout(done, 1_100));
    const allow = await pull.comment(maintainer, 'Looks safe to run.\n\n/allow');
    const green = await stage.verdict(pull, { until: (run) => run.conclusion === 'success' });
    expect(green.title).toContain('Passed');
    await stage.settle();
    expect(allow.reactions.map((one) => one.content)).toEqual(['eyes', 'rocket']);
    const allowed = (await stage.rows(pull)).filter((row) => row.kind === 'run.allowed');
    expect(allowed.map((row) => row.data)).toEqual([{ rule: 'person', scope: 'head', head: pull.head.sha }]);
    expect(stage.gh.comments(pull).filter((one) => one.viaApp === stage.app)).toHaveLength(1);
  });

  it('case 46: an edited comment does nothing', async () => {
    const { repository } = await stage.repository({ name: 'edited', policy: markerPolicy() });
    await repository.commit({ branch: 'topic', author: stage.author, files: { 'a.ts': 'a\n' } });
    const pull = await repository.openPull({ head: 'topic', user: stage.author });
    await stage.verdict(pull);
    const comment = await pull.comment(stage.author, 'hello');
    await stage.settle();
    const before = (await stage.rows(pull)).length;
    // words become a command: by whoever may edit it, in nobody's name
    await stage.gh.editComment(pull, comment, '/rerun', stage.owner);
    await stage.settle();
    await stage.gh.editComment(pull, comment, '/approve unreviewed it is fine', stage.owner);
    await stage.settle();
    expect((await stage.rows(pull)).length).toBe(before);
    expect(comment.reactions).toEqual([]);
    expect(sticky(pull)).toBe('');
    // a command gets prose, then becomes another one: it was carried out once, as it was given
    const given = await pull.comment(stage.author, '/rerun a.ts');
    await stage.settle();
    const once = (await stage.rows(pull)).filter((row) => row.kind === 'human.acted').length;
    expect(once).toBe(1);
    for (const body of ['/rerun a.ts\nplease', '/rerun all', '/allow']) {
      await stage.gh.editComment(pull, given, body, stage.author);
      await stage.settle();
    }
    expect((await stage.rows(pull)).filter((row) => row.kind === 'human.acted')).toHaveLength(once);
    expect(given.reactions.map((one) => one.content)).toEqual(['eyes', 'rocket']);
  });

  it('TKT-1: /rerun opens the next round, and what was found stays found', async () => {
    const { repository } = await stage.repository({ name: 'again' });
    await repository.commit({ branch: 'topic', author: stage.author, files: { 'a.ts': 'x // BUG\n' } });
    const pull = await repository.openPull({ head: 'topic', user: stage.author });
    expect((await stage.verdict(pull)).conclusion).toBe('failure');
    await stage.settle();
    const ends = async () =>
      (await stage.rows(pull)).flatMap((row) => (row.kind === 'ticket.ended' ? [row.data.round] : []));
    expect(await ends()).toEqual([0]);
    await pull.comment(stage.author, '/rerun a.ts');
    await stage.settle();
    expect(sticky(pull)).toContain('the next round of `a.ts` was asked for.');
    expect(await ends()).toEqual([0, 1]);
    expect((await stage.verdict(pull)).conclusion).toBe('failure');
    const raised = (await stage.rows(pull)).flatMap((row) =>
      row.kind === 'finding.raised' ? [row.data.finding] : [],
    );
    expect(raised, 'the second round sees it too, under the same number').toEqual([1, 1]);
  });
});
