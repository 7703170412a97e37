import { describe, expect, it } from 'vitest';
import { compilePatterns } from '../../app/domain/ownership/match.ts';
import { patternFault } from '../../app/domain/policy/pattern.ts';
import { type Policy, parsePolicy } from '../../app/domain/policy.ts';
import { keyEntries, type RoutedFile, routeFile, routeLevel } from '../../app/domain/routing.ts';
import { cpuNow } from '../helpers/cpu.ts';

function policyOf(more: string): Policy {
  const reading = parsePolicy(
    Buffer.from(`version: 1
reviewers:
  lint: {uses: command, run: [lint, "{path}"], output: sarif, paths: ["**/*.ts"], trusted: true}
  sql: {uses: command, run: [sqlcheck, "{path}"], output: sarif, paths: ["db/"], deletions: true, trusted: true}
  model: {uses: openai, model: m, fallbacks: [spare]}
  spare: {uses: anthropic, model: n}
${more}`),
  );
  if (!reading.ok) throw new Error(JSON.stringify(reading.errors));
  return reading.policy;
}

const file = (path: string, more: Partial<RoutedFile> = {}): RoutedFile => ({
  path,
  from: null,
  kind: 'code',
  lines: null,
  guarded: false,
  deleted: false,
  ...more,
});
const route = (
  policy: Policy,
  path: string,
  level: 'L0' | 'L1' | 'L2' | 'L3',
  more: Partial<RoutedFile> = {},
) => routeFile(policy, { ...file(path, more), level });

describe('levels', () => {
  const policy = policyOf(`levels: {L1: [lint], L2: [lint, model]}
routes:
  - {when: {paths: ["vendor-api/"]}, level: L1}
  - {when: {kinds: [tests]}, level: L1, timeout: 60s}
  - {when: {lines: {min: 500}}, reviewers: [model], timeout: 10m}
`);

  it('ADM-3: the first route that matches names the level; without one the kind does', () => {
    expect(routeLevel(policy, file('src/a.ts'), 'L2')).toBe('L2');
    expect(routeLevel(policy, file('vendor-api/a.ts', { kind: 'tests' }), 'L2')).toBe('L1');
    expect(routeLevel(policy, file('a.test.ts', { kind: 'tests' }), 'L2')).toBe('L1');
  });

  it('OWN-8: a guarded path is reviewed at the highest level the policy names, whatever a route says', () => {
    expect(policy.highest).toBe('L2');
    expect(routeLevel(policy, file('vendor-api/a.ts', { guarded: true }), 'L1')).toBe('L2');
    expect(routeLevel(policyOf(''), file('a.ts', { guarded: true }), 'L1')).toBe('L3');
  });

  it('OWN-9: a pair is held to the rules of both paths: the higher level, all reviewers, the longer time', () => {
    const moved = file('vendor-api/a.ts', { from: 'src/a.ts' });
    expect(routeLevel(policy, moved, 'L2')).toBe('L2');
    const both = policyOf(`routes:
  - {when: {paths: [old/]}, reviewers: [model], timeout: 20m}
  - {when: {paths: [new/]}, reviewers: [lint]}
`);
    expect(route(both, 'new/a.ts', 'L2', { from: 'old/a.ts' })).toEqual({
      level: 'L2',
      reviewers: ['lint', 'model'],
      timeoutMs: 1_200_000,
    });
  });

  it('BLK-6: reviewers are named for the level that was decided, and the level is never changed', () => {
    expect(route(policy, 'vendor-api/a.ts', 'L2')).toMatchObject({
      level: 'L2',
      reviewers: ['lint', 'model'],
    });
    expect(route(policy, 'vendor-api/a.ts', 'L0')).toMatchObject({ level: 'L0', reviewers: [] });
  });
});

