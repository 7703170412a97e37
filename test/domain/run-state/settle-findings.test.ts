import { describe, expect, test } from 'vitest';
import type { DecidedPath } from '../../../app/domain/ledger/row-fields.ts';
import { foldRows } from '../../../app/domain/run-state/fold.ts';
import { settleFindings } from '../../../app/domain/run-state/settle-findings.ts';
import { commit, decided, FactList, HEAD, sha } from '../../helpers/facts.ts';

/** A path with content of its own and the key that belongs to it. */
const at = (content: string, more: Partial<DecidedPath> = {}) =>
  decided('a.ts', {
    key: sha(`key ${content}`),
    blob: { base: commit('c'), head: sha(content).slice(0, 40) },
    ...more,
  });

/** What a result that did not find F1 any more appends, as accept-result does: one lease caused both rows. */
function silence(list: FactList, path: DecidedPath, lease: string, reason = 'not_raised_again'): FactList {
  const cause = { kind: 'lease', id: lease, sha256: null } as const;
  list.end(path).add('finding.ended', { finding: 1, state: 'fixed', reason, head: HEAD, text: null });
  for (const [i, row] of list.rows.slice(-2).entries())
    list.rows[list.rows.length - 2 + i] = { ...row, cause } as (typeof list.rows)[number];
  return list;
}

const settle = (list: FactList, files: readonly DecidedPath[]) =>
  settleFindings(list.rows, foldRows(list.rows).findings, files);
const one = () =>
  new FactList()
    .policy()
    .head([at('one')])
    .finding(1, at('one'));
const LEFT = { ended: [{ finding: 1, reason: 'left_the_change' }], raised: [], anew: [] };
const NOTHING = { ended: [], raised: [], anew: [] };

describe('FND-1: findings and the content they were found on', () => {
  test('a path that left the change, or whose side is gone, or that is a plain move ends its findings', () => {
    expect(settle(one(), [])).toEqual(LEFT);
    expect(settle(one(), [at('one', { blob: { base: commit('c'), head: null } })])).toEqual(LEFT);
    expect(settle(one(), [at('one', { level: 'L0', reason: 'moved', key: null })])).toEqual(LEFT);
  });

  test('a path that stays keeps them, also as content that nobody has read yet or reads any more', () => {
    expect(settle(one(), [at('one')])).toEqual(NOTHING);
    expect(settle(one(), [at('two')])).toEqual(NOTHING);
    expect(settle(one(), [at('one', { level: 'L0', reason: 'generated', key: null })])).toEqual(NOTHING);
  });

  test('content that comes back brings its findings, and content that was read without them takes them away', () => {
    const list = silence(one(), at('two'), 'lease-2');
    expect(settle(list, [at('two')]), 'it is ended where it is not').toEqual(NOTHING);
    expect(settle(list, []), 'and ends no second time').toEqual(NOTHING);
    const back = settle(list, [at('one')]);
    expect(back.raised.map(({ data }) => [data.finding, data.key, data.state])).toEqual([
      [1, sha('key one'), 'open'],
    ]);
    expect(back.ended).toEqual([]);
    list.finding(1, at('one'));
    expect(settle(list, [at('two')])).toEqual({
      ended: [{ finding: 1, reason: 'not_raised_again' }],
      raised: [],
      anew: [],
    });
  });

  test('what a late result raised and ended at once comes back with its content', () => {
    const list = new FactList()
      .policy()
      .head([at('two')])
      .finding(1, at('one'));
    silence(list, at('one'), 'lease-1', 'left_the_change');
    expect(settle(list, [at('two')])).toEqual(NOTHING);
    expect(settle(list, [at('one')]).raised).toHaveLength(1);
  });

  test('a dismissal is of the finding, not of a content', () => {
    const list = one().add('finding.ended', {
      finding: 1,
      state: 'dismissed',
      reason: 'by a person',
      head: HEAD,
      text: null,
    });
    expect(settle(list, [at('one')])).toEqual(NOTHING);
    expect(settle(list, [])).toEqual(NOTHING);
  });
});
