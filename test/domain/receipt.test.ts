import { describe, expect, it } from 'vitest';
import type { VerifyCommand } from '../../app/domain/policy/verify.ts';
import { commandDigest } from '../../app/domain/receipt/input-hash.ts';
import { judgeReceipt, type SeenJob, type SeenRun, withTelling } from '../../app/domain/receipt/judge.ts';
import { aborted, judgePool, poolWait, triesAgainAfter } from '../../app/domain/receipt/pool.ts';
import { receiptWords, WHY } from '../../app/domain/receipt/words.ts';
import { definitionDigest, receiptId } from '../../app/domain/receipt.ts';

const ci: VerifyCommand = { from: 'ci', workflow: 'ci.yml', job: 'unit' };
const action: VerifyCommand = {
  from: 'action',
  workflow: 'countersign-verify.yml',
  run: ['npm', 'test'],
  timeout: 900_000,
  env: {},
  ports: [],
  artifacts: [],
};

const job = (more: Partial<SeenJob> = {}): SeenJob => ({
  id: '71',
  attempt: 1,
  name: 'unit',
  status: 'completed',
  conclusion: 'success',
  ms: 1200,
  endedMs: 0,
  selfHosted: false,
  checkRun: '71',
  ...more,
});
const run = (more: Partial<SeenRun> = {}): SeenRun => ({
  id: '900',
  attempt: 1,
  workflow: 'ci.yml',
  event: 'pull_request',
  status: 'completed',
  conclusion: 'success',
  jobs: [job()],
  ...more,
});
const none = { fork: false, conflict: false };
const judge = (runs: readonly SeenRun[], facts = none) => {
  const { state, why, job: by } = judgeReceipt(ci, ['unit'], runs, facts);
  return [state, why, by === null ? null : `${by.workflowRun}/${by.attempt}/${by.job}`];
};

