import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parseCheckstyle } from '../../../../action/reviewers/formats/checkstyle.ts';
import { parseEslintJson } from '../../../../action/reviewers/formats/eslint-json.ts';
import type { ParseContext, Parser } from '../../../../action/reviewers/formats/format.ts';
import { parseRdjson } from '../../../../action/reviewers/formats/rdjson.ts';
import { cpuNow } from '../../../helpers/cpu.ts';

const context: ParseContext = {
  dir: '/work/dir',
  isReviewed: (file) => file === 'src/a b.ts',
  lines: ['one', 'two', 'three'],
  lens: 'security',
  severity: { error: 'high', warning: 'medium', note: 'low' },
};
const parsers = { rdjson: parseRdjson, checkstyle: parseCheckstyle, 'eslint-json': parseEslintJson };
type Name = keyof typeof parsers;

/** A diagnostic in each format; every part may be left out. */
type Said = { path?: string; line?: unknown; end?: number; level?: string; message?: string; rule?: string };
const escaped = (text: string) =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;').replaceAll('\n', '&#10;');
const attribute = (name: string, value: unknown) =>
  value === undefined ? '' : ` ${name}="${escaped(String(value))}"`;
const print: Record<Name, (list: Said[]) => string> = {
  rdjson: (list) =>
    JSON.stringify({
      source: { name: 'tool', url: 'https://tool.example' },
      diagnostics: list.map(
        ({ path: file = 'src/a b.ts', line = 2, end, level, message = 'said', rule = 'r' }) => ({
          message,
          location: {
            path: file,
            range: { start: { line, column: 3 }, ...(end ? { end: { line: end } } : {}) },
          },
          ...(level === undefined ? {} : { severity: level.toUpperCase() }),
          code: { value: rule },
        }),
      ),
    }),
  checkstyle: (list) =>
    `<?xml version="1.0" encoding="utf-8"?>\n<checkstyle version="4.3">\n${list
      .map(
        ({ path: file = 'src/a b.ts', line = 2, level, message = 'said', rule = 'r' }) =>
          `  <file name="${escaped(file)}">\n    <error${attribute('line', line)} column="3"${attribute('severity', level)}${attribute('message', message)}${attribute('source', rule)} />\n  </file>\n`,
      )
      .join('')}</checkstyle>\n`,
  'eslint-json': (list) =>
    JSON.stringify([
      { filePath: '/work/dir/src/a b.ts', messages: [], errorCount: 0, warningCount: 0 },
      ...list.map(
        ({ path: file = '/work/dir/src/a b.ts', line = 2, end, level, message = 'said', rule = 'r' }) => ({
          filePath: file,
          messages: [
            {
              ruleId: rule,
              severity: level === 'warning' ? 1 : 2,
              message,
              line,
              column: 3,
              ...(end ? { endLine: end } : {}),
            },
          ],
          suppressedMessages: [],
          errorCount: level === 'warning' ? 0 : 1,
          warningCount: level === 'warning' ? 1 : 0,
          fatalErrorCount: 0,
        }),
      ),
    ]),
};
const read = (name: Name, list: Said[]) => {
  const parsed = parsers[name](print[name](list), context);
  if (!parsed.ok) throw new Error(parsed.detail);
  return parsed;
};
const refused = (parse: Parser, text: string) => {
  const parsed = parse(text, context);
  return parsed.ok ? `taken, with ${parsed.findings.length} findings` : parsed.detail;
};
const names = Object.keys(parsers) as Name[];

describe.each(names)('REV-1a: %s as findings', (name) => {
  test('lines, quote, lens, severity and title are the file’s and the policy’s', () => {
    const { findings, reported } = read(name, [{ level: 'warning' }, { level: 'error', line: 3 }]);
    expect(reported).toBe(2);
    expect(findings.map((f) => [f.startLine, f.severity, f.quote, f.title, f.lens, f.body])).toEqual([
      [2, 'medium', 'two', 'r: said', 'security', 'said'],
      [3, 'high', 'three', 'r: said', 'security', 'said'],
    ]);
  });

  test('REV-10: what has no place in the file is told as text, never dropped', () => {
    const { findings, unplaced, reported } = read(name, [
      { path: 'other.ts' },
      { path: '../outside/src/a b.ts' },
      { path: '/etc/passwd' },
      { line: 0 },
      { line: 99 },
    ]);
    expect(findings).toEqual([]);
    expect(unplaced.map((said) => said.replace(/ \(line.*/, ''))).toEqual(Array(5).fill('r: said'));
    expect(reported).toBe(5);
  });

  test('a message without text is named by its rule', () => {
    const [finding] = read(name, [{ message: '' }]).findings;
    expect([finding?.title, finding?.body]).toEqual(['r', 'r']);
  });

  test('REV-10: cut off anywhere, doubled, empty or of another root, it is no document', () => {
    const whole = print[name]([{}, { line: 3 }]).trimEnd();
    for (let cut = 0; cut < whole.length; cut++)
      expect(refused(parsers[name], whole.slice(0, cut)), `cut at ${cut}`).not.toMatch(/^taken/);
    for (const text of [
      `${whole}\n${whole}`,
      `${whole} and more`,
      '{}',
      '[]',
      'null',
      '""',
      '<a/>',
      '0',
      'OK, no problems',
    ])
      expect(refused(parsers[name], text), text.slice(0, 30)).not.toMatch(/^taken/);
  });

  test('never throws, whatever it is given', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          fc.json(),
          fc.string().map((text) => `<checkstyle>${text}`),
        ),
        (text) => {
          expect(typeof parsers[name](text, context).ok).toBe('boolean');
        },
      ),
      { numRuns: 200 },
    );
  });

  test('linear in its length', () => {
    const many = print[name](Array.from({ length: 20_000 }, () => ({})));
    const from = cpuNow();
    expect(parsers[name](many, context)).toMatchObject({ ok: true, reported: 20_000 });
    expect(cpuNow() - from).toBeLessThan(4000);
  });
});

