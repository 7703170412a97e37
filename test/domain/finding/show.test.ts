import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { compileShow } from '../../../app/domain/finding/show.ts';
import { decideGate } from '../../../app/domain/gate/decide.ts';
import { SEVERITIES } from '../../../app/domain/review.ts';
import { foldRows } from '../../../app/domain/run-state/fold.ts';
import { makeReport } from '../../../app/domain/summary/report.ts';
import { decided, FactList, sha } from '../../helpers/facts.ts';
import { facts, NOW, policy } from '../../helpers/gate-facts.ts';

const of = (severity: (typeof SEVERITIES)[number], lens: string, path: string) => ({ severity, lens, path });

describe('REV-6: review.show', () => {
  test('filters by severity, lens and path, all of them together', () => {
    const shows = compileShow({ severity: 'medium', lenses: ['security'], paths: ['src/**', '*.md'] });
    expect(shows(of('medium', 'security', 'src/a.ts'), false)).toBe(true);
    expect(shows(of('low', 'security', 'src/a.ts'), false)).toBe(false);
    expect(shows(of('high', 'style', 'src/a.ts'), false)).toBe(false);
    expect(shows(of('high', 'security', 'lib/a.ts'), false)).toBe(false);
    expect(compileShow({ severity: 'info' })(of('info', 'any', 'x'), false)).toBe(true);
    expect(compileShow(null)(of('info', 'any', 'x'), false)).toBe(true);
  });

  test('no filter hides a finding that blocks', () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...SEVERITIES),
        fc.constantFrom(...SEVERITIES),
        fc.option(fc.array(fc.constantFrom('security', 'tests'), { minLength: 1 }), { nil: undefined }),
        fc.option(fc.constant(['docs/**']), { nil: undefined }),
        (severity, least, lenses, paths) =>
          compileShow({ severity: least, lenses, paths })(of(severity, 'correctness', 'src/a.ts'), true),
      ),
    );
  });

  test('a report lists what is shown and counts what is not; the verdict knows nothing of it', () => {
    const path = decided('src/a.ts');
    const list = new FactList().policy().allow().head([path]).end(path, { verdict: 'findings' });
    list.finding(1, path, { severity: 'critical', lens: 'tests' });
    list.finding(2, path, { severity: 'low' }).finding(3, path, { severity: 'low', lens: 'tests' });
    const state = foldRows(list.rows);
    const decision = decideGate(state, policy, facts(), NOW);
    const rest = {
      published: { run: 'r', seq: 1, hash: 'h', note: 'n' },
      places: { run: 'https://cs.test/runs/r', repository: 'https://github.test/acme/x' },
      shared: [],
    };
    const shows = compileShow({ severity: 'info', lenses: ['correctness'] });
    const report = makeReport(state, decision, new Map([[sha('title 1'), 'one']]), rest, shows);
    expect(report.findings.map((one) => one.number)).toEqual([1, 2]);
    expect(report.hidden).toBe(1);
    expect(report.blocks.map((one) => [one.blocking, one.other])).toEqual([[1, 2]]);
    expect(makeReport(state, decision, new Map(), rest)).not.toHaveProperty('hidden');
  });
});
