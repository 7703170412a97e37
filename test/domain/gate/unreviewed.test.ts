import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { conclude, decideGate } from '../../../app/domain/gate/decide.ts';
import { CLASSES, isReasonCode } from '../../../app/domain/gate/reason.ts';
import { gateDigest, recordGate } from '../../../app/domain/gate/record.ts';
import { refusedUnreviewed } from '../../../app/domain/gate/unreviewed.ts';
import type { DecidedPath } from '../../../app/domain/ledger/row-fields.ts';
import { rowKinds } from '../../../app/domain/ledger/row-kinds.ts';
import { foldRows } from '../../../app/domain/run-state/fold.ts';
import { decided, FactList, sha } from '../../helpers/facts.ts';
import { a, b, codes, facts, green, judge, NOW, policy, reason } from '../../helpers/gate-facts.ts';

describe('what is not reviewed', () => {
  const l0 = (path: string, why: string) => decided(path, { level: 'L0', reason: why });
  test('BLK-7: an empty list never passes: nothing changed, or nothing of it is reviewed', () => {
    expect(judge(new FactList().policy().head([]).allow())).toMatchObject({ conclusion: 'action_required' });
    expect(codes(new FactList().policy().head([]).allow())).toEqual(['nothing_to_review']);
    expect(
      codes(
        new FactList()
          .policy()
          .head([l0('b.ts', 'moved')])
          .allow(),
      ),
    ).toEqual(['nothing_to_review']);
  });

  test('BLK-7: each unreviewed path needs its reason in the policy', () => {
    const list = new FactList()
      .policy()
      .head([a, l0('img.png', 'binary'), l0('gen.ts', 'generated')])
      .allow()
      .end(a);
    expect(judge(list)).toMatchObject({ conclusion: 'failure' });
    expect(judge(list).reasons[0]).toMatchObject({
      code: 'unreviewed_files',
      paths: ['img.png'],
      detail: 'binary 1',
    });
    expect(
      decideGate(foldRows(list.rows), { ...policy, allowUnreviewed: ['binary', 'generated'] }, facts(), NOW)
        .conclusion,
    ).toBe('success');
  });

  test('BLK-7: a lockfile passes only together with its manifest, beside it or below', () => {
    const lock = [{ path: 'package-lock.json', reason: 'lockfile' }];
    const refused = (paths: string[], locks = lock) => refusedUnreviewed(locks, paths, ['lockfile']).length;
    expect(refused(['src/a.ts'])).toBe(1);
    expect(refused(['package.json'])).toBe(0);
    expect(refused(['packages/x/package.json'])).toBe(0);
    expect(refused(['package.json'], [{ path: 'sub/package-lock.json', reason: 'lockfile' }])).toBe(1);
    expect(refused(['app/x.csproj'], [{ path: 'app/packages.lock.json', reason: 'lockfile' }])).toBe(0);
    expect(refused(['package.json'], [{ path: 'unknown.lock', reason: 'lockfile' }])).toBe(1);
    expect(refused(['package.json'], [{ path: 'constructor', reason: 'lockfile' }])).toBe(1);
  });
});

