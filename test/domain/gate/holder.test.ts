/** RUN-5: one check for all pull requests on a commit; who holds it, and what the others are told. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { GateConclusion } from '../../../app/domain/gate/decide.ts';
import { heldBy, holderOf, type Sharer } from '../../../app/domain/gate/holder.ts';
import { foldRows } from '../../../app/domain/run-state/fold.ts';
import { emptyState } from '../../../app/domain/run-state/state.ts';
import { FactList } from '../../helpers/facts.ts';
import { a, green, judge } from '../../helpers/gate-facts.ts';

const opened = (reason: 'opened' | 'enrolled' | 'reconciled' = 'opened') =>
  new FactList().add('run.opened', { pull: '1', group_head: null, epoch: 1, author: null, reason });
const allowed = foldRows(green().rows);
const waiting = foldRows(opened().policy().head([a]).rows);
const unread = foldRows(opened().rows);

const verdict = (conclusion: GateConclusion) => ({ ...judge(green()), conclusion });
const one = (name: string, conclusion: GateConclusion, more: Partial<Sharer> = {}) => ({
  name,
  state: allowed,
  verified: true,
  draft: false,
  own: true,
  decision: verdict(conclusion),
  ...more,
});
const holder = (...sharers: ReturnType<typeof one>[]) => holderOf(sharers)?.name;

describe('RUN-5: the check on a commit that several pull requests share', () => {
  it('shows the worst of the allowed ones that are no draft, of equals the first', () => {
    expect(holder(one('a', 'success'), one('b', 'in_progress'), one('c', 'action_required'))).toBe('c');
    expect(holder(one('a', 'success'), one('b', 'failure'), one('c', 'failure'))).toBe('b');
    expect(holder(one('a', 'success'), one('b', 'queued', { draft: true }))).toBe('a');
    expect(holder()).toBeUndefined();
  });

  it('a stranger’s run counts for nothing, whatever it says', () => {
    const stranger = { state: waiting, own: false };
    expect(holder(one('stranger', 'failure', stranger), one('a', 'success'))).toBe('a');
    expect(holder(one('stranger', 'action_required', stranger), one('a', 'queued', { draft: true }))).toBe(
      'a',
    );
    expect(holder(one('unread', 'in_progress', { state: unread, own: false }), one('a', 'success'))).toBe(
      'a',
    );
    expect(holder(one('stranger', 'action_required', stranger)), 'alone it has its own').toBe('stranger');
  });

  it('one just opened from a branch of the repository counts before it was read: its base may be another', () => {
    expect(holder(one('a', 'success'), one('new', 'in_progress', { state: unread }))).toBe('new');
    for (const reason of ['enrolled', 'reconciled'] as const) {
      const old = foldRows(opened(reason).rows);
      expect(
        holder(one('a', 'success'), one('old', 'in_progress', { state: old })),
        'it waits (RUN-10)',
      ).toBe('a');
    }
  });

  it('a run whose ledger does not verify is never overlooked', () => {
    const broken = { state: emptyState(), verified: false, own: false };
    expect(holder(one('a', 'success'), one('broken', 'failure', broken))).toBe('broken');
  });

  it('is green only where every allowed run that is no draft is', () => {
    const any = fc.record({
      conclusion: fc.constantFrom<GateConclusion>(
        'failure',
        'action_required',
        'in_progress',
        'queued',
        'success',
      ),
      draft: fc.boolean(),
      allowed: fc.boolean(),
    });
    fc.assert(
      fc.property(fc.array(any, { minLength: 1, maxLength: 6 }), (runs) => {
        const sharers = runs.map((run, i) =>
          one(String(i), run.conclusion, {
            draft: run.draft,
            state: run.allowed ? allowed : waiting,
            own: false,
          }),
        );
        const counting = runs.filter((run) => run.allowed && !run.draft);
        const shown = holderOf(sharers)?.decision.conclusion;
        if (counting.some((run) => run.conclusion !== 'success')) expect(shown).not.toBe('success');
        else if (counting.length > 0) expect(shown).toBe('success');
      }),
    );
  });

  it('a run that another one holds is told which, with what clears it', () => {
    const own = judge(green());
    expect(own.conclusion).toBe('success');
    const told = heldBy(own, '#7', 'failure');
    expect(told).toMatchObject({
      conclusion: 'action_required',
      reasons: [{ code: 'shared_head', class: 'person', detail: 'pull request #7 (failure)' }],
      next: [{ code: 'shared_head', who: 'whoever may clear that one' }],
    });
    const failed = { ...own, reasons: [], conclusion: 'queued' as const };
    expect(heldBy(failed, '#7', 'in_progress').conclusion, 'a draft stays one').toBe('queued');
  });
});
