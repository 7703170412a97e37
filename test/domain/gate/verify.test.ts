import { describe, expect, it } from 'vitest';
import { decideGate } from '../../../app/domain/gate/decide.ts';
import { gatePolicyOf } from '../../../app/domain/gate/policy.ts';
import type { RowData } from '../../../app/domain/ledger/row-kinds.ts';
import { parsePolicy } from '../../../app/domain/policy.ts';
import { reusableReceipt, wantedReceipts } from '../../../app/domain/receipt.ts';
import { foldRows } from '../../../app/domain/run-state/fold.ts';
import { commit, decided, FactList, HEAD } from '../../helpers/facts.ts';
import { facts, HOUR, NOW } from '../../helpers/gate-facts.ts';

const reading = parsePolicy(
  Buffer.from(`version: 1
verify:
  unit: {from: ci, workflow: ci.yml, job: unit}
  same: {from: ci, workflow: ci.yml, job: unit}
  e2e: {from: action, run: [npm, run, e2e]}
`),
);
if (!reading.ok) throw new Error(JSON.stringify(reading.errors));
const policy = gatePolicyOf(reading.policy);
const definition = (name: string) => policy.verify.get(name) ?? '';

const a = decided('src/a.ts', { verify: ['unit'] });
const job = { workflow_run: '900', attempt: 1, job: '77' };

const start = (files = [a]) => {
  const list = new FactList().policy().block('work').block('other').head(files).allow();
  for (const file of files) list.end(file);
  return list;
};
const reserve = (list: FactList, receipt = 'RCP-001', more: Partial<RowData<'receipt.reserved'>> = {}) =>
  list.add('receipt.reserved', {
    block: 'work',
    receipt,
    commands: ['unit'],
    from: 'ci',
    definition: definition('unit'),
    head: HEAD,
    ...more,
  });
const end = (list: FactList, more: Partial<RowData<'receipt.ended'>> = {}) =>
  list.add('receipt.ended', {
    block: 'work',
    receipt: 'RCP-001',
    state: 'passed',
    why: null,
    job,
    conclusion: 'success',
    ms: 12,
    ...more,
  });
const judge = (list: FactList, now = NOW, more: Parameters<typeof facts>[0] = {}) => {
  const { conclusion, reasons } = decideGate(foldRows(list.rows), policy, facts(more), now);
  return { conclusion, reasons: reasons.map(({ code, blocks, detail }) => ({ code, blocks, detail })) };
};

describe('the gate weighs receipts', () => {
  it('VER-1: a command that no receipt was cut for is pending, and only a receipt that passed clears it', () => {
    const list = start();
    const pending = (detail: string) => ({
      conclusion: 'in_progress',
      reasons: [{ code: 'verify_pending', blocks: ['work'], detail }],
    });
    expect(judge(list)).toEqual(pending('unit'));
    expect(judge(reserve(list))).toEqual(pending('unit'));
    list.add('receipt.waiting', { block: 'work', receipt: 'RCP-001', why: 'conflict' });
    expect(judge(list).reasons[0]?.detail).toContain(
      'unit: GitHub starts no workflow while the pull request',
    );
    list.add('receipt.bound', { block: 'work', receipt: 'RCP-001', job });
    expect(judge(list)).toEqual(pending('unit'));
    expect(judge(end(list))).toEqual({ conclusion: 'success', reasons: [] });
  });

  it.each([
    ['failed', 'failed', 'unit: it failed'],
    ['failed', 'mutated', 'unit: it changed the tree it ran in'],
    ['failed', 'artifact_missing', 'unit: it left out a file that it must make'],
    ['failed', 'timed_out', 'unit: it ran out of time'],
    ['failed', 'skipped', 'unit: its job was skipped, so it ran nothing'],
    ['aborted', 'cancelled', 'unit: its job was cancelled'],
  ] as const)('VER-3: a receipt that is %s (%s) fails the gate and says so', (state, why, detail) => {
    expect(judge(end(reserve(start()), { state, why, conclusion: null }))).toEqual({
      conclusion: 'failure',
      reasons: [{ code: 'verify_failed', blocks: ['work'], detail }],
    });
  });

  it('VER-3: a later attempt takes the place of what was', () => {
    const list = end(reserve(start()), { state: 'failed', why: 'failed', conclusion: 'failure' });
    list.add('receipt.bound', { block: 'work', receipt: 'RCP-001', job: { ...job, attempt: 2, job: '78' } });
    expect(judge(list).conclusion).toBe('in_progress');
    expect(judge(end(list, { job: { ...job, attempt: 2, job: '78' } })).conclusion).toBe('success');
  });

  it('GAT-3: what has not ended by the deadline is a failure', () => {
    const list = reserve(start());
    expect(judge(list, NOW + 5 * HOUR).conclusion).toBe('in_progress');
    expect(judge(list, NOW + 7 * HOUR).conclusion).toBe('failure');
  });

  it('VER-2: a receipt of another head, another block or another definition proves nothing', () => {
    for (const more of [
      { head: commit('f') },
      { block: 'other' },
      { definition: definition('e2e') },
    ] satisfies Partial<RowData<'receipt.reserved'>>[]) {
      const list = end(
        reserve(start(), 'RCP-001', more),
        more.block === undefined ? {} : { block: more.block },
      );
      expect(judge(list).reasons.map(({ code }) => code)).toEqual(['verify_pending']);
    }
  });

  it('VER-2: equal commands of a block are one receipt, and each block has its own', () => {
    const b = decided('src/b.ts', { block: 'other', verify: ['unit'] });
    const list = start([decided('src/a.ts', { verify: ['same', 'unit'] }), b]);
    const wanted = wantedReceipts(foldRows(list.rows), policy.verify);
    expect(wanted.map(({ block, commands }) => [block, commands])).toEqual([
      ['other', ['unit']],
      ['work', ['same', 'unit']],
    ]);
    end(reserve(list));
    expect(judge(list).reasons).toEqual([{ code: 'verify_pending', blocks: ['other'], detail: 'unit' }]);
  });

  it('VER-1: a command that the policy does not know is proved by nothing', () => {
    expect(judge(start([decided('src/a.ts', { verify: ['gone'] })]))).toEqual({
      conclusion: 'failure',
      reasons: [{ code: 'verify_failed', blocks: ['work'], detail: 'gone: the policy does not know it' }],
    });
  });

  it('RUN-10: before consent no command is under way', () => {
    const list = new FactList().policy().block('work').head([a]).end(a);
    expect(judge(list).reasons.map(({ code }) => code)).toEqual(['needs_allow']);
  });

  it('FND-1: a receipt row of nothing that was reserved is a gap, never a pass', () => {
    expect(judge(end(start())).reasons.map(({ code }) => code)).toContain('coverage_gap');
  });
});

