import { describe, expect, test } from 'vitest';
import type { GatePolicy } from '../../../app/domain/gate/decide.ts';
import { clauseName } from '../../../app/domain/people/clear.ts';
import { DEFAULT_PEOPLE, type PeopleRules } from '../../../app/domain/people/rules.ts';
import { commit, decided, FactList, HEAD, sha } from '../../helpers/facts.ts';
import { a, HOUR, judge, NOW, policy, reason } from '../../helpers/gate-facts.ts';

const OTHER = commit('e');
const guardedPath = decided('CODEOWNERS', { block: 'guarded', ownership: 'guarded' });
const rules = (more: Partial<PeopleRules>): GatePolicy => ({
  ...policy,
  people: { ...DEFAULT_PEOPLE, ...more },
});
const codes = (list: FactList, with_ = policy, now = NOW) =>
  judge(list, {}, now, with_).reasons.map((one) => one.code);

describe('guarded paths', () => {
  const guarded = () => new FactList().policy().made().head([guardedPath]).allow().end(guardedPath);
  const approve = { clause: 'guarded', permission: 'maintain' };

  test('OWN-8: a guarded path waits for maintain or admin on this head; an act on another head clears nothing', () => {
    expect(codes(guarded())).toEqual(['guarded']);
    expect(codes(guarded().act({ ...approve, permission: 'write' }))).toEqual(['guarded']);
    expect(codes(guarded().act({ ...approve, head: OTHER }))).toEqual(['guarded']);
    for (const permission of ['maintain', 'admin']) {
      const decision = judge(guarded().act({ ...approve, permission }));
      expect(decision).toMatchObject({ conclusion: 'success', cleared: [{ code: 'guarded' }] });
    }
  });

  test('attack 22: a permission that is no permission, a bot, an app or the author clear nothing', () => {
    for (const permission of ['none', 'read', 'triage', 'write', 'owner', 'ADMIN'])
      expect(codes(guarded().act({ ...approve, permission }))).toEqual(['guarded']);
    for (const kind of ['bot', 'app'] as const)
      expect(codes(guarded().act({ ...approve, kind }))).toEqual(['guarded']);
    expect(codes(guarded().act({ ...approve, by: '1' }))).toEqual(['guarded']);
  });

  test('GAT-6: who wrote, committed or pushed a part of it cannot clear it; who made another part can', () => {
    const both = (by: string) =>
      new FactList()
        .policy()
        .block('work')
        .made(['1'], {
          groups: [
            { accounts: ['3'], heads: [HEAD], unattributed: false, paths: ['CODEOWNERS'] },
            { accounts: ['4'], heads: [HEAD], unattributed: false, paths: null },
          ],
        })
        .head([a, guardedPath])
        .allow()
        .end(a)
        .end(guardedPath)
        .act({ ...approve, by });
    expect(codes(both('3'))).toEqual(['guarded']);
    expect(codes(both('4'))).toEqual([]);
  });

  test('GAT-6: who turns out to have pushed it has approved their own, however late that is told', () => {
    const list = guarded().act(approve);
    expect(codes(list)).toEqual([]);
    expect(codes(list.add('run.pushed', { head: HEAD, before: null, pusher: '2' }))).toEqual(['guarded']);
  });

  test('OWN-8: what another policy guards from now on was not approved before it did', () => {
    const owned = decided('src/b.ts');
    const list = () =>
      new FactList()
        .policy()
        .block('work')
        .made()
        .head([guardedPath, owned])
        .allow()
        .end(guardedPath)
        .end(owned)
        .act(approve);
    expect(codes(list())).toEqual([]);
    const guardedNow = decided('src/b.ts', { block: 'guarded', ownership: 'guarded' });
    const later = list().policy().head([guardedPath, guardedNow]).end(guardedNow);
    expect(judge(later).reasons).toMatchObject([{ code: 'guarded', paths: ['src/b.ts'], count: 1 }]);
    expect(codes(later.act(approve))).toEqual([]);
    // read again as what it was: nothing is asked anew
    expect(codes(later.head([guardedPath, guardedNow]))).toEqual([]);
  });

  test('GAT-6: people.solo lets the only person with write act, only while the policy says so', () => {
    const own = (solo: boolean) => guarded().act({ ...approve, by: '1', solo, self: true });
    expect(codes(own(true))).toEqual(['guarded']);
    expect(codes(own(true), rules({ solo: true }))).toEqual([]);
    expect(codes(own(false), rules({ solo: true }))).toEqual(['guarded']);
  });

  test('GAT-6: a permission that the policy asks is asked of the act, as it was recorded', () => {
    expect(codes(guarded().act(approve), rules({ approve: 'admin' }))).toEqual(['guarded']);
    expect(codes(guarded().act({ ...approve, permission: 'admin' }), rules({ approve: 'admin' }))).toEqual(
      [],
    );
  });

  test('GAT-6: what is taken back clears nothing', () => {
    const list = guarded().act(approve);
    const seq = list.rows.length;
    expect(codes(list.add('human.revoked', { act: 'approve', seq, reason: 'dismissed' }))).toEqual([
      'guarded',
    ]);
  });

  test('GAT-6: a head nobody read yet, or whose makers are not known, is approved by nobody', () => {
    const early = new FactList().policy().made().act(approve).head([guardedPath]).allow().end(guardedPath);
    expect(codes(early)).toEqual(['guarded']);
    const unknown = new FactList().policy().head([guardedPath]).allow().end(guardedPath).act(approve);
    expect(codes(unknown)).toEqual(['guarded']);
  });
});

