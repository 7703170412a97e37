import { describe, expect, test } from 'vitest';
import { conclude, type GateFacts } from '../../app/domain/gate/decide.ts';
import { CLASSES, REASONS, type ReasonClass } from '../../app/domain/gate/reason.ts';
import { commit, decided, FactList, HEAD, sha } from '../helpers/facts.ts';
import { a, b, codes, green, HOUR, judge, NOW, reason } from '../helpers/gate-facts.ts';

describe('what is said to be under way', () => {
  const waiting = () => new FactList().policy().block('work').block('other').head([a, b]).allow();

  test('GAT-2: where nothing moves by itself no review "ends by itself"', () => {
    expect(codes(waiting())).toEqual(['reviews_pending']);
    for (const code of ['setup_incomplete', 'paused', 'stopped'])
      expect(codes(waiting(), { reasons: [reason(code)] }), code).toEqual([code]);
    expect(codes(new FactList().policy().block('work').head([a]))).toEqual(['needs_allow']);
    expect(codes(waiting(), { reasons: [reason('permissions_missing')] })).toContain('reviews_pending');
  });

  test('GAT-2: a head that could not be read is not said to be read', () => {
    const unread = new FactList().policy().allow();
    expect(codes(unread)).toContain('reviews_pending');
    for (const code of ['no_merge_base', 'git_unavailable'])
      expect(codes(unread, { reasons: [reason(code, NOW + HOUR)] }), code).not.toContain('reviews_pending');
  });

  test('GAT-3: a draft without tickets sleeps; with tickets it is read', () => {
    expect(judge(waiting(), { draft: true })).toMatchObject({ conclusion: 'queued', reasons: [] });
    expect(codes(waiting(), { draft: true, openTickets: 2 })).toEqual(['reviews_pending']);
  });

  test('POOL-3: past the deadline of an outage the files that waited are ticket_unavailable', () => {
    const down = { reasons: [reason('provider_down', NOW + 6 * HOUR)] };
    expect(judge(waiting(), down).reasons.map((one) => one.code)).toEqual([
      'provider_down',
      'reviews_pending',
    ]);
    const late = judge(waiting(), down, NOW + 6 * HOUR);
    expect(late.conclusion).toBe('failure');
    expect(late.reasons.map((one) => [one.code, one.paths])).toEqual([
      ['provider_down', []],
      ['ticket_unavailable', ['src/a.ts', 'src/b.ts']],
    ]);
  });
});

describe('the table of reasons', () => {
  const spec: Record<ReasonClass, string> = {
    broken: 'config_invalid bad_after dependency_cycle no_merge_base ledger_invalid ledger_unverifiable',
    held: 'needs_allow not_enrolled setup_incomplete permissions_missing paused stopped killed',
    machine: 'reviews_pending verify_pending git_unavailable provider_down dispatch_stalled',
    wrong:
      'open_findings verify_failed unowned_change overlap orphan coverage_gap unreviewed_files ticket_unavailable',
    person: 'human_check guarded rule_break rounds_exhausted nothing_to_review budget conflict shared_head',
  };
  test('GAT-2: every code of the rule is in the table with its class, and no other', () => {
    const wanted = Object.entries(spec).flatMap(([kind, list]) =>
      list.split(' ').map((code) => [code, kind]),
    );
    const table = Object.entries(REASONS).map(([code, entry]) => [code, entry.class]);
    expect(new Map(table as [string, string][])).toEqual(
      new Map([...wanted, ['dependency_open', null]] as [string, string][]),
    );
    expect(table).toHaveLength(35);
  });

  test('GAT-2: each says what it is, what clears it and who may', () => {
    for (const entry of Object.values(REASONS)) {
      for (const text of [entry.what, entry.clears, entry.who]) expect(text.length).toBeGreaterThan(3);
      expect(entry.what).not.toMatch(/\.$/);
    }
  });

  const verdict = {
    broken: 'failure',
    held: 'action_required',
    machine: 'in_progress',
    wrong: 'failure',
    person: 'action_required',
  };
  for (const first of CLASSES) {
    for (const second of CLASSES) {
      for (const past of [false, true]) {
        test(`GAT-3: ${first} with ${second}${past ? ', the machine past its deadline' : ''}`, () => {
          const effective = [first, second].map((kind) => (kind === 'machine' && past ? 'wrong' : kind));
          const winner = CLASSES.find((kind) => effective.includes(kind)) ?? 'broken';
          const reasons = [first, second].map((kind) => ({ class: kind, past: past && kind === 'machine' }));
          expect(conclude(reasons)).toBe(verdict[winner]);
        });
      }
    }
  }

  for (const [code, entry] of Object.entries(REASONS)) {
    if (entry.class === null) continue;
    test(`GAT-3: ${code} alone on a run that is green otherwise is ${verdict[entry.class]}, a draft is queued`, () => {
      const ledger =
        code === 'ledger_invalid' || code === 'ledger_unverifiable'
          ? { code, detail: 'row 3: edited' }
          : null;
      const given = ledger === null ? { reasons: [reason(code)] } : { ledger: ledger as GateFacts['ledger'] };
      const decision = judge(green(), given);
      expect(decision.conclusion).toBe(verdict[entry.class as ReasonClass]);
      expect(decision.reasons.map((one) => one.code)).toEqual([code]);
      expect(decision.next).toEqual([
        {
          code,
          what: expect.stringContaining(entry.clears),
          who: entry.who,
          untilMs: decision.reasons[0]?.untilMs,
        },
      ]);
      expect(judge(green(), { ...given, draft: true }).conclusion).toBe('queued');
    });
  }
});

