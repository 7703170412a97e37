/** Findings over renames, on real git: what was found stays found under its number, wherever its content went. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { blockingFindings, gaps } from '../../../app/domain/run-state/coverage.ts';
import { withRun } from '../../../app/flow/append-rows.ts';
import { addDismissal, endFinding } from '../../../db/store/finding.ts';
import type { Pull } from '../../../sandbox/pull.ts';
import { type Found, report, standing } from '../../helpers/findings.ts';
import { type SyncStage, syncStage } from '../../helpers/sync.ts';

let stage: SyncStage;
beforeAll(async () => {
  stage = await syncStage();
});
afterAll(async () => {
  expect(stage.gh.violations).toEqual([]);
  await stage.close();
});

const body = (word: string, more = '') =>
  `${Array.from({ length: 20 }, (_, i) => `line ${i} of ${word}`).join('\n')}\nbad(${word})\n${more}`;

/** A pull request that changes these files of a base, read once. */
async function opened(base: Record<string, string>, head: Record<string, string | null>) {
  const repo = await stage.repository({ 'README.md': 'x\n', ...base });
  await repo.commit({ branch: 'topic', message: 'Work', files: head });
  const pull = await repo.openPull({ head: 'topic' });
  const run = await stage.open(pull);
  await stage.sync(run);
  return { pull, run, repo };
}
const found = async (run: string, path: string, ...quotes: (string | Found)[]) =>
  report(
    stage.deps,
    run,
    await stage.state(run),
    path,
    quotes.map((quote) => (typeof quote === 'string' ? { quote } : quote)),
  );
const seen = async (run: string) => standing(stage.deps, run, await stage.state(run));
async function pushed(pull: Pull, run: string, files: Record<string, string | null>) {
  await pull.push({ message: 'Next', files });
  await stage.sync(run);
  const state = await stage.state(run);
  expect(gaps(state)).toEqual([]);
  return standing(stage.deps, run, state);
}
async function dismissed(run: string, number: number, severity: 'high' | 'low' = 'high') {
  await withRun(stage.deps, run, async (unit) => {
    const by = {
      block: null,
      actor: { kind: 'person', id: '5', via: 'comment' },
      cause: { kind: 'comment', id: '1', sha256: null },
    } as const;
    const head = unit.run.head ?? '';
    const seq = unit.append('human.acted', {
      ...by,
      data: {
        act: 'dismiss',
        head,
        permission: 'write',
        clause: `F${number}`,
        paths: [],
        self: false,
        text: null,
        severity,
      },
    });
    await addDismissal(unit.tx, run, number, { actor: '5', severity, self: false, seq });
    const ended = unit.append('finding.ended', {
      ...by,
      data: { finding: number, state: 'dismissed', reason: 'by_a_person', head, text: null },
    });
    await endFinding(unit.tx, run, number, 'dismissed', ended);
  });
}

