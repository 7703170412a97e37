import { describe, expect, test } from 'vitest';
import { named, readApproval } from '../../../app/domain/people/grammar.ts';
import { foldRows } from '../../../app/domain/run-state/fold.ts';
import { FactList, sha } from '../../helpers/facts.ts';

const state = foldRows(
  new FactList()
    .block('payments', { accept_human: [sha('one'), sha('two')] })
    .block('budget')
    .block('gone', { accept_human: [sha('one')] })
    .add('block.ended', { block: 'gone', status: 'dropped' })
    .block('deadbeef').rows,
);

describe('the words of /approve', () => {
  test.each([
    ['looks fine', { kind: 'all' }, null, 'looks fine'],
    ['guarded read it twice', { kind: 'codes', codes: ['guarded'] }, null, 'read it twice'],
    ['GUARDED ok', { kind: 'codes', codes: ['guarded'] }, null, 'ok'],
    ['guarded 1A2B3C4 ok', { kind: 'codes', codes: ['guarded'] }, '1a2b3c4', 'ok'],
    ['1a2b3c4 ok then', { kind: 'all' }, '1a2b3c4', 'ok then'],
    ['1a2b3c ok', { kind: 'all' }, null, '1a2b3c ok'],
    ['payments ok', { kind: 'block', name: 'payments', clause: 'block:payments' }, null, 'ok'],
    [
      'payments/2 ok',
      { kind: 'clause', name: 'payments/2', clause: `clause:payments:${sha('two')}` },
      null,
      'ok',
    ],
    ['payments/3 ok', { kind: 'all' }, null, 'payments/3 ok'],
    ['gone ok', { kind: 'all' }, null, 'gone ok'],
    ['deadbeef 1a2b3c4d ok', { kind: 'block', name: 'deadbeef', clause: 'block:deadbeef' }, '1a2b3c4d', 'ok'],
    [
      'unreviewed no key today',
      { kind: 'codes', codes: ['unreviewed_files', 'ticket_unavailable'] },
      null,
      'no key today',
    ],
    ['rounds enough', { kind: 'codes', codes: ['rounds_exhausted'] }, null, 'enough'],
    ['guarded', { kind: 'codes', codes: ['guarded'] }, null, ''],
    ['guarded 1a2b3c4', { kind: 'codes', codes: ['guarded'] }, '1a2b3c4', ''],
    ['\u00a0guarded\u00a0 1a2b3c4\t ok', { kind: 'codes', codes: ['guarded'] }, '1a2b3c4', 'ok'],
  ] as const)('GAT-6: %s', (text, what, commit, reason) => {
    expect(readApproval(state, text)).toEqual({ what, sha: commit, reason });
  });

  test('GAT-6: a code wins over a block of the same name, since authors name their blocks', () => {
    expect(named(state, 'budget')).toEqual({ kind: 'codes', codes: ['budget'] });
  });

  test('GAT-6: names of the language are no names, and no reason that holds for ever is a code', () => {
    for (const word of [
      '__proto__',
      'constructor',
      'toString',
      'config_invalid',
      'ledger_invalid',
      'open_findings',
      'stopped',
      'reviews_pending',
      '',
    ])
      expect(named(state, word), word).toBeNull();
  });
});
