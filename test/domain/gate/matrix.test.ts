import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { gateName } from '../../../app/domain/check.ts';
import type { GateDecision, GateFacts, GatePolicy } from '../../../app/domain/gate/decide.ts';
import { isOverridable } from '../../../app/domain/gate/override.ts';
import { CLASSES, REASONS, type ReasonCode } from '../../../app/domain/gate/reason.ts';
import type { RowData } from '../../../app/domain/ledger/row-kinds.ts';
import { DEFAULT_PEOPLE } from '../../../app/domain/people/rules.ts';
import { commit, decided, FactList, HEAD, sha } from '../../helpers/facts.ts';
import { HOUR, judge, NOW, policy, reason } from '../../helpers/gate-facts.ts';

const a = decided('src/a.ts');
const strict: GatePolicy = { ...policy, people: { ...DEFAULT_PEOPLE, override: 'maintain' } };
const CONCLUSIONS = new Set(['queued', 'in_progress', 'success', 'failure', 'action_required']);
const codes = (decision: GateDecision) => decision.reasons.map((one) => one.code);

/** One reason of each class, by what a step says of the run. */
const ONE_OF = {
  broken: 'no_merge_base',
  held: 'paused',
  machine: 'dispatch_stalled',
  wrong: 'verify_failed',
  person: 'shared_head',
} as const satisfies Record<(typeof CLASSES)[number], ReasonCode>;

const bits = (n: number, of: number) => Array.from({ length: of }, (_, i) => ((n >> i) & 1) === 1);

describe('every state of the gate', () => {
  test('GAT-3: all classes together, past or not, draft, mode, ledger, unread, approved, overridden', () => {
    let states = 0;
    const greens = new Set<string>();
    for (let n = 0; n < 2 ** 12; n++) {
      const [
        broken,
        held,
        machine,
        wrong,
        person,
        past,
        draft,
        advisory,
        lost,
        unread,
        approved,
        overridden,
      ] = bits(n, 12);
      const present = CLASSES.filter((_, i) => [broken, held, machine, wrong, person][i] === true);
      const list = new FactList()
        .policy('valid', advisory === true ? 'advisory' : 'enforce')
        .block('work', { accept_human: [sha('looks right')] })
        .made()
        .head([a], unread === true ? { head: commit('f') } : {})
        .allow()
        .end(a);
      if (approved === true) list.act({ clause: 'human_check' });
      if (overridden === true) list.act({ act: 'override', permission: 'maintain' });
      const facts: Partial<GateFacts> = {
        draft: draft === true,
        reasons: present.map((name) => reason(ONE_OF[name], NOW + HOUR)),
        ledger: lost === true ? { code: 'ledger_invalid', detail: 'row 3: edited' } : null,
      };
      const decision = judge(list, facts, past === true ? NOW + 2 * HOUR : NOW, strict);
      states += 1;
      expect(CONCLUSIONS.has(decision.conclusion)).toBe(true);
      if (draft === true) expect(decision.conclusion).toBe('queued');
      if (decision.conclusion !== 'success') continue;
      greens.add(JSON.stringify({ present, approved, overridden: decision.overridden != null }));
      expect(decision.reasons).toEqual([]);
      expect([draft, lost, unread, broken, held]).toEqual([false, false, false, false, false]);
      // nothing asked, or a person answered for all of it
      if (decision.overridden == null)
        expect([machine, wrong, person, approved]).toEqual([false, false, false, true]);
      else expect(overridden).toBe(true);
    }
    expect(states).toBe(4096);
    expect(greens.size).toBeGreaterThan(5);
  });

  test('RUN-9: what is advisory never bears the name that a rule can require', () => {
    const list = new FactList().policy('valid', 'advisory').block('work').made().head([a]).allow().end(a);
    const decision = judge(list);
    expect(decision).toMatchObject({ mode: 'advisory', conclusion: 'success' });
    expect(gateName(decision.mode)).not.toBe(gateName('enforce'));
  });
});