describe('verdicts', () => {
  test('GAT-3: a reason of a version that we do not know, or rows without a policy, are no success', () => {
    const unknown = judge(green(), { reasons: [reason('frobnicated', NOW + HOUR)] });
    expect(unknown).toMatchObject({ conclusion: 'failure', reasons: [{ code: 'coverage_gap' }] });
    expect(unknown.reasons[0]?.detail).toContain('frobnicated');
    for (const code of ['toString', '__proto__', 'constructor', ''])
      expect(judge(green(), { reasons: [reason(code)] }).conclusion).toBe('failure');
    const bare = new FactList().head([a]).allow().end(a);
    expect(judge(bare, {}, NOW, null)).toMatchObject({
      conclusion: 'failure',
      reasons: [{ code: 'config_invalid' }],
    });
    expect(judge(bare).conclusion).toBe('failure');
  });

  test('GAT-3: every changed path counted on this head and no reason: success', () => {
    expect(judge(green())).toMatchObject({
      conclusion: 'success',
      reasons: [],
      counts: { files: 2, counted: 2, unreviewed: 0 },
    });
  });

  test('GAT-3: no success while one wanted key has no counting result, whatever else ended', () => {
    const list = new FactList().policy().head([a, b]).allow().end(a);
    expect(judge(list)).toMatchObject({ conclusion: 'in_progress', dueAtMs: NOW + 6 * HOUR });
    expect(judge(list).reasons[0]).toMatchObject({ code: 'reviews_pending', count: 1, paths: ['src/b.ts'] });
  });

  test('GAT-3: past the deadline what is pending fails, and nothing else changes it by itself', () => {
    const list = new FactList().policy().head([a, b]).allow().end(a);
    expect(judge(list, {}, NOW + 6 * HOUR)).toMatchObject({ conclusion: 'failure', dueAtMs: null });
  });

  test('GAT-3: the deadline counts from when work could begin: the head, consent that came late, a rerun', () => {
    const late = new FactList().policy().head([a]);
    late.at = '2026-11-29T20:00:00.000Z';
    expect(judge(late.allow(), {}, NOW + 8 * HOUR)).toMatchObject({
      conclusion: 'in_progress',
      dueAtMs: NOW + 14 * HOUR,
    });
    const again = green();
    again.at = '2026-11-30T12:00:00.000Z';
    again.add('human.acted', {
      act: 'rerun',
      head: HEAD,
      permission: 'write',
      clause: null,
      paths: [],
      self: false,
      text: null,
    });
    expect(judge(again, { openTickets: 2 }, NOW + 24 * HOUR).conclusion).toBe('in_progress');
  });

  test('TKT-2: a transient end is pending, a final one is unavailable with its cause, a partial one never approves', () => {
    const list = () => new FactList().policy().head([a, b]).allow().end(a);
    expect(codes(list().end(b, { end: 'timeout', final: false }))).toEqual(['reviews_pending']);
    const ended = judge(list().end(b, { end: 'bad_output' }));
    expect(ended).toMatchObject({ conclusion: 'failure' });
    expect(ended.reasons[0]).toMatchObject({
      code: 'ticket_unavailable',
      detail: 'bad_output 1',
      paths: ['src/b.ts'],
    });
    expect(judge(list().end(b, { partial: true, verdict: 'approve' })).reasons[0]).toMatchObject({
      code: 'ticket_unavailable',
      detail: 'partial 1',
    });
    expect(judge(list().end(b, { verdict: 'cannot_review' })).reasons[0]).toMatchObject({
      detail: 'cannot_review 1',
    });
    expect(codes(list().end(b, { end: 'budget' }))).toEqual(['budget']);
  });

  test('RUN-4: a later failure of a key takes back nothing; a review after a failure counts', () => {
    expect(judge(green().end(b, { end: 'timeout', final: true, round: 1 })).conclusion).toBe('success');
    const list = new FactList()
      .policy()
      .head([a])
      .allow()
      .end(a, { end: 'worker_error' })
      .end(a, { round: 1 });
    expect(judge(list).conclusion).toBe('success');
  });

  test('RUN-4: a result counts for every head that wants its key, and for no other content', () => {
    const changed = decided('src/b.ts', { block: 'other', key: sha('new content') });
    const list = green().head([a, changed], { head: commit('e'), prior: HEAD, ancestor: true });
    const decision = judge(list, { head: commit('e') });
    expect(decision.reasons[0]).toMatchObject({ code: 'reviews_pending', paths: ['src/b.ts'] });
    const back = list.head([a, b], { head: commit('f'), prior: commit('e'), ancestor: true });
    expect(judge(back, { head: commit('f') }).conclusion).toBe('success');
  });

  test('BLK-6: a result made at another level than the recorded one never counts', () => {
    const list = new FactList().policy().head([a]).allow().end(a, { level: 'L2' });
    expect(judge(list).reasons[0]).toMatchObject({ code: 'ticket_unavailable', detail: 'bad_decision 1' });
  });

  test('TKT-1, AUT-3: a result of other content than was decided under its key never counts, late or not', () => {
    const read = (blob: { base: string | null; head: string | null }) => ({ blob });
    const right = new FactList().policy().head([a]).allow().end(a, read(a.blob));
    expect(judge(right).conclusion).toBe('success');
    for (const blob of [
      { ...a.blob, head: commit('9') },
      { ...a.blob, base: commit('9') },
      { ...a.blob, head: null },
    ]) {
      const wrong = new FactList().policy().head([a]).allow().end(a, read(blob));
      expect(judge(wrong).reasons[0]).toMatchObject({ code: 'ticket_unavailable', detail: 'bad_decision 1' });
      // the head left its content, the result came, and the content is back
      const away = new FactList().policy().head([a]).allow();
      away.head([b], { head: commit('e'), prior: HEAD, ancestor: false }).end(a, read(blob));
      away.head([a], { head: commit('f'), prior: commit('e'), ancestor: false }).allow(commit('f'));
      expect(judge(away, { head: commit('f') }).conclusion).not.toBe('success');
    }
  });

  test('GAT-4: rows of an earlier head or another base say nothing about what was told of', () => {
    for (const more of [{ head: commit('e') }, { baseRef: 'release' }]) {
      const decision = judge(green(), more);
      expect(decision).toMatchObject({ conclusion: 'in_progress', counts: { files: 0, counted: 0 } });
      expect(decision.reasons[0]).toMatchObject({
        code: 'reviews_pending',
        detail: 'reading the pull request',
      });
    }
    expect(
      judge(
        new FactList().add('run.opened', {
          pull: '1',
          group_head: null,
          epoch: 1,
          author: null,
          reason: 'opened',
        }),
      ).conclusion,
    ).toBe('in_progress');
  });

  test('GAT-3: open tickets hold a green back: a rerun is undecided again', () => {
    expect(judge(green(), { openTickets: 2 })).toMatchObject({ conclusion: 'in_progress' });
  });

  test('GAT-3: findings block when open or answered, grounded, at or above the bar', () => {
    const at = (severity: 'critical' | 'high' | 'medium', state: 'open' | 'ungrounded' = 'open') =>
      judge(green().finding(1, a, { severity, state }));
    expect(at('critical')).toMatchObject({ conclusion: 'failure', blocking: [1] });
    expect(at('high').reasons[0]).toMatchObject({ code: 'open_findings', findings: [1] });
    expect(at('medium')).toMatchObject({ conclusion: 'success', blocking: [] });
    expect(at('critical', 'ungrounded').conclusion).toBe('success');
    const answered = green()
      .finding(1, a)
      .add('finding.answered', { finding: 1, text: sha('why') });
    expect(judge(answered).conclusion).toBe('failure');
    for (const state of ['fixed', 'dismissed', 'withdrawn'] as const) {
      const over = green()
        .finding(1, a)
        .add('finding.ended', { finding: 1, state, reason: 'x', head: HEAD, text: null });
      expect(judge(over).conclusion).toBe('success');
    }
  });

  test('GAT-3: under way, blocking findings are counted already', () => {
    const list = new FactList()
      .policy()
      .head([a, b])
      .allow()
      .finding(1, a)
      .end(a, { verdict: 'findings', findings: [sha('finding 1')] });
    expect(judge(list)).toMatchObject({ conclusion: 'in_progress', blocking: [1] });
  });

  test('FND-1: a result whose finding was never raised is a coverage gap', () => {
    const list = new FactList()
      .policy()
      .head([a])
      .allow()
      .end(a, { verdict: 'findings', findings: [sha('lost')] });
    expect(judge(list)).toMatchObject({ conclusion: 'failure' });
    expect(codes(list)).toEqual(['coverage_gap']);
  });

  test('GIT-4: a file set that is not what the head promised is a coverage gap', () => {
    for (const more of [{ files: 3 }, { files_digest: sha('other') }])
      expect(codes(new FactList().policy().head([a, b], more).allow().end(a).end(b))).toEqual([
        'coverage_gap',
      ]);
  });

  test('RUN-10: without consent the run waits for a person', () => {
    const list = new FactList().policy().head([a]);
    expect(judge(list)).toMatchObject({ conclusion: 'action_required' });
    expect(codes(list)[0]).toBe('needs_allow');
    expect(codes(list.allow(commit('f'), 'head'))[0]).toBe('needs_allow');
    expect(codes(list.allow(HEAD, 'head'))).toEqual(['reviews_pending']);
  });

  test('RUN-9: an invalid policy names its line; an absent one is not enrolled; a lost snapshot is never replaced', () => {
    const rows = (state: 'valid' | 'invalid' | 'absent') =>
      new FactList().policy(state).head([a]).allow().end(a);
    expect(judge(rows('invalid'), {}, NOW, null).reasons[0]).toMatchObject({
      code: 'config_invalid',
      detail: 'config_invalid at line 3',
    });
    expect(judge(rows('absent'), {}, NOW, null).reasons[0]?.code).toBe('not_enrolled');
    expect(judge(rows('valid'), {}, NOW, null)).toMatchObject({ conclusion: 'failure' });
  });

  test('OWN-3: unowned, overlapping and orphaned paths are wrong; a claim made after the decision clears them', () => {
    for (const ownership of ['unowned_change', 'overlap', 'orphan'] as const) {
      const path = decided('x.ts', { block: 'unowned', ownership });
      const list = () => new FactList().policy().block('work').head([path]).allow().end(path);
      expect(judge(list())).toMatchObject({ conclusion: 'failure' });
      expect(codes(list())).toEqual([ownership]);
      const claim = { block: 'work', path: 'x.ts', entry: 'file', auto: false, reason: 'command' } as const;
      expect(judge(list().add('block.claimed', claim)).conclusion).toBe('success');
      expect(
        codes(
          list()
            .add('block.claimed', claim)
            .add('block.released', { block: 'work', path: 'x.ts', reason: 'command' }),
        ),
      ).toEqual([ownership]);
      const before = new FactList()
        .policy()
        .block('work')
        .add('block.claimed', claim)
        .head([path])
        .allow()
        .end(path);
      expect(codes(before)).toEqual([ownership]);
    }
  });

  test('BLK-3: a clause that asks for a person waits for one', () => {
    const list = new FactList()
      .policy()
      .block('work', { accept_human: [sha('looks right')] })
      .head([a])
      .allow()
      .end(a);
    expect(judge(list).reasons[0]).toMatchObject({ code: 'human_check', blocks: ['work'] });
  });

  test('LSE-4: conflicting results ask a person until a new round counts', () => {
    const conflict = { ticket: sha('ticket src/a.ts'), grant: 1, first: sha('1'), second: sha('2') };
    expect(codes(green().add('ticket.conflict', conflict))).toEqual(['conflict']);
    expect(codes(green().add('ticket.conflict', conflict).end(a, { round: 1 }))).toEqual([]);
  });

  test('GAT-2: a waiting block has the class of what holds the block it waits for', () => {
    const list = new FactList()
      .policy()
      .block('work')
      .block('other', { after: ['work'] })
      .head([a, b])
      .allow()
      .end(b);
    expect(judge(list).reasons.map((one) => [one.code, one.class])).toEqual([
      ['reviews_pending', 'machine'],
      ['dependency_open', 'machine'],
    ]);
    const wrong = judge(list.finding(1, a).end(a, { verdict: 'findings', findings: [sha('finding 1')] }));
    expect(wrong.reasons.map((one) => [one.code, one.class])).toEqual([
      ['open_findings', 'wrong'],
      ['dependency_open', 'wrong'],
    ]);
    expect(wrong.reasons[1]).toMatchObject({ blocks: ['other'], detail: 'other waits for work' });
  });

  test('LED-8: an unverified ledger counts for nothing: no files, no findings, failure', () => {
    const decision = judge(green().finding(1, a), {
      ledger: { code: 'ledger_invalid', detail: 'row 7: edited' },
    });
    expect(decision).toMatchObject({ conclusion: 'failure', blocking: [], counts: { files: 0 } });
  });
});
