import { describe, expect, it } from 'vitest';
import { decideGate } from '../../../app/domain/gate/decide.ts';
import { deepBlocks, roundState } from '../../../app/domain/gate/rounds.ts';
import { readApproval } from '../../../app/domain/people/grammar.ts';
import { foldRows } from '../../../app/domain/run-state/fold.ts';
import { decided, FactList, HEAD, sha } from '../../helpers/facts.ts';
import { facts, NOW, policy } from '../../helpers/gate-facts.ts';

const path = (n: number, level: 'L2' | 'L3' = 'L2') =>
  decided('src/a.ts', { key: sha(`key ${n} ${level}`), level });
const other = decided('src/b.ts', { key: sha('key b') });
const rules = { ...policy, rounds: 2 };

/** A model's finding on src/a.ts, read in so many rounds more, the last of them at the level given. */
function argued(rounds: number, last: 'L2' | 'L3' = 'L2', severity: 'high' | 'critical' = 'high'): FactList {
  const list = new FactList().policy().made().allow();
  list.head([path(0), other]).end(other);
  list.end(path(0), { verdict: 'findings', findings: [sha('finding 1')] });
  list.finding(1, path(0), { command: false, severity });
  for (let n = 1; n <= rounds; n++) {
    const file = path(n, n === rounds ? last : 'L2');
    list.head([file, other]).end(file, { verdict: 'findings', findings: [sha('finding 1')] });
    list.finding(1, file, { command: false, severity, key: file.key ?? '' });
  }
  return list;
}
const decide = (list: FactList, how = rules) => decideGate(foldRows(list.rows), how, facts(), NOW);
const codes = (list: FactList) => decide(list).reasons.map((reason) => reason.code);

describe('RND-2: rounds end with a person', () => {
  it('RND-2: a round is counted when it read content on which a blocking finding was open', () => {
    const state = foldRows(argued(2).rows);
    expect(state.rounds.get('src/a.ts')).toMatchObject([{ worst: 'high' }, { worst: 'high' }]);
    expect(state.rounds.has('src/b.ts')).toBe(false);
  });

  it('RND-2: clean content costs none, and a command argues with nobody', () => {
    const clean = new FactList()
      .policy()
      .made()
      .allow()
      .head([path(0), other])
      .end(path(0))
      .end(other);
    expect(foldRows(clean.end(path(0), { round: 1 }).rows).rounds.size).toBe(0);
    const command = new FactList()
      .policy()
      .made()
      .allow()
      .head([path(0), other])
      .end(other);
    command.end(path(0), { verdict: 'findings', findings: [sha('finding 1')] });
    command.finding(1, path(0), { command: true }).end(path(0), { round: 1 });
    expect(foldRows(command.rows).rounds.size).toBe(0);
  });

  it.each([
    [0, 'L2', 'under'],
    [1, 'L2', 'under'],
    [2, 'L2', 'called'],
    [3, 'L2', 'over'],
    [3, 'L3', 'over'],
    [2, 'L3', 'over'],
  ] as const)('RND-2: after %i rounds of 2, the last at %s, the path is %s', (rounds, last, state) => {
    const folded = foldRows(argued(rounds, last).rows);
    expect(roundState(folded, rules, 'src/a.ts')).toBe(state);
    expect([...deepBlocks(folded, rules)]).toEqual(state === 'called' ? [path(0).block] : []);
  });

  it('RND-2: what a model still holds after the round at L3 is a person’s, by block, and no failure', () => {
    expect(codes(argued(2))).toEqual(['open_findings']);
    const over = decide(argued(3, 'L3'));
    expect(over).toMatchObject({
      conclusion: 'action_required',
      blocking: [1],
      reasons: [{ code: 'rounds_exhausted', findings: [1], blocks: [path(0).block] }],
    });
  });

  it('RND-2, GAT-6: /approve rounds clears it on this head; what is found after it is asked anew', () => {
    const list = argued(3, 'L3');
    const head = path(3, 'L3');
    const { what } = readApproval(foldRows(list.rows), 'rounds the model is wrong here');
    expect(what).toEqual({ kind: 'codes', codes: ['rounds_exhausted'] });
    list.act({ clause: 'rounds_exhausted' });
    expect(decide(list)).toMatchObject({
      conclusion: 'success',
      blocking: [],
      cleared: [{ code: 'rounds_exhausted' }],
    });
    list.end(head, { round: 1, verdict: 'findings', findings: [sha('finding 1'), sha('finding 2')] });
    list.finding(1, head, { command: false, severity: 'high' }).finding(2, head, {
      command: false,
      severity: 'high',
    });
    expect(decide(list)).toMatchObject({
      conclusion: 'action_required',
      reasons: [{ code: 'rounds_exhausted', findings: [1, 2] }],
    });
  });

  it('RND-2, FND-2: a critical finding stays one, whatever the rounds', () => {
    expect(codes(argued(5, 'L3', 'critical'))).toEqual(['open_findings']);
    expect(codes(argued(5, 'L3', 'critical').act({ clause: 'rounds_exhausted' }))).toEqual(['open_findings']);
  });

  it('RND-2: the author cannot answer for it, and a finding that ended asks nobody', () => {
    expect(codes(argued(3, 'L3').act({ clause: 'rounds_exhausted', by: '1' }))).toEqual(['rounds_exhausted']);
    const ended = argued(3, 'L3').add('finding.ended', {
      finding: 1,
      state: 'fixed',
      reason: 'code_changed',
      head: HEAD,
      text: null,
    });
    expect(decide(ended).conclusion).toBe('success');
  });

  it('RND-2: a rename begins no new count', () => {
    const list = argued(3);
    const moved = decided('src/c.ts', { from: 'src/a.ts', key: sha('key c') });
    list.head([moved, other]);
    list.add('finding.carried', {
      finding: 1,
      from: 'src/a.ts',
      path: 'src/c.ts',
      fingerprint: sha('finding 1 there'),
      head: HEAD,
    });
    expect(roundState(foldRows(list.rows), rules, 'src/c.ts')).toBe('over');
  });
});