describe('GitHub’s conclusion is the receipt', () => {
  it.each([
    ['success', 'passed', null],
    ['failure', 'failed', 'failed'],
    ['timed_out', 'failed', 'timed_out'],
    ['skipped', 'failed', 'skipped'],
    ['neutral', 'failed', 'neutral'],
    ['action_required', 'failed', 'action_required'],
    ['cancelled', 'aborted', 'cancelled'],
    ['stale', 'aborted', 'no_conclusion'],
    [null, 'aborted', 'no_conclusion'],
    ['a_word_of_next_year', 'failed', 'failed'],
  ] as const)('VER-3: a job that concludes %s is %s', (conclusion, state, why) => {
    expect(judge([run({ jobs: [job({ conclusion })] })])).toEqual([state, why, '900/1/71']);
  });

  it('VER-1: another workflow file, another job, another event prove nothing', () => {
    expect(judge([run({ workflow: 'other.yml' })])).toEqual(['waiting', 'no_run', null]);
    expect(judge([run({ event: 'workflow_dispatch' })])).toEqual(['waiting', 'no_run', null]);
    expect(judge([run({ event: 'pull_request_target' })])).toEqual(['waiting', 'no_run', null]);
    expect(judge([run({ jobs: [job({ name: 'unit-fast' })] })])).toEqual(['failed', 'job_missing', null]);
    expect(judgeReceipt(action, ['e2e'], [run({ workflow: action.workflow, event: 'push' })], none).why).toBe(
      'no_run',
    );
  });

  it('VER-1: a command of ours is found by its job, under any of the names of equal commands', () => {
    const runs = [run({ workflow: action.workflow, jobs: [job({ name: 'verify slow' })] })];
    expect(judgeReceipt(action, ['e2e', 'slow'], runs, none).state).toBe('passed');
    expect(judgeReceipt(action, ['e2e'], runs, none).why).toBe('job_missing');
  });

  it('VER-1: the newest attempt of a job counts, whatever the order it is told in', () => {
    const failed = job({ conclusion: 'failure' });
    const passed = job({ id: '72', attempt: 2 });
    for (const jobs of [
      [failed, passed],
      [passed, failed],
    ])
      expect(judge([run({ attempt: 2, jobs })])).toEqual(['passed', null, '900/2/72']);
    const again = job({ id: '73', attempt: 3, status: 'in_progress', conclusion: null });
    expect(judge([run({ attempt: 3, status: 'in_progress', jobs: [again] })])).toEqual([
      'running',
      null,
      '900/3/73',
    ]);
  });

  it('VER-3: of several runs the worst is the receipt, so that nobody is rid of a failure by another run', () => {
    const failed = run({ jobs: [job({ conclusion: 'failure' })] });
    const passed = run({ id: '1000', event: 'push', jobs: [job({ id: '80' })] });
    expect(judge([failed, passed])).toEqual(['failed', 'failed', '900/1/71']);
    expect(judge([passed, failed])).toEqual(['failed', 'failed', '900/1/71']);
    const running = run({ id: '1001', status: 'in_progress', conclusion: null, jobs: [] });
    expect(judge([passed, running])).toEqual(['waiting', 'queued', null]);
    // 1000 is newer than 900 though its text sorts before
    expect(judge([run(), passed])).toEqual(['passed', null, '1000/1/80']);
  });

  it('VER-3: a run that was cancelled or skipped the job counts only where no other ran it', () => {
    const cancelled = run({ jobs: [job({ conclusion: 'cancelled' })] });
    const passed = run({ id: '800', jobs: [job({ id: '60' })] });
    expect(judge([cancelled, passed])).toEqual(['passed', null, '800/1/60']);
    expect(judge([cancelled])).toEqual(['aborted', 'cancelled', '900/1/71']);
    expect(judge([run({ conclusion: 'cancelled', jobs: [] })])).toEqual(['aborted', 'cancelled', null]);
  });

  it('VER-1: what waits says for what', () => {
    expect(judge([], { ...none, conflict: true })).toEqual(['waiting', 'conflict', null]);
    expect(judge([run({ conclusion: 'action_required', jobs: [] })])).toEqual([
      'waiting',
      'needs_approval',
      null,
    ]);
    expect(judge([run({ conclusion: 'startup_failure', jobs: [] })])).toEqual([
      'failed',
      'startup_failure',
      null,
    ]);
  });

  it('VER-3: a job that no runner works any more, of a run that has ended, is aborted', () => {
    const lost = run({ conclusion: 'failure', jobs: [job({ status: 'in_progress', conclusion: null })] });
    expect(judge([lost])).toEqual(['aborted', 'lost', '900/1/71']);
  });

  it('VER-1: code of a fork on a self-hosted runner never counts', () => {
    const own = [run({ jobs: [job({ selfHosted: true })] })];
    expect(judge(own)[0]).toBe('passed');
    expect(judge(own, { ...none, fork: true })).toEqual(['failed', 'self_hosted_fork', '900/1/71']);
  });
});

describe('what a job told may only make it worse', () => {
  const expected = commandDigest(action);
  const standing = (conclusion: string) =>
    judgeReceipt(
      action,
      ['e2e'],
      [run({ workflow: action.workflow, jobs: [job({ name: 'verify e2e', conclusion })] })],
      none,
    );
  const fine = { trouble: null, command: expected };

  it('VER-3: a job that passed passes with a detail without trouble, of this very command', () => {
    expect(withTelling(standing('success'), [fine], expected).state).toBe('passed');
  });

  it.each([
    [[], 'no_detail'],
    [['unreadable'], 'unreadable'],
    [[fine, 'unreadable'], 'unreadable'],
    [[fine, { ...fine, trouble: 'mutated' }], 'mutated'],
    [[{ ...fine, trouble: 'artifact_missing' }], 'artifact_missing'],
    [[{ trouble: null, command: 'f'.repeat(64) }], 'other_command'],
  ] as const)('VER-3: after a success %j is %s', (tellings, why) => {
    expect(withTelling(standing('success'), tellings, expected)).toMatchObject({ state: 'failed', why });
  });

  it('VER-3: a forged detail makes no failure, cancel or running job better', () => {
    expect(withTelling(standing('failure'), [fine], expected)).toMatchObject({
      state: 'failed',
      why: 'failed',
    });
    expect(withTelling(standing('failure'), [{ ...fine, trouble: 'timed_out' }], expected).why).toBe(
      'timed_out',
    );
    expect(withTelling(standing('cancelled'), [fine], expected).state).toBe('aborted');
    expect(withTelling(standing('skipped'), [fine], expected).why).toBe('skipped');
  });
});