describe('rdjson', () => {
  const doc = (diagnostic: object, more: object = {}) =>
    parseRdjson(
      JSON.stringify({
        diagnostics: [
          {
            message: 'said',
            location: { path: './src/a b.ts', range: { start: { line: 1 } } },
            ...diagnostic,
          },
        ],
        ...more,
      }),
      context,
    );

  test('severities by name and number, else that of the whole document, else a warning', () => {
    const severityOf = (own: unknown, all?: unknown) => {
      const parsed = doc(
        own === undefined ? {} : { severity: own },
        all === undefined ? {} : { severity: all },
      );
      return parsed.ok ? parsed.findings[0]?.severity : parsed.detail;
    };
    expect(['ERROR', 1, 'WARNING', 2, 'INFO', 3].map((own) => severityOf(own))).toEqual([
      'high',
      'high',
      'medium',
      'medium',
      'low',
      'low',
    ]);
    expect([severityOf('UNKNOWN_SEVERITY', 'ERROR'), severityOf(0), severityOf(undefined, 3)]).toEqual([
      'high',
      'medium',
      'low',
    ]);
    expect(severityOf('FATAL')).toMatch(/^not rdjson: diagnostics.0.severity/);
  });

  test('its end is exclusive: column 1 of a line holds nothing of it', () => {
    const to = (end: object) => {
      const parsed = doc({ location: { path: 'src/a b.ts', range: { start: { line: 1, column: 1 }, end } } });
      return parsed.ok ? parsed.findings[0]?.endLine : parsed.detail;
    };
    expect([to({ line: 3, column: 1 }), to({ line: 3, column: 2 }), to({ line: 9 }), to({})]).toEqual([
      2, 3, 3, 1,
    ]);
  });

  test('a suggestion counts only where it replaces exactly whole lines', () => {
    const suggest = (range: object | undefined, more: object[] = []) => {
      const parsed = doc({
        suggestions: [{ ...(range === undefined ? {} : { range }), text: 'new\n' }, ...more],
      });
      return parsed.ok ? parsed.findings[0]?.suggestion : parsed.detail;
    };
    expect(suggest({ start: { line: 1 }, end: { line: 1 } })).toBe('new');
    expect(suggest({ start: { line: 1, column: 2 }, end: { line: 1, column: 3 } })).toBeNull();
    expect(suggest({ start: { line: 2 } })).toBeNull();
    expect(suggest(undefined)).toBeNull();
    expect(suggest({ start: { line: 1 } }, [{ text: 'another' }])).toBeNull();
  });

  test('REV-10: a line of rdjsonl, a list, and a null where the list should be are no document', () => {
    const line = JSON.stringify({ message: 'said', location: { path: 'src/a b.ts' } });
    expect(refused(parseRdjson, line)).toMatch(/^not rdjson: diagnostics/);
    expect(refused(parseRdjson, `[${line}]`)).toMatch(/^not rdjson/);
    expect(refused(parseRdjson, '{"diagnostics": null}')).toMatch(/^not rdjson: diagnostics/);
  });
});

describe('eslint-json', () => {
  const entry = (messages: object[], more: object = {}) =>
    JSON.stringify([
      { filePath: '/work/dir/src/a b.ts', messages, errorCount: messages.length, warningCount: 0, ...more },
    ]);

  test('REV-10: a list without the reviewed file was no look at it', () => {
    expect(refused(parseEslintJson, entry([], { filePath: '/work/dir/other.ts' }))).toMatch(
      /it was not read/,
    );
  });

  test('REV-10: a file that was ignored is no clean file', () => {
    const said = {
      ruleId: null,
      fatal: false,
      severity: 1,
      message: 'File ignored because of a matching ignore pattern.',
    };
    const parsed = parseEslintJson(entry([said], { errorCount: 0, warningCount: 1 }), context);
    expect(parsed).toMatchObject({ ok: true, findings: [], unplaced: [said.message], reported: 1 });
  });

  test('a file that could not be parsed is a finding at its line', () => {
    const said = {
      ruleId: null,
      fatal: true,
      severity: 2,
      message: 'Parsing error: Unexpected token',
      line: 2,
      column: 4,
    };
    expect(parseEslintJson(entry([said], { fatalErrorCount: 1 }), context)).toMatchObject({
      findings: [{ severity: 'high', startLine: 2, title: 'not parsed: Parsing error: Unexpected token' }],
    });
  });

  test('REV-3: counts that disagree, a severity of 0 and an empty path are refused', () => {
    expect(refused(parseEslintJson, entry([], { errorCount: 1 }))).toMatch(/counts/);
    expect(refused(parseEslintJson, entry([{ ruleId: 'r', severity: 0, message: 'm', line: 1 }]))).toMatch(
      /severity/,
    );
    expect(refused(parseEslintJson, entry([], { filePath: '' }))).toMatch(/filePath/);
  });

  test('a line that is no line is no place', () => {
    for (const line of [null, 1.5, -1, 0])
      expect(
        parseEslintJson(entry([{ ruleId: 'r', severity: 2, message: 'm', line }]), context),
      ).toMatchObject({
        findings: [],
        unplaced: ['r: m'],
      });
  });
});

