import { describe, expect, test } from 'vitest';
import { authorsOf, standsOutside } from '../../../app/domain/people/authors.ts';
import { foldRows } from '../../../app/domain/run-state/fold.ts';
import { commit, decided, FactList, HEAD } from '../../helpers/facts.ts';

const a = decided('src/a.ts');
const b = decided('src/b.ts');
const opened = (author: string | null) =>
  new FactList().add('run.opened', {
    pull: '1',
    group_head: null,
    epoch: 1,
    author: author === null ? null : { id: author, login: 'someone' },
    reason: 'opened',
  });
const whole = { head: HEAD, merge_base: commit('b'), first: true, last: true };
const group = (accounts: string[], paths: string[] | null, more = {}) => ({
  accounts,
  heads: [HEAD],
  unattributed: false,
  paths,
  ...more,
});
const who = (list: FactList, paths: string[]) => {
  const { accounts, ...rest } = authorsOf(foldRows(list.rows), paths);
  return { accounts: [...accounts].sort(), ...rest };
};

describe('who made what', () => {
  const two = () =>
    opened('1')
      .add('run.pushed', { head: HEAD, before: null, pusher: '9' })
      .add('run.people', {
        ...whole,
        commits: [HEAD],
        groups: [group(['1'], null), group(['2', '3'], ['src/b.ts'])],
      })
      .head([a, b]);

  test('GAT-6: the author of the pull request, and authors, committers and pushers of what changes it', () => {
    expect(who(two(), ['src/a.ts'])).toEqual({ accounts: ['1', '9'], unattributed: false, known: true });
    expect(who(two(), ['src/b.ts']).accounts).toEqual(['1', '2', '3', '9']);
    expect(who(two(), []).accounts).toEqual(['1', '2', '3', '9']);
    expect(standsOutside(foldRows(two().rows), ['src/a.ts'], '2')).toBe(true);
    expect(standsOutside(foldRows(two().rows), ['src/b.ts'], '2')).toBe(false);
  });

  test('GAT-6: a commit without an account makes everybody who pushed or opened insiders', () => {
    const list = opened('1')
      .add('run.pushed', { head: commit('e'), before: null, pusher: '7' })
      .add('run.pushed', { head: HEAD, before: commit('e'), pusher: '9' })
      .add('run.people', {
        ...whole,
        commits: [HEAD],
        groups: [group([], ['src/a.ts'], { unattributed: true }), group(['1'], null)],
      })
      .head([a, b]);
    expect(who(list, ['src/a.ts'])).toMatchObject({ accounts: ['1', '7', '9'], unattributed: true });
    expect(who(list, ['src/b.ts'])).toMatchObject({ accounts: ['1', '9'], unattributed: false });
  });

  test('GAT-6: a push that nobody told of, and a head between that was never read', () => {
    const untold = opened('1')
      .add('run.people', { ...whole, commits: [HEAD], groups: [group(['2'], null)] })
      .head([a]);
    expect(who(untold, ['src/a.ts'])).toMatchObject({ unattributed: true, accounts: ['1', '2'] });
    const between = opened('1')
      .add('run.pushed', { head: commit('e'), before: null, pusher: '7' })
      .add('run.pushed', { head: HEAD, before: commit('e'), pusher: '9' })
      .add('run.people', { ...whole, commits: [commit('e'), HEAD], groups: [group(['2'], null)] })
      .head([a]);
    expect(who(between, ['src/a.ts'])).toMatchObject({
      unattributed: false,
      accounts: ['1', '2', '7', '9'],
    });
  });

  test('GAT-6: a pair is also its old path’s people', () => {
    const moved = decided('src/new.ts', { from: 'src/old.ts' });
    const list = opened('1')
      .add('run.pushed', { head: HEAD, before: null, pusher: '1' })
      .add('run.people', {
        ...whole,
        commits: [HEAD],
        groups: [group(['4'], ['src/old.ts']), group(['1'], null)],
      })
      .head([moved, decided('src/old.ts', { status: 'D' })]);
    expect(who(list, ['src/new.ts']).accounts).toEqual(['1', '4']);
  });

  test('GAT-6: while the rows do not say who made the present head, nobody stands outside', () => {
    const none = opened('1').head([a]);
    const torn = opened('1')
      .add('run.people', { ...whole, last: false, commits: [HEAD], groups: [group(['2'], null)] })
      .head([a]);
    const old = two().head([a], { head: commit('f') });
    const other = two().head([a, b], { merge_base: commit('c') });
    for (const list of [none, torn, old, other]) {
      expect(authorsOf(foldRows(list.rows), ['src/a.ts']).known).toBe(false);
      expect(standsOutside(foldRows(list.rows), ['src/a.ts'], '55')).toBe(false);
    }
    expect(who(opened(null).head([a]), ['src/a.ts'])).toMatchObject({ unattributed: true });
  });

  test('GAT-6: a path that no commit of the head changes has no known maker', () => {
    const list = opened('1')
      .add('run.pushed', { head: HEAD, before: null, pusher: '1' })
      .add('run.people', { ...whole, commits: [HEAD], groups: [group(['2'], ['src/a.ts'])] })
      .head([a, b]);
    expect(who(list, ['src/b.ts'])).toMatchObject({ unattributed: true });
  });
});