describe('the word of a pool', () => {
  const told = { trouble: null, exit: 0, signal: null, command: 'c' };
  it.each([
    ['exit 0', {}, 'passed', null],
    ['another exit', { trouble: 'failed', exit: 3 }, 'failed', 'failed'],
    ['a signal', { trouble: 'failed', exit: null, signal: 'SIGKILL' }, 'failed', 'failed'],
    ['a container that told no exit', { trouble: 'failed', exit: null }, 'aborted', 'no_conclusion'],
    ['a runner that was told to stop', { trouble: 'cancelled', exit: null }, 'aborted', 'no_conclusion'],
    ['no start', { trouble: 'not_started', exit: 125 }, 'aborted', 'not_started'],
    ['a time-out', { trouble: 'timed_out', exit: 137 }, 'failed', 'timed_out'],
    ['a changed tree', { trouble: 'mutated' }, 'failed', 'mutated'],
    ['another command', { command: 'd' }, 'failed', 'other_command'],
  ] as const)('VER-3: %s', (_, more, state, why) => {
    expect(judgePool({ ...told, ...more }, 'c')).toMatchObject({ state, why });
  });

  it('TKT-6: what passes by itself is tried again, later each time, and at the third loss no more', () => {
    expect([1, 2, 3].map((losses) => triesAgainAfter('lost', losses))).toEqual([30_000, 60_000, null]);
    expect(triesAgainAfter(aborted('image_missing').why, 1)).toBeNull();
    expect(triesAgainAfter('stopped', 9)).toBe(0);
  });

  it('POOL-1: why nobody runs it names what was not confirmed', () => {
    const pool = { registered: true, runners: 2, containers: 1 };
    expect(poolWait(pool)).toBe('pool_busy');
    expect(poolWait({ ...pool, containers: 0 })).toBe('pool_no_runtime');
    expect(poolWait({ ...pool, runners: 0, containers: 0 })).toBe('pool_away');
    expect(poolWait({ ...pool, registered: false })).toBe('pool_unregistered');
  });
});

describe('names of receipts', () => {
  it('VER-2: ids count from RCP-001, and equal definitions have one digest', () => {
    expect([receiptId(1), receiptId(1234)]).toEqual(['RCP-001', 'RCP-1234']);
    expect(definitionDigest(ci)).toBe(definitionDigest({ ...ci }));
    expect(definitionDigest(ci)).not.toBe(definitionDigest({ ...ci, job: 'e2e' }));
    expect(definitionDigest(action)).not.toBe(definitionDigest({ ...action, env: { A: 'b' } }));
    expect(definitionDigest({ ...action, ports: ['A', 'B'] })).toBe(
      definitionDigest({ ...action, ports: ['B', 'A'] }),
    );
  });

  it('GAT-2: each cause has words that a person reads; a code of another version is shown as it is', () => {
    for (const words of Object.values(WHY)) expect(words).toMatch(/^[a-zA-Z].{5,}[^.]$/);
    expect(receiptWords({ state: 'failed', why: 'mutated', reused: null })).toBe(
      'failed: it changed the tree it ran in',
    );
    expect(receiptWords({ state: 'failed', why: 'later', reused: null })).toBe('failed: later');
    expect(receiptWords({ state: 'passed', why: null, reused: 'work RCP-001' })).toContain('earlier head');
  });
});