describe('properties', () => {
  const severity = fc.constantFrom('critical', 'high', 'medium', 'low', 'info');
  const ends = fc.constantFrom(
    'none',
    'approve',
    'findings',
    'partial',
    'timeout',
    'bad_output',
    'cannot_review',
  );
  const paths = fc.array(
    fc.record({
      end: ends,
      severity,
      level: fc.constantFrom('L0', 'L1', 'L3'),
      ownership: fc.constantFrom('owned', 'orphan', 'guarded'),
    }),
    { maxLength: 6 },
  );
  const operational = fc.subarray([
    'paused',
    'provider_down',
    'git_unavailable',
    'setup_incomplete',
    'permissions_missing',
    'no_merge_base',
  ]);
  const build = (
    given: readonly { end: string; severity: string; level: string; ownership: string }[],
    allowed: boolean,
  ) => {
    const files = given.map((one, i) =>
      decided(`f${i}.ts`, {
        level: one.level as DecidedPath['level'],
        ownership: one.ownership as DecidedPath['ownership'],
        ...(one.level === 'L0' ? { reason: 'generated', key: null } : {}),
      }),
    );
    const list = new FactList().policy().head(files);
    if (allowed) list.allow();
    for (const [i, file] of files.entries()) {
      const one = given[i];
      if (one === undefined || file.key === null || one.end === 'none') continue;
      if (one.end === 'findings') list.finding(i + 1, file, { severity: one.severity as 'high' });
      if (one.end === 'timeout') list.end(file, { end: 'timeout', final: false });
      else if (one.end === 'bad_output') list.end(file, { end: 'bad_output' });
      else
        list.end(file, {
          verdict: one.end === 'partial' ? 'approve' : (one.end as 'approve'),
          partial: one.end === 'partial',
          findings: one.end === 'findings' ? [sha(`finding ${i + 1}`)] : [],
        });
    }
    return list;
  };

  test('GAT-3: success only if every wanted key has a complete result and nothing blocks or holds', () => {
    fc.assert(
      fc.property(
        paths,
        operational,
        fc.boolean(),
        fc.boolean(),
        fc.nat(2),
        (given, held, allowed, draft, openTickets) => {
          const decision = judge(build(given, allowed), {
            reasons: held.map((code) => reason(code)),
            draft,
            openTickets,
          });
          expect(['queued', 'in_progress', 'success', 'failure', 'action_required']).toContain(
            decision.conclusion,
          );
          if (decision.conclusion !== 'success') return;
          expect(held).toEqual([]);
          expect(allowed && !draft && openTickets === 0).toBe(true);
          expect(given.some((one) => one.level !== 'L0')).toBe(true);
          for (const one of given) {
            expect(one.ownership).toBe('owned');
            if (one.level === 'L0') continue;
            expect(['approve', 'findings']).toContain(one.end);
            if (one.end === 'findings') expect(['medium', 'low', 'info']).toContain(one.severity);
          }
        },
      ),
      { numRuns: 300 },
    );
  });

  test('GAT-3: taking a reason away never makes a verdict worse', () => {
    const rank = ['success', 'action_required', 'in_progress', 'failure'];
    const order = { broken: 4, held: 3, machine: 2, wrong: 1, person: 0 };
    const reasons = fc.array(fc.record({ class: fc.constantFrom(...CLASSES), past: fc.boolean() }), {
      minLength: 1,
      maxLength: 8,
    });
    fc.assert(
      fc.property(reasons, fc.nat(), (all, pick) => {
        const fewer = all.filter((_, i) => i !== pick % all.length);
        const top = (list: typeof all) =>
          Math.max(
            -1,
            ...list.map((one) => order[one.class === 'machine' && one.past ? 'wrong' : one.class]),
          );
        // the class that decides never rises, and success stays success
        expect(top(fewer)).toBeLessThanOrEqual(top(all));
        if (conclude(all) === 'success') expect(conclude(fewer)).toBe('success');
        expect(rank).toContain(conclude(fewer));
      }),
    );
  });

  test('LED-2: whatever is decided fits a row of its kind, and equal verdicts have equal digests', () => {
    fc.assert(
      fc.property(paths, operational, fc.boolean(), (given, held, allowed) => {
        const state = foldRows(build(given, allowed).rows);
        const from = facts({ reasons: held.map((code) => reason(code)) });
        const decision = decideGate(state, policy, from, NOW);
        const data = recordGate(state, decision, from, NOW);
        expect(rowKinds['gate.decided'].parse(data)).toEqual(data);
        expect(data.digest).toBe(gateDigest(decideGate(state, policy, from, NOW + 1)));
        expect(data.reasons.every((one) => isReasonCode(one.code))).toBe(true);
      }),
      { numRuns: 200 },
    );
  });

  test('LED-2: thousands of long paths stay within a row of 32 KiB', () => {
    const files = Array.from({ length: 400 }, (_, i) =>
      decided(`${'deep/'.repeat(200)}file-${i}.ts`, {
        block: `block-${'x'.repeat(50)}-${i}`,
        ownership: 'orphan',
      }),
    );
    const state = foldRows(new FactList().policy().head(files).rows);
    const decision = decideGate(state, policy, facts(), NOW);
    expect(decision.reasons.find((one) => one.code === 'orphan')?.count).toBe(400);
    expect(Buffer.byteLength(JSON.stringify(recordGate(state, decision, facts(), NOW)))).toBeLessThan(30_000);
  });
});

test('PUB-2: the digest moves with verdict, reasons and blocking findings, never with a count', () => {
  const one = judge(new FactList().policy().head([a, b]).allow());
  const two = judge(new FactList().policy().head([a, b]).allow().end(a));
  expect(gateDigest(one)).toBe(gateDigest(two));
  expect(gateDigest(judge(green()))).not.toBe(gateDigest(two));
  expect(gateDigest(judge(green().finding(1, a)))).not.toBe(
    gateDigest(judge(green().finding(1, a).finding(2, b))),
  );
});