describe('which head', () => {
  const first = () => new FactList().policy().made().head([guardedPath]).allow().end(guardedPath);
  const approve = { clause: 'guarded', permission: 'maintain' };
  const moved = (list: FactList, path = guardedPath) =>
    list.made(['1'], { head: OTHER }).head([path], { head: OTHER, prior: HEAD }).end(path);
  const judged = (list: FactList, with_ = policy) =>
    judge(list, { head: OTHER }, NOW, with_).reasons.map((one) => one.code);

  test('case 49: another content is unapproved, whatever order things came in', () => {
    const changed = decided('CODEOWNERS', {
      block: 'guarded',
      ownership: 'guarded',
      blob: { base: commit('c'), head: commit('f') },
      key: sha('other key'),
    });
    expect(judged(moved(first().act(approve), changed))).toEqual(['guarded']);
    // recorded late, for the head that was approved
    expect(judged(moved(first(), changed).act(approve))).toEqual(['guarded']);
  });

  test('GAT-6: carry: the same paths, modes and blobs on another head; `none` carries nothing', () => {
    expect(judged(moved(first().act(approve)))).toEqual([]);
    expect(judged(moved(first().act(approve)), rules({ carry: 'none' }))).toEqual(['guarded']);
    for (const more of [
      { mode: { base: '100644', head: '100755' } },
      { blob: { base: commit('9'), head: commit('d') } },
    ])
      expect(judged(moved(first().act(approve), { ...guardedPath, ...more }))).toEqual(['guarded']);
  });

  test('GAT-6: one path more, or one less, is another content', () => {
    const more = first()
      .act(approve)
      .block('work')
      .made(['1'], { head: OTHER })
      .head([guardedPath, a], { head: OTHER })
      .end(a);
    expect(judged(more)).toEqual(['guarded']);
  });

  test('GAT-6: the same head on another base is what it changes there', () => {
    const rebased = { ...guardedPath, blob: { base: commit('8'), head: commit('d') } };
    const list = first()
      .act(approve)
      .made(['1'], { merge_base: commit('7') });
    list.head([rebased], { merge_base: commit('7'), base_ref: 'next' });
    const decision = judge(list, { baseRef: 'next' });
    expect(decision.reasons.map((one) => one.code)).toEqual(['guarded']);
  });

  test('attack 25: an approving review of an older head does not count', () => {
    const clause = { accept_human: [sha('looks right')] };
    const work = decided('src/a.ts', { blob: { base: commit('c'), head: commit('f') }, key: sha('k') });
    const list = new FactList().policy().block('work', clause).made().head([a]).allow().end(a);
    list.made(['1'], { head: OTHER }).head([work], { head: OTHER }).end(work);
    const review = {
      act: 'review',
      verdict: 'approved',
      review: '5',
      submitted: '2026-11-29T12:00:00Z',
    } as const;
    expect(judged(list.act({ ...review, head: HEAD }))).toEqual(['human_check']);
    expect(judged(list.act({ ...review, head: OTHER, review: '6' }))).toEqual([]);
  });
});

