import { describe, expect, test } from 'vitest';
import { type BlockVerdict, decideBlocks } from '../../../app/domain/gate/block.ts';
import { decideGate, type GateFacts } from '../../../app/domain/gate/decide.ts';
import { foldRows } from '../../../app/domain/run-state/fold.ts';
import { decided, FactList, sha } from '../../helpers/facts.ts';
import { facts, HOUR, NOW, policy, reason } from '../../helpers/gate-facts.ts';

const a = decided('src/a.ts', { block: 'one' });
const b = decided('src/b.ts', { block: 'two' });
const read = () => new FactList().policy().block('one').block('two').head([a, b]);

function judge(
  list: FactList,
  more: Partial<GateFacts> = {},
  now = NOW,
): ReadonlyMap<string, BlockVerdict | null> {
  const state = foldRows(list.rows);
  return decideBlocks(state, decideGate(state, policy, facts(more), now));
}
/** Conclusions by id; null where there is no verdict yet. */
const said = (...given: Parameters<typeof judge>) =>
  Object.fromEntries([...judge(...given)].map(([id, verdict]) => [id, verdict?.decision.conclusion ?? null]));

describe('the verdict of a block', () => {
  test('PUB-1: a block whose paths are done has one, while another is under way', () => {
    expect(said(read().allow().end(a))).toEqual({ one: 'success', two: null });
  });

  test('PUB-1: a finding fails the block of its path and no other', () => {
    const print = sha('finding 1');
    const list = read()
      .allow()
      .finding(1, a)
      .end(a, { verdict: 'findings', findings: [print] })
      .end(b);
    const verdicts = judge(list);
    expect(said(list)).toEqual({ one: 'failure', two: 'success' });
    expect(verdicts.get('one')?.decision).toMatchObject({ blocking: [1], counts: { files: 1, counted: 1 } });
    expect(verdicts.get('two')?.decision).toMatchObject({ blocking: [], reasons: [], next: [] });
  });

  test('GAT-2: a block that waits for a held one has the class of what holds that one', () => {
    const list = new FactList()
      .policy()
      .block('one')
      .block('two', { after: ['one'] })
      .head([a, b])
      .allow();
    expect(said(list.end(b))).toEqual({ one: null, two: null });
    list.finding(1, a).end(a, { verdict: 'findings', findings: [sha('finding 1')] });
    expect(said(list)).toEqual({ one: 'failure', two: 'failure' });
    expect(judge(list).get('two')?.decision.reasons).toMatchObject([
      { code: 'dependency_open', class: 'wrong', detail: 'two waits for one' },
    ]);
  });

  test('GAT-7: an override lets the run pass and none of its blocks', () => {
    const list = read()
      .made()
      .allow()
      .finding(1, a)
      .end(a, { verdict: 'findings', findings: [sha('finding 1')] })
      .end(b);
    const before = judge(list);
    list.act({ act: 'override', permission: 'maintain' });
    const state = foldRows(list.rows);
    const lenient = { ...policy, people: { ...policy.people, override: 'maintain' as const } };
    const decision = decideGate(state, lenient, facts(), NOW);
    expect(decision).toMatchObject({ conclusion: 'success', overridden: { codes: ['open_findings'] } });
    const after = decideBlocks(state, decision);
    expect(after.get('one')?.decision).toMatchObject({ conclusion: 'failure', overridden: null });
    expect(after.get('one')?.digest, 'nothing of it changed').toBe(before.get('one')?.digest);
    expect(after.get('two')?.decision.conclusion).toBe('success');
  });

  test('GAT-3: a clause for a person holds its own block', () => {
    const list = new FactList()
      .policy()
      .block('one', { accept_human: [sha('look at it')] })
      .block('two')
      .head([a, b])
      .allow()
      .end(a)
      .end(b);
    expect(said(list)).toEqual({ one: 'action_required', two: 'success' });
  });

  test('GAT-3: past the deadline what is not reviewed fails', () => {
    expect(said(read().allow().end(a), {}, NOW + 7 * HOUR)).toEqual({ one: 'success', two: 'failure' });
  });

  test('POOL-3: what no provider read until the deadline fails its block', () => {
    const down = { reasons: [reason('provider_down')] };
    expect(said(read().allow().end(a), down)).toEqual({ one: 'success', two: null });
    expect(said(read().allow().end(a), down, NOW + 7 * HOUR)).toEqual({ one: 'success', two: 'failure' });
  });

  test('PUB-1: nothing waits under a pause, and what is not reviewed still has no verdict', () => {
    expect(said(read().allow().end(a), { reasons: [reason('paused')] })).toEqual({
      one: 'success',
      two: null,
    });
  });

  test.each([
    ['before consent', read(), {}],
    ['of a draft', read().allow().end(a).end(b), { draft: true }],
    [
      'where the record does not add up',
      new FactList().policy().block('one').block('two').head([a, b], { files: 3 }).allow().end(a).end(b),
      {},
    ],
  ] as const)('PUB-1: no verdict %s', (_, list, more) => {
    expect(said(list, more)).toEqual({ one: null, two: null });
  });

  test('PUB-1: none is a block before its head was read, or on a ledger that does not verify', () => {
    const list = read().allow().end(a).end(b);
    expect(judge(list, { head: 'f'.repeat(40) }).size).toBe(0);
    expect(judge(list, { ledger: { code: 'ledger_invalid', detail: 'row 3' } }).size).toBe(0);
  });

  test('GAT-3: a broken rule holds the block whose session broke it', () => {
    const list = read().allow().end(a).end(b);
    list.add('rule.break', { ticket: sha('ticket src/a.ts'), session: 's1', detail: 'opened a socket' });
    expect(said(list)).toEqual({ one: 'action_required', two: 'success' });
  });

  test('PUB-2: the digest moves with verdict and findings and with nothing else', () => {
    const once = judge(read().allow().end(a)).get('one')?.digest;
    expect(judge(read().allow().end(a).end(b)).get('one')?.digest).toBe(once);
    const low = read().allow().finding(1, a, { severity: 'low' });
    expect(
      judge(low.end(a, { verdict: 'findings', findings: [sha('finding 1')] })).get('one')?.digest,
    ).not.toBe(once);
  });
});
