/** Findings as other tools read them: by the official schema, by our own reader, whatever their text says. */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import Ajv4 from 'ajv-draft-04';
import addFormats from 'ajv-formats';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseSarif } from '../../../action/reviewers/formats/sarif.ts';
import {
  type ListedFinding,
  listedRefs,
  listFindings,
  listUnreviewed,
} from '../../../app/domain/finding/listed.ts';
import { asciiJson, type SarifSource, sarifOf } from '../../../app/domain/finding/sarif.ts';
import { encodePath } from '../../../app/domain/path.ts';
import { foldRows } from '../../../app/domain/run-state/fold.ts';
import { commit, FactList, sha } from '../../helpers/facts.ts';
import { a, b } from '../../helpers/gate-facts.ts';

const schema = createRequire(import.meta.url).resolve(
  '@microsoft/jest-sarif/lib/schemas/sarif-2.1.0-rtm.5.json',
);
// one pattern of the schema is none under the flag u
const ajv = new Ajv4.default({ strict: false, allErrors: true, unicodeRegExp: false });
addFormats.default(ajv);
const validate = ajv.compile(JSON.parse(readFileSync(schema, 'utf8')));
/** The log as a reader gets it, valid by the official schema. */
function log(...of: Parameters<typeof sarifOf>) {
  const text = asciiJson(sarifOf(...of));
  expect(text).toMatch(/^[\n -~]*$/);
  const parsed = JSON.parse(text);
  expect(validate(parsed) ? [] : validate.errors).toEqual([]);
  return { text, run: parsed.runs[0] };
}

const source: SarifSource = {
  run: 'run-1',
  repositoryUrl: 'https://github.example/o/n',
  head: commit('a'),
  base: commit('b'),
  verdict: 'failure',
  ledger: { rows: 12, hash: sha('head') },
  tool: { version: '1.2.3', url: 'https://example.org' },
};
const finding = (more: Partial<ListedFinding> = {}): ListedFinding => ({
  number: 1,
  fingerprint: sha('one'),
  severity: 'high',
  lens: 'correctness',
  state: 'open',
  blocks: true,
  path: 'src/a b.ts',
  side: 'head',
  startLine: 2,
  endLine: 3,
  blob: commit('c'),
  reviewer: 'model',
  command: false,
  title: 'It is wrong',
  body: 'And why.',
  quote: 'const b = 1;',
  suggestion: null,
  answer: null,
  ended: null,
  ...more,
});
const ended = (reason: string, text: string | null) => ({
  reason,
  text,
  by: '9',
  at: '2026-11-29T12:00:00.000Z',
});