describe('REV-5: renames carry findings', () => {
  it('a file that the base has is renamed in the next head: exact, with edits, and back', async () => {
    const { pull, run } = await opened({ 'a.ts': body('a') }, { 'a.ts': body('a', 'new\n') });
    await found(run, 'a.ts', 'bad(a)', 'new');
    await dismissed(run, 2);
    expect(await seen(run)).toEqual(['F1 open a.ts', 'F2 dismissed a.ts']);
    // the very content of the head before, at a new path
    expect(await pushed(pull, run, { 'a.ts': null, 'b.ts': body('a', 'new\n') })).toEqual([
      'F1 open b.ts',
      'F2 dismissed b.ts',
    ]);
    expect(await stage.sync(run)).toMatchObject({ kind: 'unchanged' });
    // the reviewer of the new path says the same again: no third finding, and the dismissal sticks
    await found(run, 'b.ts', 'bad(a)', 'new');
    expect(await seen(run)).toEqual(['F1 open b.ts', 'F2 dismissed b.ts']);
    expect(await pushed(pull, run, { 'b.ts': null, 'c/d.ts': body('a', 'newer\n') })).toEqual([
      'F1 open c/d.ts',
      'F2 dismissed c/d.ts',
    ]);
    expect(await pushed(pull, run, { 'c/d.ts': null, 'a.ts': body('a', 'new\n') })).toEqual([
      'F1 open a.ts',
      'F2 dismissed a.ts',
    ]);
    const { findings } = await stage.state(run);
    const names = (await stage.rows(run)).flatMap((row) =>
      row.kind === 'finding.raised' && row.data.path === 'a.ts' ? [row.data.fingerprint] : [],
    );
    expect([...findings.values()].map((one) => one.fingerprint)).toEqual(names.slice(0, 2));
  });

  it('a file that only the pull request has is renamed between two heads, exact and similar', async () => {
    const { pull, run } = await opened({}, { 'a.ts': body('a'), 'x/one.ts': body('one') });
    await found(run, 'a.ts', 'bad(a)');
    await found(run, 'x/one.ts', 'bad(one)');
    const now = await pushed(pull, run, {
      'a.ts': null,
      'b.ts': body('a'),
      'x/one.ts': null,
      'y/two.ts': body('one', 'and more\n'),
    });
    expect(now).toEqual(['F1 open b.ts', 'F2 open y/two.ts']);
    const rows = (await stage.rows(run)).filter((row) => row.kind === 'finding.carried');
    expect(rows.map(({ data }) => data)).toMatchObject([
      { finding: 1, from: 'a.ts', path: 'b.ts' },
      { finding: 2, from: 'x/one.ts', path: 'y/two.ts' },
    ]);
    const state = await stage.state(run);
    expect(blockingFindings(state, 'high').map((one) => one.path)).toEqual(['b.ts', 'y/two.ts']);
    // what is nothing like it is another file
    expect(await pushed(pull, run, { 'b.ts': null, 'z.ts': 'short\n' })).toEqual([
      'F1 fixed b.ts',
      'F2 open y/two.ts',
    ]);
  });

  it('content that comes back where its finding has gone on is no clean content (TKT-4)', async () => {
    const { pull, run } = await opened({ 'a.ts': body('a') }, { 'a.ts': body('a', 'new\n') });
    await found(run, 'a.ts', 'bad(a)');
    const first = pull.head.sha;
    expect(await pushed(pull, run, { 'a.ts': null, 'b.ts': body('a', 'newer\n') })).toEqual(['F1 open b.ts']);
    await found(run, 'b.ts', 'bad(a)');
    // everything away, and then the first head again
    expect(await pushed(pull, run, { 'b.ts': null, 'a.ts': body('a') })).toEqual(['F1 fixed b.ts']);
    await pull.forcePush(first);
    await stage.sync(run);
    expect(await seen(run)).toEqual(['F1 open a.ts']);
    // the same with the renamed one still there: a second finding, since it stands twice
    expect(await pushed(pull, run, { 'a.ts': null, 'b.ts': body('a', 'newer\n') })).toEqual(['F1 open b.ts']);
    expect(await pushed(pull, run, { 'a.ts': body('a', 'new\n') })).toEqual(['F1 open b.ts', 'F2 open a.ts']);
    expect(await stage.sync(run)).toMatchObject({ kind: 'unchanged' });
  });

  it('case 53: a rebase that moves the lines doubles nothing and drops nothing', async () => {
    const { pull, run } = await opened({ 'a.ts': body('a') }, { 'a.ts': body('a', 'new\n') });
    await found(run, 'a.ts', 'bad(a)', 'new');
    await dismissed(run, 1);
    const rebased = { 'a.ts': `// moved down\n${body('a', 'new\n')}` };
    await pull.forcePush({ message: 'Rebased', files: rebased });
    await stage.sync(run);
    expect(await seen(run)).toEqual(['F1 dismissed a.ts', 'F2 open a.ts']);
    await found(run, 'a.ts', 'bad(a)', 'new');
    expect(await seen(run)).toEqual(['F1 dismissed a.ts', 'F2 open a.ts']);
    // the code under F2 changed: it waits for the next review, and ends by none
    await pull.push({ message: 'Fix', files: { 'a.ts': body('a', 'newer\n') } });
    await stage.sync(run);
    expect(await seen(run)).toEqual(['F1 dismissed a.ts', 'F2 open a.ts']);
  });
});