describe('reviewers', () => {
  const policy = policyOf(
    'levels: {L1: [lint]}\nroutes: [{when: {lines: {min: 500, max: 900}}, reviewers: [model]}]\n',
  );

  it('REV-1a: a command is given only what its paths match; a level without a reviewer for a file is route_invalid', () => {
    expect(route(policy, 'a.ts', 'L1')).toMatchObject({ reviewers: ['lint'], timeoutMs: 300_000 });
    expect(route(policy, 'README.md', 'L1')).toEqual({
      invalid: 'route_invalid',
      detail: 'none of lint (L1) reads this path',
    });
    expect(route(policy, 'README.md', 'L2')).toMatchObject({ reviewers: ['model', 'spare'] });
    expect(route(policyOf('levels: {L1: [lint]}\n'), 'x.md', 'L1')).toHaveProperty('invalid');
  });

  it('POL-1: a light level that nobody spelled out is the first reviewer that reads the file', () => {
    const open = policyOf('');
    expect(route(open, 'a.ts', 'L1')).toMatchObject({ reviewers: ['lint'] });
    expect(route(open, 'db/1.sql', 'L1')).toMatchObject({ reviewers: ['sql'] });
    expect(route(open, 'README.md', 'L1'), 'a change of documents alone is not route_invalid').toMatchObject({
      reviewers: ['model'],
    });
  });

  it('ADM-3: a route over lines matches within its bounds, and never a file whose lines are unknown', () => {
    expect(route(policy, 'a.ts', 'L1', { lines: 500 })).toMatchObject({ reviewers: ['model'] });
    expect(route(policy, 'a.ts', 'L1', { lines: 901 })).toMatchObject({ reviewers: ['lint'] });
    expect(route(policy, 'a.ts', 'L1', { lines: null })).toMatchObject({ reviewers: ['lint'] });
  });

  it('TKT-5: a deletion goes to models and to commands that take deletions; else it is L0 deleted', () => {
    expect(route(policy, 'a.ts', 'L1', { deleted: true })).toMatchObject({ level: 'L0', reason: 'deleted' });
    expect(route(policy, 'a.ts', 'L2', { deleted: true })).toMatchObject({ reviewers: ['model', 'spare'] });
    expect(route(policy, 'db/1.sql', 'L2', { deleted: true })).toMatchObject({
      reviewers: ['sql', 'model', 'spare'],
    });
  });

  it('REV-1a: a policy without reviewers routes nothing', () => {
    const reading = parsePolicy(Buffer.from('version: 1'));
    if (!reading.ok) throw new Error('invalid');
    expect(route(reading.policy, 'a.ts', 'L2')).toEqual({
      invalid: 'route_invalid',
      detail: 'the policy names no reviewer for L2',
    });
  });

  it('TKT-1: the key holds the entries of the reviewers that take part, and of their fallbacks', () => {
    const entries = keyEntries(policy, ['lint', 'model']);
    expect(entries.reviewers.map((one) => one.name)).toEqual(['lint', 'model']);
    expect(entries.fallbacks.map((one) => one.name)).toEqual(['spare']);
    expect(entries.reviewers[0]?.entry).toMatchObject({ uses: 'command', run: ['lint', '{path}'] });
  });
});

describe('patterns', () => {
  it.each([
    ['src/a.ts', 'src/a.ts', true],
    ['src/a.ts', 'src/a.tsx', false],
    ['src/', 'src/x/y', true],
    ['src/', 'srcx', false],
    ['**', '.github/workflows/x.yml', true],
    ['*.ts', 'src/a.ts', false],
    ['**/*.ts', 'a.ts', true],
    ['**/*.TS', 'a.ts', false],
    ['**/*.{ts,js}', 'x/.hidden.js', true],
    ['a/*/', 'a/b/c/d', true],
    ['caf\u00e9', 'cafe\u0301', false],
  ])('OWN-1: %s on %s: %s', (pattern, path, matches) => {
    expect(patternFault(pattern)).toBeNull();
    expect(compilePatterns([pattern])(path)).toBe(matches);
  });

  it('attack 32: no name makes a policy’s pattern slow, whatever its stars', () => {
    const patterns = [
      '**/*-*-*-*.ts',
      '**/*a*a*a*a*.{ts,tsx}',
      '**/a/**/a/**/a/**/b',
      '*a*a*a*a*b',
      '**/*-*-*.{a,b}',
    ];
    const names = [
      '-a'.repeat(2000),
      'a'.repeat(4000),
      'a/'.repeat(2000),
      '-/'.repeat(2000),
      'a\n'.repeat(2000),
    ];
    for (const pattern of patterns) {
      expect(patternFault(pattern)).toBeNull();
      const covers = compilePatterns([pattern]);
      for (const name of names) {
        const begun = cpuNow();
        expect(covers(`${name}!`)).toBe(false);
        expect(cpuNow() - begun).toBeLessThan(1_000);
      }
    }
    expect(compilePatterns(['**/*-*-*.ts'])('x/a-b-c.ts')).toBe(true);
    expect(compilePatterns(['**/*-*-*.ts'])('x/a-b.ts')).toBe(false);
  });

  it('OWN-1: a path that is no UTF-8 still falls under directories and endings', () => {
    const path = { b64: Buffer.from([0x73, 0x72, 0x63, 0x2f, 0xff, 0x2e, 0x74, 0x73]).toString('base64') };
    expect(compilePatterns(['src/'])(path)).toBe(true);
    expect(compilePatterns(['**/*.ts'])(path)).toBe(true);
    expect(compilePatterns(['docs/'])(path)).toBe(false);
  });
});