describe('a receipt is reused', () => {
  const e2e = decided('src/a.ts', { verify: ['e2e'] });
  const first = () =>
    end(
      reserve(start([e2e]), 'RCP-001', { commands: ['e2e'], from: 'action', definition: definition('e2e') }),
    );
  const again = (list: FactList, file = e2e, merge_base = commit('b')) =>
    list.head([file], { head: commit('9'), merge_base }).end(file);
  const reusable = (list: FactList) =>
    reusableReceipt(foldRows(list.rows), { block: 'work', definition: definition('e2e') });

  it('VER-4: over a head with the same content on the same merge base, and by a row', () => {
    const list = again(first());
    const found = reusable(list);
    expect(found).toMatchObject({ id: 'RCP-001', state: 'passed' });
    reserve(list, 'RCP-002', {
      commands: ['e2e'],
      from: 'action',
      definition: definition('e2e'),
      head: commit('9'),
    });
    expect(judge(list, NOW, { head: commit('9') }).conclusion).toBe('in_progress');
    list.add('receipt.reused', {
      block: 'work',
      receipt: 'RCP-002',
      from: { block: 'work', receipt: 'RCP-001', seq: found?.seq ?? 0 },
    });
    expect(judge(list, NOW, { head: commit('9') }).conclusion).toBe('success');
  });

  it('VER-4: not over other content, another merge base, or from one that failed since', () => {
    expect(reusable(again(first(), { ...e2e, blob: { base: commit('c'), head: commit('e') } }))).toBeNull();
    expect(reusable(again(first(), e2e, commit('8')))).toBeNull();
    expect(reusable(again(end(first(), { state: 'failed', why: 'failed' })))).toBeNull();
  });

  it('VER-1: a job of the repository’s own CI is proved on each head anew', () => {
    const list = end(reserve(start())).head([a], { head: commit('9') });
    expect(
      reusableReceipt(foldRows(list.rows), { block: 'work', definition: definition('unit') }),
    ).toBeNull();
  });

  it('LED-8: a row that rests on what did not pass is a gap', () => {
    const list = end(reserve(start()), { state: 'failed', why: 'failed' });
    reserve(list, 'RCP-002');
    list.add('receipt.reused', {
      block: 'work',
      receipt: 'RCP-002',
      from: { block: 'work', receipt: 'RCP-001', seq: list.rows.length - 1 },
    });
    expect(judge(list).reasons.map(({ code }) => code)).toContain('coverage_gap');
  });
});