describe('REV-6, FND-1: findings as SARIF', () => {
  it('what stands is a result, what was dismissed a suppressed one, what is over is counted beside', () => {
    const all = [
      finding(),
      finding({ number: 2, state: 'answered', severity: 'medium', blocks: false, answer: 'It is meant.' }),
      finding({ number: 3, state: 'dismissed', ended: ended('dismissed', 'It is a mark.') }),
      finding({ number: 4, state: 'fixed', ended: ended('anchor_gone', null) }),
      finding({ number: 5, state: 'ungrounded' }),
      finding({ number: 6, severity: 'critical', lens: 'security', suggestion: 'const b = 2;' }),
    ];
    const { run } = log(source, all, []);
    expect(
      run.results.map((one: { ruleId: string; level: string; properties: { finding: string } }) => [
        one.properties.finding,
        one.ruleId,
        one.level,
      ]),
    ).toEqual([
      ['F1', 'correctness/high', 'error'],
      ['F2', 'correctness/medium', 'warning'],
      ['F3', 'correctness/high', 'error'],
      ['F6', 'security/critical', 'error'],
    ]);
    expect(run.properties).toMatchObject({
      run: 'run-1',
      head: commit('a'),
      ledger: { rows: 12 },
      leftOut: { fixed: 1, withdrawn: 0, ungrounded: 1 },
    });
    const suppressed = run.results.map((one: { suppressions: unknown }) => one.suppressions);
    expect(suppressed).toEqual([
      [],
      [],
      [{ kind: 'external', status: 'accepted', justification: 'It is a mark.' }],
      [],
    ]);
    expect(run.results[0]).toMatchObject({
      message: { text: 'It is wrong\n\nAnd why.' },
      partialFingerprints: { 'countersign/v1': sha('one') },
      locations: [
        {
          physicalLocation: {
            artifactLocation: { uri: 'src/a%20b.ts', uriBaseId: '%SRCROOT%' },
            region: { startLine: 2, endLine: 3, snippet: { text: 'const b = 1;' } },
          },
        },
      ],
    });
    expect(run.results[3].fixes[0].artifactChanges[0].replacements[0]).toEqual({
      deletedRegion: { startLine: 2, endLine: 3 },
      insertedContent: { text: 'const b = 2;' },
    });
    expect(run.tool.driver).toMatchObject({ name: 'Countersign', version: '1.2.3' });
    for (const [i, one] of run.results.entries()) {
      expect(run.tool.driver.rules[one.ruleIndex].id, `result ${i}`).toBe(one.ruleId);
    }
    const scores = run.tool.driver.rules.map((rule: { id: string; properties: Record<string, string> }) => [
      rule.id,
      rule.properties['security-severity'],
    ]);
    expect(scores).toEqual([
      ['correctness/high', undefined],
      ['correctness/medium', undefined],
      ['security/critical', '9.5'],
    ]);
    expect(run.versionControlProvenance).toEqual([
      { repositoryUri: source.repositoryUrl, revisionId: commit('a'), mappedTo: { uriBaseId: '%SRCROOT%' } },
    ]);
  });

  it('a file that was not looked at is said, and then the run is not called a success', () => {
    const missing = log(
      source,
      [],
      [
        { path: 'a.ts', standing: 'unavailable', why: 'quota' },
        { path: 'package-lock.json', standing: 'unreviewed', why: 'lockfile' },
      ],
    ).run.invocations[0];
    expect(missing.executionSuccessful).toBe(false);
    expect(
      missing.toolExecutionNotifications.map((one: { level: string; message: { text: string } }) => [
        one.level,
        one.message.text,
      ]),
    ).toEqual([
      ['error', 'a.ts could not be reviewed (quota)'],
      ['note', 'package-lock.json is not reviewed, as the policy has it (lockfile)'],
    ]);
    const known = [{ path: 'package-lock.json', standing: 'unreviewed', why: 'lockfile' }] as const;
    expect(log(source, [], known).run.invocations[0].executionSuccessful).toBe(true);
    expect(log({ ...source, head: null }, [], []).run.invocations[0].executionSuccessful).toBe(false);
  });

  it('attack 30: text of an attacker is text: no link, no control, no name that is a scheme or leaves the tree', () => {
    const { run, text } = log(
      source,
      [
        finding({
          title: '[click](https://evil.example) \u202e',
          body: '\u001b[2J\u{e0041} [1](2)',
          path: encodePath(Buffer.from('javascript:alert(1)#?\xff', 'latin1')),
        }),
      ],
      [],
    );
    expect(run.results[0].message.text).toMatch(/^\\\[click\\\]\(https/);
    expect(run.results[0].message.text).toContain('\\[1\\]');
    expect(text).toContain('\\u202e');
    const { uri } = run.results[0].locations[0].physicalLocation.artifactLocation;
    expect(uri).toBe('javascript%3Aalert%281%29%23%3F%FF');
  });

  it('any finding makes a valid log, and our own reader of SARIF finds it again at its place with its severity', () => {
    const text = fc.string({ unit: 'binary', maxLength: 60 }).map((said) => said.toWellFormed());
    const listed = fc.record({
      severity: fc.constantFrom(...(['critical', 'high', 'medium', 'low'] as const)),
      state: fc.constantFrom(...(['open', 'answered', 'dismissed', 'fixed'] as const)),
      title: fc.option(text),
      body: fc.option(text),
      quote: fc.option(text),
      suggestion: fc.option(text),
      startLine: fc.integer({ min: 1, max: 5 }),
      side: fc.constantFrom('head' as const, 'base' as const),
    });
    fc.assert(
      fc.property(
        fc.array(listed, { maxLength: 5 }),
        fc.uint8Array({ minLength: 1, maxLength: 12 }),
        (some, name) => {
          const path = encodePath(name.map((byte) => (byte === 0 ? 1 : byte)));
          const all = some.map((more, i) =>
            finding({ ...more, path, lens: 'security', number: i + 1, endLine: more.startLine }),
          );
          const { text: written, run } = log(source, all, []);
          const shown = all.filter(({ state }) => state !== 'fixed');
          expect(run.results).toHaveLength(shown.length);
          const parsed = parseSarif(written, {
            dir: '/work/dir',
            isReviewed: () => true,
            lines: ['1', '2', '3', '4', '5'],
            lens: 'security',
            severity: { error: 'high', warning: 'medium', note: 'low' },
          });
          if (!parsed.ok) throw new Error(parsed.detail);
          const standing = shown.filter(({ state }) => state !== 'dismissed');
          expect(parsed.findings.map((one) => [one.startLine, one.severity])).toEqual(
            standing.map((one) => [one.startLine, one.severity]),
          );
        },
      ),
      { numRuns: 60 },
    );
  });
});

describe('FND-1: the list of findings', () => {
  it('every finding is in it once, with its state and why, and the files that nobody read beside', () => {
    const list = new FactList().policy().block('work').head([a, b]).allow();
    list.end(a, { verdict: 'findings', findings: [sha('finding 1'), sha('finding 2')] });
    list.finding(1, a).finding(2, a, { severity: 'low' });
    const state = foldRows(list.rows);
    const one = state.findings.get(1);
    if (one === undefined) throw new Error('no finding');
    const texts = new Map([
      [one.title, 'T\u202e'],
      [one.body, null],
    ]);
    expect(listedRefs(state, list.rows)).toContain(one.title);
    const listed = listFindings(state, list.rows, [1], texts);
    expect(listed.map(({ number, state, blocks }) => [number, state, blocks])).toEqual([
      [1, 'open', true],
      [2, 'open', false],
    ]);
    expect(listed[0]).toMatchObject({ title: 'T\ufffd', body: null, ended: null });
    expect(listUnreviewed(state)).toEqual([{ path: b.path, standing: 'pending', why: null }]);
  });
});
