import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { ParseContext } from '../../../../action/reviewers/formats/format.ts';
import { parseSarif } from '../../../../action/reviewers/formats/sarif.ts';

const context: ParseContext = {
  dir: '/work/dir',
  isReviewed: (path) => path === 'src/a b.ts',
  lines: ['one', 'two', 'three'],
  lens: 'security',
  severity: { error: 'high', warning: 'medium', note: 'low' },
};
const at = (uri: string, region: object = { startLine: 2 }) => ({
  locations: [{ physicalLocation: { artifactLocation: { uri }, region } }],
});
const document = (results: object[], rules: object[] = [], more: object = {}) =>
  JSON.stringify({
    version: '2.1.0',
    runs: [{ tool: { driver: { name: 'tool', rules } }, results, ...more }],
  });
const one = (result: object, rules: object[] = []) => {
  const parsed = parseSarif(
    document([{ ruleId: 'r', message: { text: 'said' }, ...at('src/a%20b.ts'), ...result }], rules),
    context,
  );
  if (!parsed.ok) throw new Error(parsed.detail);
  return parsed;
};

describe('REV-1a: SARIF as findings', () => {
  test('the quote is the blob’s lines, the title names the rule', () => {
    expect(one(at('src/a%20b.ts', { startLine: 2, endLine: 3 })).findings).toEqual([
      {
        startLine: 2,
        endLine: 3,
        severity: 'medium',
        lens: 'security',
        title: 'r: said',
        body: 'said',
        quote: 'two\nthree',
        suggestion: null,
      },
    ]);
  });
  test.each([
    [{ level: 'error' }, {}, 'high'],
    [{ level: 'note' }, {}, 'low'],
    [{ level: 'none' }, {}, 'info'],
    [{}, {}, 'medium'],
    [{}, { defaultConfiguration: { level: 'error' } }, 'high'],
    [{ level: 'note' }, { properties: { 'security-severity': '9.1' } }, 'critical'],
    [{ level: 'note' }, { properties: { 'security-severity': 7 } }, 'high'],
    [{ level: 'note' }, { properties: { 'security-severity': '6.9' } }, 'low'],
  ])('severity of %j under rule %j is %s', (result, rule, severity) => {
    expect(one(result, [{ id: 'r', ...rule }]).findings[0]?.severity).toBe(severity);
  });
  test('a location by file URL, absolute path, plain or percent-encoded name is the file', () => {
    for (const uri of [
      'file:///work/dir/src/a%20b.ts',
      '/work/dir/src/a b.ts',
      './src/a b.ts',
      'src/a%20b.ts',
    ])
      expect(one(at(uri)).findings).toHaveLength(1);
  });
  test('another file, no line, a line beyond the file: unplaced, and still counted as reported', () => {
    for (const place of [
      at('/etc/passwd'),
      at('../src/a%20b.ts'),
      at('src/a%20b.ts', {}),
      at('src/a%20b.ts', { startLine: 4 }),
      { locations: [] },
    ])
      expect(one(place)).toMatchObject({ findings: [], unplaced: [expect.any(String)], reported: 1 });
  });
  test('what passed or was suppressed with consent is no finding', () => {
    expect(one({ kind: 'pass' }).reported).toBe(0);
    expect(one({ suppressions: [{ status: 'accepted' }] }).reported).toBe(0);
    expect(one({ suppressions: [{ status: 'rejected' }] }).reported).toBe(1);
  });
  test('REV-10: a run that says it failed, no runs, no results, another version: invalid', () => {
    for (const text of [
      document([], [], { invocations: [{ executionSuccessful: false }] }),
      '{"version":"2.1.0","runs":[]}',
      '{"version":"2.1.0","runs":[{"tool":{"driver":{"name":"t"}}}]}',
      document([]).replace('2.1.0', '2.0.0'),
      `${document([])}${document([])}`,
      'null',
      '[]',
    ])
      expect(parseSarif(text, context).ok).toBe(false);
  });
  test('any JSON is parsed or refused, never thrown at', () => {
    fc.assert(
      fc.property(fc.json(), (text) => {
        expect(typeof parseSarif(text, context).ok).toBe('boolean');
      }),
    );
  });
});