describe('RND-1, RND-3: what does not block', () => {
  const found = (more: object) => {
    const list = new FactList()
      .policy()
      .made()
      .allow()
      .head([path(0), other])
      .end(other);
    list.end(path(0), { verdict: 'findings', findings: [sha('finding 1')] });
    return list.finding(1, path(0), { command: false, severity: 'high', ...more });
  };

  it('RND-1: new on content that its model had read: shown, not blocking; at critical a person is called', () => {
    expect(decide(found({ read_before: true }))).toMatchObject({ conclusion: 'success', blocking: [] });
    const critical = found({ read_before: true, severity: 'critical' });
    expect(decide(critical)).toMatchObject({
      conclusion: 'action_required',
      reasons: [{ code: 'human_check', detail: 'F1 is critical and came late' }],
    });
    expect(decide(critical.act({ clause: 'human_check' })).conclusion).toBe('success');
  });

  it('RND-3: one of two saw it: it blocks, unless the lens takes both', () => {
    const lens = found({ witnesses: ['one'] });
    const both = { ...rules, consensus: ['security', 'correctness', 'style'] };
    expect(decide(lens).conclusion).toBe('failure');
    expect(decide(lens, both)).toMatchObject({ conclusion: 'success', blocking: [] });
    expect(decide(found({ witnesses: ['one', 'two'] }), both).conclusion).toBe('failure');
    expect(decide(found({}), both).conclusion).toBe('failure');
  });

  it('RND-3, lottery: a deeper look that half agrees makes nothing milder, and a second witness counts later', () => {
    const both = { ...rules, consensus: ['security', 'correctness', 'style'] };
    const half = found({}).finding(1, path(0), { command: false, severity: 'high', witnesses: ['one'] });
    expect(decide(half, both).conclusion).toBe('failure');
    const later = found({ witnesses: ['one'] });
    later.finding(1, path(0), { command: false, severity: 'high', witnesses: ['two'] });
    expect(decide(later, both).conclusion).toBe('failure');
  });
});