describe('clauses and routes', () => {
  const clauses = [sha('looks right'), sha('reads well')];
  const list = () =>
    new FactList().policy().block('work', { accept_human: clauses }).made().head([a]).allow().end(a);
  const review = (by: string, verdict: 'approved' | 'changes_requested', id: string) => ({
    by,
    act: 'review' as const,
    verdict,
    review: id,
    submitted: '2026-11-29T12:00:00Z',
  });

  test('BLK-3: each clause of Accept-Human is asked for by name; a review clears them all', () => {
    const open = judge(list());
    expect(open.reasons).toMatchObject([
      { code: 'human_check', blocks: ['work'], count: 2, detail: 'clause work/1, work/2' },
    ]);
    const one = list().act({ clause: clauseName('work', clauses[0] ?? '') });
    expect(judge(one).reasons).toMatchObject([{ count: 1, detail: 'clause work/2' }]);
    for (const clause of ['human_check', 'block:work', 'guarded,human_check'])
      expect(codes(list().act({ clause })), clause).toEqual([]);
    for (const clause of ['block:other', 'guarded', clauseName('other', clauses[0] ?? ''), 'work'])
      expect(codes(list().act({ clause })), clause).toEqual(['human_check']);
    expect(codes(list().act(review('2', 'approved', '1')))).toEqual([]);
  });

  test('GAT-6: a route asks for a person, whatever block the path is of', () => {
    const routed = decided('src/a.ts', { human: true });
    const asked = () => new FactList().policy().block('work').made().head([routed]).allow().end(routed);
    expect(judge(asked()).reasons).toMatchObject([
      { code: 'human_check', paths: ['src/a.ts'], detail: 'a route asks for a person' },
    ]);
    expect(codes(asked().act(review('2', 'approved', '1')))).toEqual([]);
    expect(codes(asked().act(review('1', 'approved', '1')))).toEqual(['human_check']);
  });

  test('GAT-6: a review clears clauses and routes, never what needs a reason', () => {
    const both = new FactList().policy().made().head([guardedPath]).allow().end(guardedPath);
    expect(codes(both.act({ ...review('2', 'approved', '1'), permission: 'admin' }))).toEqual(['guarded']);
  });

  test('case 48: R approves and comments, R2 asks for changes, R3 is dismissed: only R counts, R2 blocks', () => {
    const approved = list().act(review('2', 'approved', '1'));
    expect(codes(approved)).toEqual([]);
    const objected = approved.act(review('3', 'changes_requested', '2'));
    expect(judge(objected).reasons).toMatchObject([
      { code: 'human_check', detail: expect.stringContaining('a review asks for changes') },
    ]);
    const seq = objected.rows.length;
    expect(codes(objected.add('human.revoked', { act: 'review', seq, reason: 'dismissed' }))).toEqual([]);
    const without = list().act({ ...review('3', 'changes_requested', '2'), permission: 'read' });
    expect(codes(without.act(review('2', 'approved', '3')))).toEqual([]);
  });
});

describe('what turns up later', () => {
  const broken = { ticket: sha('ticket src/a.ts'), session: 's', detail: 'wrote a file' };
  const list = () => new FactList().policy().block('work').made().head([a]).allow().end(a);

  test('GAT-6: an approval covers the rule breaks and conflicts that it knew of', () => {
    const known = list().add('rule.break', broken).act({ clause: 'rule_break' });
    expect(codes(known)).toEqual([]);
    expect(codes(known.add('rule.break', broken))).toEqual(['rule_break']);
    const conflict = { ticket: broken.ticket, grant: 1, first: sha('1'), second: sha('2') };
    expect(codes(list().act({ clause: 'conflict' }).add('ticket.conflict', conflict))).toEqual(['conflict']);
    expect(codes(list().add('ticket.conflict', conflict).act({ clause: 'block:work' }))).toEqual([]);
  });

  test('REV-7: a rule break waits for its person over pushes and other reviewers, and who looked has looked for good', () => {
    const next = decided('src/a.ts', {
      key: sha('another key'),
      blob: { base: commit('c'), head: commit('e') },
    });
    const pushed = (from: FactList) => {
      const to = commit('f');
      from
        .head([next], { head: to })
        .made(['1'], { head: to })
        .end(next, { ticket: sha('next ticket') });
      return judge(from, { head: to }).reasons.map((one) => one.code);
    };
    expect(pushed(list())).toEqual([]);
    expect(pushed(list().add('rule.break', broken)), 'a push is no word of a person').toEqual(['rule_break']);
    expect(pushed(list().add('rule.break', broken).act({ clause: 'rule_break' }))).toEqual([]);
    expect(pushed(list().add('rule.break', broken).act({ clause: 'rule_break', by: '1' }))).toEqual([
      'rule_break',
    ]);
    const gone = list().add('rule.break', broken);
    const other = decided('src/z.ts');
    const away = commit('9');
    gone.head([other], { head: away }).made(['1'], { head: away }).end(other);
    expect(judge(gone, { head: away }).reasons, 'nothing of it is in the change').toEqual([]);
    const back = commit('8');
    gone
      .head([next], { head: back })
      .made(['1'], { head: back })
      .end(next, { ticket: sha('third') });
    expect(judge(gone, { head: back }).reasons.map((one) => one.code)).toEqual(['rule_break']);
  });

  test('BLK-7: nothing to review and files that the policy does not let through are a person’s to answer for', () => {
    const binary = decided('logo.png', { level: 'L0', reason: 'binary' });
    const skipped = () => new FactList().policy().block('work').made().head([binary]).allow();
    expect(codes(skipped())).toEqual(['unreviewed_files', 'nothing_to_review']);
    const clause = 'nothing_to_review,unreviewed_files';
    const decision = judge(skipped().act({ clause }));
    expect(decision).toMatchObject({
      conclusion: 'success',
      counts: { files: 1, counted: 0, unreviewed: 1 },
      cleared: [{ code: 'unreviewed_files' }, { code: 'nothing_to_review' }],
    });
    expect(codes(skipped().act({ clause, by: '1' }))).toHaveLength(2);
    const empty = new FactList().policy().made().head([]).allow();
    expect(codes(empty)).toEqual(['nothing_to_review']);
  });
});

