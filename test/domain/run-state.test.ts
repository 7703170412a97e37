import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { DecidedPath } from '../../app/domain/ledger/row-fields.ts';
import { filesDigest, gaps, isAllowed, standings } from '../../app/domain/run-state/coverage.ts';
import { foldRow, foldRows } from '../../app/domain/run-state/fold.ts';
import { emptyState, presentHead } from '../../app/domain/run-state/state.ts';
import { commit, decided, FactList, HEAD, sha } from '../helpers/facts.ts';

const a = decided('a.ts');
const b = decided('b.ts');

describe('the fold', () => {
  test('GIT-4: the file set of a head is the fold of the decision rows, and its digest is the head’s', () => {
    const list = new FactList()
      .policy()
      .head([a, b])
      .head([b, decided('c.ts')], { head: commit('e'), prior: HEAD, ancestor: true });
    const state = foldRows(list.rows);
    expect([...state.files.keys()].sort()).toEqual(['b.ts', 'c.ts']);
    expect(presentHead(state)?.files_digest).toBe(filesDigest(state));
    expect(gaps(state)).toEqual([]);
  });

  test('OWN-1: paths are bytes: equal in Unicode form only are two', () => {
    const one = decided('caf\u00e9.ts');
    const two = decided('cafe\u0301.ts');
    const bytes = decided({ b64: Buffer.from([0x66, 0xff]).toString('base64') });
    const state = foldRows(new FactList().policy().head([one, two, bytes]).rows);
    expect(state.files.size).toBe(3);
    expect(gaps(state)).toEqual([]);
  });

  test('FND-1: a finding is in one state; a dismissal sticks; what comes back is open again', () => {
    const list = new FactList().policy().head([a]).finding(1, a).finding(2, a);
    const end = (finding: number, state: 'fixed' | 'dismissed') =>
      list.add('finding.ended', { finding, state, reason: 'left_the_change', head: HEAD, text: null });
    end(1, 'fixed');
    end(2, 'dismissed');
    expect([...foldRows(list.rows).findings.values()].map((one) => one.state)).toEqual([
      'fixed',
      'dismissed',
    ]);
    list.finding(1, a).finding(2, a);
    expect([...foldRows(list.rows).findings.values()].map((one) => one.state)).toEqual(['open', 'dismissed']);
    expect(gaps(foldRows(list.rows))).toEqual([]);
  });

  test('FND-1: what does not add up is named: a lost row, one finding under two numbers, an end without a beginning', () => {
    const base = () => new FactList().policy().head([a]).finding(1, a);
    expect(gaps(foldRows(base().finding(2, a, { fingerprint: sha('finding 1') }).rows))).toEqual([
      'F2 is F1 under another number',
    ]);
    expect(gaps(foldRows(base().finding(1, a, { fingerprint: sha('x') }).rows))[0]).toContain(
      'another finding',
    );
    expect(gaps(foldRows(base().add('finding.answered', { finding: 9, text: sha('t') }).rows))[0]).toContain(
      'never raised',
    );
    const rows = base().rows.filter((row) => row.kind !== 'decision');
    expect(gaps(foldRows(rows)).length).toBeGreaterThan(0);
  });

  test('TKT-2: each path is in exactly one standing', () => {
    const c = decided('c.ts');
    const d = decided('d.ts', { level: 'L0', reason: 'moved' });
    const e = decided('e.ts', { key: null });
    const list = new FactList()
      .policy()
      .head([a, b, c, d, e])
      .end(a)
      .end(b, { end: 'truncated' })
      .end(c, { end: 'quota', final: false });
    expect(standings(foldRows(list.rows)).map((one) => [one.file.path, one.standing, one.why])).toEqual([
      ['a.ts', 'counted', null],
      ['b.ts', 'unavailable', 'truncated'],
      ['c.ts', 'pending', 'quota'],
      ['d.ts', 'unreviewed', 'moved'],
      ['e.ts', 'keyless', null],
    ]);
  });

  test('RUN-10: `/allow author` ends at the first later head that touches a guarded path, for good', () => {
    const guardedPath = decided('AGENTS.md', { block: 'guarded', ownership: 'guarded' });
    const [two, three] = [commit('2'), commit('3')];
    const list = new FactList()
      .policy()
      .head([decided('src/a.ts')])
      .add('run.allowed', { rule: 'person', scope: 'author', head: HEAD });
    const allowed = () => isAllowed(foldRows(list.rows));
    list.head([decided('src/a.ts')], { head: two, prior: HEAD });
    expect(allowed()).toBe(true);
    list.head([decided('src/a.ts'), guardedPath], { head: three, prior: two });
    expect(allowed()).toBe(false);
    list.head([decided('src/a.ts')], { head: commit('4'), prior: three });
    expect(allowed(), 'taking it out again brings no consent back').toBe(false);
    list.head([decided('src/a.ts')], { head: HEAD, prior: commit('4') });
    expect(allowed(), 'the head that was allowed is').toBe(true);
    // allowed with a guarded path in sight: for that head, and later ones without
    const seen = new FactList().policy().head([guardedPath]);
    seen.add('run.allowed', { rule: 'person', scope: 'author', head: HEAD });
    expect(isAllowed(foldRows(seen.rows))).toBe(true);
    seen.head([decided('src/a.ts')], { head: two, prior: HEAD });
    expect(isAllowed(foldRows(seen.rows))).toBe(true);
  });

  test('RUN-10: consent of a head, of an author, and of a person until a guarded path is touched', () => {
    const guarded = decided('CODEOWNERS', { block: 'guarded', ownership: 'guarded' });
    const later = (paths: DecidedPath[], rule: 'same_repository' | 'person', scope: 'head' | 'author') =>
      isAllowed(
        foldRows(
          new FactList()
            .policy()
            .head([a])
            .add('run.allowed', { rule, scope, head: HEAD })
            .head(paths, { head: commit('e') }).rows,
        ),
      );
    expect(later([a], 'person', 'head')).toBe(false);
    expect(later([a], 'person', 'author')).toBe(true);
    expect(later([a, guarded], 'person', 'author')).toBe(false);
    expect(later([a, guarded], 'same_repository', 'author')).toBe(true);
    expect(isAllowed(emptyState())).toBe(false);
  });

  test('RUN-7: closed and reopened; sessions add up', () => {
    const session = {
      id: 's',
      reviewer: 'r',
      provider: null,
      model: null,
      end: 'complete' as const,
      tokens_in: 3,
      tokens_out: 2,
      cost_micro: 7,
      ms: 5,
    };
    const list = new FactList()
      .policy()
      .head([a])
      .end(a, { sessions: [session, session] })
      .add('run.closed', { reason: 'closed' });
    expect(foldRows(list.rows).closed?.reason).toBe('closed');
    expect(foldRows(list.add('run.reopened', { head: HEAD }).rows)).toMatchObject({
      closed: null,
      usage: { sessions: 2, tokensIn: 6, tokensOut: 4, costMicro: 14, ms: 10 },
    });
  });

  test('GAT-1: folding on from any row gives what folding all of them gives', () => {
    const list = new FactList()
      .policy()
      .block('work')
      .head([a, b])
      .allow()
      .end(a)
      .finding(1, b)
      .end(b, { verdict: 'findings', findings: [sha('finding 1')] })
      .head([b], { head: commit('e') });
    const whole = foldRows(list.rows);
    fc.assert(
      fc.property(fc.nat(list.rows.length), (cut) => {
        const state = foldRows(list.rows.slice(0, cut));
        for (const row of list.rows.slice(cut)) foldRow(state, row);
        expect(state).toEqual(whole);
      }),
    );
  });

  test('LED-8: a row that does not follow the last one is a gap, not a crash', () => {
    const list = new FactList().policy().head([a]).allow().end(a);
    const state = foldRows(list.rows.filter((row) => row.seq !== 4));
    expect(gaps(state)[0]).toBe('row 5 does not follow 3');
  });
});