describe('checkstyle', () => {
  const file = (inner: string) => `<checkstyle><file name="src/a b.ts">${inner}</file></checkstyle>`;

  test('XML that declares a document type is refused before anything is expanded or fetched', () => {
    const lol = Array.from({ length: 9 }, (_, i) => `<!ENTITY l${i + 1} "${`&l${i};`.repeat(10)}">`).join('');
    const bomb = `<?xml version="1.0"?><!DOCTYPE c [<!ENTITY l0 "lol">${lol}]><checkstyle><file name="&l9;"/></checkstyle>`;
    const fetched = `<!DOCTYPE c [<!ENTITY x SYSTEM "file:///etc/passwd">]>${file('<error line="1" message="&x;"/>')}`;
    for (const text of [bomb, fetched, `<!DOCTYPE checkstyle>${file('')}`])
      expect(refused(parseCheckstyle, text)).toMatch(/document type/);
    expect(refused(parseCheckstyle, file('<error line="1" message="&x;"/>'))).toMatch(/not well-formed/);
  });

  test('severities; an unknown or missing one counts as an error', () => {
    const severityOf = (text: string) => {
      const parsed = parseCheckstyle(file(`<error line="1" ${text} message="m"/>`), context);
      return parsed.ok ? parsed.findings[0]?.severity : parsed.detail;
    };
    expect(
      [
        'severity="error"',
        'severity="warning"',
        'severity="info"',
        'severity="ignore"',
        'severity="fatal"',
        '',
      ].map(severityOf),
    ).toEqual(['high', 'medium', 'low', 'info', 'high', 'high']);
  });

  test('character references are text; a byte order mark and comments do not matter', () => {
    const text = `\ufeff<?xml version='1.0' encoding='UTF-8'?>\n<!-- c -->${file('<error line="1" message="a &lt; b&#10;more" source="r"/>')}`;
    expect(parseCheckstyle(text, context)).toMatchObject({
      findings: [{ title: 'r: a < b', body: 'a < b\nmore' }],
    });
  });

  test('REV-10: an exception, an unknown element, text, another encoding and a nameless file are refused', () => {
    for (const [text, why] of [
      [file('<exception>java.lang.NullPointerException</exception>'), /exception/],
      [file('<failure/>'), /<failure> in <file>/],
      ['<checkstyle><error line="1"/></checkstyle>', /<error> in <checkstyle>/],
      ['<file name="a"/>', /<file> in <nothing>/],
      ['<testsuites></testsuites>', /<testsuites>/],
      [file('oops'), /text between/],
      [`<?xml version="1.0" encoding="ISO-8859-1"?>${file('')}`, /encoding/],
      ['<checkstyle><file/></checkstyle>', /without a name/],
    ] as const)
      expect(refused(parseCheckstyle, text)).toMatch(why);
  });
});

describe('a real program', () => {
  test.each([
    ['rdjson', 'rdjson'],
    ['checkstyle', 'checkstyle'],
  ] as const)('biome prints %s that is read as it means it', (reporter, name) => {
    const dir = realpathSync(mkdtempSync(path.join(tmpdir(), 'cs-formats-')));
    try {
      mkdirSync(path.join(dir, 'src'));
      writeFileSync(path.join(dir, 'biome.json'), '{"linter":{"enabled":true}}');
      const text = 'const a = 1;\nif (a == 2) {\n  debugger;\n}\n';
      writeFileSync(path.join(dir, 'src/bad.ts'), text);
      const bin = path.resolve('node_modules/.bin/biome');
      const { stdout } = spawnSync(bin, ['lint', `--reporter=${reporter}`, 'src/bad.ts'], {
        cwd: dir,
        encoding: 'utf8',
      });
      const parsed = parsers[name](stdout, {
        ...context,
        dir,
        isReviewed: (one) => one === 'src/bad.ts',
        lines: text.split('\n'),
      });
      expect(parsed).toMatchObject({
        ok: true,
        findings: [
          { startLine: 2, severity: 'high', quote: 'if (a == 2) {' },
          { startLine: 3, severity: 'high', quote: '  debugger;' },
        ],
        unplaced: [],
      });
    } finally {
      rmSync(dir, { recursive: true, force: true });
    }
  });
});