describe('/override', () => {
  const list = () =>
    new FactList()
      .policy()
      .block('work', { accept_human: [sha('looks right')] })
      .made()
      .head([a])
      .allow();
  const override = { act: 'override' as const, permission: 'maintain' };

  test('GAT-7: it lets one head through as a state of its own, and says which reasons it took away', () => {
    const decision = judge(list().act(override), {}, NOW, strict);
    expect(decision).toMatchObject({
      conclusion: 'success',
      reasons: [],
      overridden: { codes: ['reviews_pending', 'human_check'] },
      counts: { files: 1, counted: 0 },
    });
    const nothing = new FactList().policy().block('work').made().head([a]).allow().end(a).act(override);
    expect(judge(nothing, {}, NOW, strict)).toMatchObject({ conclusion: 'success', overridden: null });
  });

  test('GAT-7: only where the policy lets somebody, by that permission, not by who made it, not by a bot', () => {
    const held = ['reviews_pending', 'human_check'];
    expect(codes(judge(list().act(override)))).toEqual(held);
    expect(codes(judge(list().act({ ...override, permission: 'write' }), {}, NOW, strict))).toEqual(held);
    expect(codes(judge(list().act({ ...override, by: '1' }), {}, NOW, strict))).toEqual(held);
    expect(codes(judge(list().act({ ...override, kind: 'bot' }), {}, NOW, strict))).toEqual(held);
    const admin: GatePolicy = { ...policy, people: { ...DEFAULT_PEOPLE, override: 'admin' } };
    expect(codes(judge(list().act(override), {}, NOW, admin))).toEqual(held);
    expect(codes(judge(list().act({ ...override, permission: 'admin' }), {}, NOW, admin))).toEqual([]);
  });

  test('GAT-7: this head only, also where its content is the same', () => {
    const other = commit('e');
    const moved = list().act(override).made(['1'], { head: other }).head([a], { head: other, prior: HEAD });
    expect(codes(judge(moved, { head: other }, NOW, strict))).toEqual(['reviews_pending', 'human_check']);
  });

  test('GAT-7: critical findings stay; lower ones do not', () => {
    const found = (severity: RowData<'finding.raised'>['severity']) =>
      list()
        .finding(1, a, { severity })
        .end(a, { verdict: 'findings', findings: [sha('finding 1')] })
        .act(override);
    expect(judge(found('high'), {}, NOW, strict).conclusion).toBe('success');
    expect(judge(found('critical'), {}, NOW, strict)).toMatchObject({
      conclusion: 'failure',
      reasons: [{ code: 'open_findings', findings: [1] }],
      overridden: { codes: ['open_findings', 'human_check'] },
    });
  });

  test('GAT-7: nothing broken, held or unaccounted for', () => {
    for (const [code, entry] of Object.entries(REASONS)) {
      if (entry.class === null || code.startsWith('ledger_')) continue;
      const decision = judge(list().end(a).act(override), { reasons: [reason(code)] }, NOW, strict);
      const stays = !isOverridable({ code: code as ReasonCode, class: entry.class });
      expect(codes(decision), code).toEqual(stays ? [code] : []);
      expect(stays, code).toBe(entry.class === 'broken' || entry.class === 'held' || code === 'coverage_gap');
    }
    const unsaid = new FactList().policy().made().head([a], { files: 2 }).allow().end(a).act(override);
    expect(codes(judge(unsaid, {}, NOW, strict))).toEqual(['coverage_gap']);
  });
});

describe('people without write', () => {
  const acts = fc.record({
    by: fc.constantFrom('1', '2', '3'),
    kind: fc.constantFrom('person' as const, 'bot' as const, 'app' as const),
    act: fc.constantFrom('approve', 'override', 'review', 'rerun', 'claim', 'allow'),
    head: fc.constantFrom(HEAD, commit('e')),
    permission: fc.constantFrom('none', 'read', 'triage', 'unknown'),
    clause: fc.constantFrom(
      null,
      'guarded',
      'human_check',
      'block:work',
      'unreviewed_files,ticket_unavailable',
      'nothing_to_review',
      'conflict',
      'rule_break',
      'budget',
    ),
    solo: fc.boolean(),
    self: fc.boolean(),
    verdict: fc.constantFrom(undefined, 'approved' as const, 'changes_requested' as const),
  });
  const guarded = decided('CODEOWNERS', { block: 'guarded', ownership: 'guarded' });
  const binary = decided('logo.png', { level: 'L0', reason: 'binary' });
  const open: GatePolicy = {
    ...policy,
    patienceMs: 0,
    rounds: 3,
    consensus: [],
    people: { ...DEFAULT_PEOPLE, override: 'maintain', solo: true },
  };

  test('GAT-6: no sequence of what they do or review moves a gate toward green', () => {
    fc.assert(
      fc.property(fc.array(acts, { maxLength: 8 }), fc.boolean(), (sequence, ended) => {
        const list = new FactList()
          .policy()
          .block('work', { accept_human: [sha('looks right')] })
          .made()
          .head([a, guarded, binary])
          .allow();
        list.add('rule.break', { ticket: sha('ticket src/a.ts'), session: 's', detail: 'x' });
        if (ended) list.end(a, { end: 'budget' }).end(guarded);
        const before = judge(list, { openTickets: ended ? 0 : 2 }, NOW + HOUR, open);
        for (const { verdict, ...one } of sequence)
          list.act({
            ...(one as Parameters<FactList['act']>[0]),
            ...(verdict === undefined ? {} : { verdict }),
          });
        const later = judge(list, { openTickets: ended ? 0 : 2 }, NOW + HOUR, open);
        expect(later.reasons.map((one) => [one.code, one.count])).toEqual(
          before.reasons.map((one) => [one.code, one.count]),
        );
        expect(later.cleared).toEqual([]);
        expect(later.overridden).toBeNull();
      }),
      { numRuns: 300 },
    );
  });
});