describe('outages', () => {
  const waiting = () => new FactList().policy().block('work').made().head([a]).allow();
  const down = { openTickets: 1, reasons: [reason('provider_down', NOW + 6 * HOUR)] };
  const at = (ms: number) => new Date(NOW + ms).toISOString();
  const approved = (ms: number, more = {}) => {
    const list = waiting();
    list.at = at(ms);
    return list.act({ clause: 'ticket_unavailable,unreviewed_files', ...more });
  };
  const later = (list: FactList, with_ = policy) => judge(list, down, NOW + HOUR, with_);

  test('POOL-3: after gate.patience a person answers for the missing files, shown as such', () => {
    const decision = later(approved(HOUR / 2));
    expect(decision).toMatchObject({
      conclusion: 'success',
      reasons: [],
      cleared: [{ code: 'ticket_unavailable' }],
      counts: { files: 1, counted: 0 },
    });
  });

  test('POOL-3: not before, not where the policy says block, not by who made it, not by a blanket word', () => {
    const outage = ['provider_down', 'reviews_pending'];
    const left = (list: FactList, with_ = policy) => later(list, with_).reasons.map((one) => one.code);
    expect(left(approved(HOUR / 2 - 1))).toEqual(outage);
    expect(left(approved(HOUR / 2), { ...policy, onUnavailable: 'block' })).toEqual(outage);
    expect(left(approved(HOUR / 2, { by: '1' }))).toEqual(outage);
    expect(left(approved(HOUR / 2, { clause: 'human_check,budget' }))).toEqual(outage);
  });

  test('POOL-3: the way out is told once the patience is over', () => {
    const next = (now: number) => judge(waiting(), down, now).next[0]?.what;
    expect(next(NOW)).not.toContain('/approve');
    expect(next(NOW + HOUR / 2)).toContain('`/approve unreviewed REASON`');
  });

  test('POOL-3: what ended without a result is cleared at once, and only what had ended', () => {
    const ended = () => waiting().end(a, { end: 'too_large' });
    expect(codes(ended())).toEqual(['ticket_unavailable']);
    expect(codes(ended().act({ clause: 'ticket_unavailable' }))).toEqual([]);
    const before = waiting().act({ clause: 'ticket_unavailable' }).end(a, { end: 'too_large' });
    expect(codes(before)).toEqual(['ticket_unavailable']);
  });

  test('POOL-3: a finding that a later review raises blocks all the same', () => {
    const list = approved(HOUR / 2)
      .finding(1, a)
      .end(a, { verdict: 'findings', findings: [sha('finding 1')] });
    expect(judge(list, {}, NOW + HOUR).reasons.map((one) => one.code)).toEqual(['open_findings']);
  });

  test('ADM-2: a budget that is used up has the same way out', () => {
    const spent = () => waiting().end(a, { end: 'budget' });
    expect(codes(spent())).toEqual(['budget']);
    for (const clause of ['budget', 'ticket_unavailable', 'block:work'])
      expect(codes(spent().act({ clause })), clause).toEqual([]);
  });
});
