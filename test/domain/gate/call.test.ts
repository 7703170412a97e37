import { describe, expect, it } from 'vitest';
import { clauseWords } from '../../../app/domain/clause.ts';
import { readApproval } from '../../../app/domain/people/grammar.ts';
import { foldRows } from '../../../app/domain/run-state/fold.ts';
import { decided, FactList, sha } from '../../helpers/facts.ts';
import { judge } from '../../helpers/gate-facts.ts';

const a = decided('src/a.ts');
const b = decided('src/b.ts');
const clause = sha('it retries three times');
const word = (status: 'met' | 'unmet') => ({ clauses: [{ clause, status }] });
const begun = () =>
  new FactList()
    .policy()
    .made()
    .allow()
    .block('work', { accept: [clause] })
    .head([a, b]);

describe('BLK-3, REV-3: a clause that a reviewer must confirm', () => {
  it('BLK-3: nobody confirms it: a person has to', () => {
    const list = begun().end(a).end(b);
    expect(judge(list)).toMatchObject({
      conclusion: 'action_required',
      reasons: [{ code: 'human_check', blocks: ['work'], detail: 'no reviewer confirms clause work/a1' }],
    });
  });

  it('BLK-3: one file that shows it is enough, a file that denies it is not outvoted', () => {
    expect(judge(begun().end(a, word('met')).end(b)).conclusion).toBe('success');
    expect(judge(begun().end(a, word('met')).end(b, word('unmet'))).conclusion).toBe('action_required');
  });

  it('REV-3, lottery: a rerun that says met does not take the doubt of the same content away', () => {
    const list = begun().end(b).end(a, word('unmet'));
    expect(judge(list.end(a, { round: 1, ...word('met') })).conclusion).toBe('action_required');
  });

  it('TKT-4: a review that was reused brings its words along', () => {
    const list = begun().end(b);
    list.add('ticket.reused', {
      ticket: sha('t'),
      key: a.key ?? '',
      path: a.path,
      run: 'other',
      seq: 3,
      findings: [],
      ...word('met'),
    });
    expect(judge(list).conclusion).toBe('success');
  });

  it('BLK-3: words on another block, on content that is gone or of an incomplete review confirm nothing', () => {
    const gone = decided('src/a.ts', { key: sha('of before') });
    const other = decided('src/c.ts', { block: 'other' });
    const list = new FactList()
      .policy()
      .made()
      .allow()
      .block('work', { accept: [clause] })
      .block('other');
    list
      .head([a, b, other])
      .end(a, { partial: true, ...word('met') })
      .end(a)
      .end(b);
    list.end(other, word('met')).end(gone, word('met'));
    expect(judge(list).conclusion).toBe('action_required');
  });

  it('GAT-6: a person confirms it by its name, once its files are read', () => {
    const list = begun().end(a).end(b);
    const { what } = readApproval(foldRows(list.rows), 'work/a1 I ran it');
    expect(what).toMatchObject({ kind: 'clause', name: 'work/a1', clause: `clause:work:${clause}` });
    expect(judge(list.act({ clause: `clause:work:${clause}` })).conclusion).toBe('success');
  });

  it('GAT-6: whoever approved before a reviewer denied it did not know', () => {
    const list = begun().end(b).act({ clause: 'human_check' }).end(a, word('unmet'));
    expect(judge(list).conclusion).toBe('action_required');
    expect(judge(list.act({ clause: 'human_check' })).conclusion).toBe('success');
  });

  it('REV-3: words of models that did not complete, and on clauses that the ticket has not, are none', () => {
    const said = [
      { index: 0, status: 'met', reviewer: 'one' },
      { index: 1, status: 'met', reviewer: 'lost' },
      { index: 2, status: 'met', reviewer: 'one' },
      { index: 0, status: 'unmet', reviewer: 'two' },
    ] as const;
    expect(clauseWords(['x', 'y'], said, new Set(['one']))).toEqual([{ clause: 'x', status: 'met' }]);
    expect(clauseWords(['x', 'y'], said, new Set(['one', 'two']))).toEqual([
      { clause: 'x', status: 'unmet' },
    ]);
  });
});

describe('REV-9, attack 30: a review can call for a person', () => {
  it('attack 30: text that steers reviewers is never green by a machine', () => {
    const list = begun()
      .end(b, word('met'))
      .end(a, { calls: ['steering_text'] });
    expect(judge(list)).toMatchObject({
      conclusion: 'action_required',
      reasons: [{ code: 'human_check', detail: 'text that tries to steer reviewers', paths: ['src/a.ts'] }],
    });
    expect(judge(list.act({ act: 'review', verdict: 'approved', clause: null })).conclusion).toBe('success');
  });

  it('attack 30, lottery: no rerun takes the call away, and an approval of before did not know of it', () => {
    const list = begun().end(b, word('met')).act({ clause: 'human_check' });
    list.end(a, { calls: ['steering_text'] }).end(a, { round: 1 });
    expect(judge(list).conclusion).toBe('action_required');
  });

  it('REV-9: a call of a later version is told by its code and calls as well', () => {
    const list = begun()
      .end(b, word('met'))
      .end(a, { calls: ['of_tomorrow'] });
    expect(judge(list).reasons).toMatchObject([{ code: 'human_check', detail: 'of_tomorrow' }]);
  });
});
