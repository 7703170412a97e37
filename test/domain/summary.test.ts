import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parseComment } from '../../app/domain/command.ts';
import { decideGate, type GateFacts } from '../../app/domain/gate/decide.ts';
import { REASONS } from '../../app/domain/gate/reason.ts';
import { foldRows } from '../../app/domain/run-state/fold.ts';
import { countLines, placeAnnotation } from '../../app/domain/summary/annotation.ts';
import { findingsTitle, renderFindings } from '../../app/domain/summary/findings.ts';
import { LIMIT_BYTES, notesIn, renderReport } from '../../app/domain/summary/render.ts';
import { makeReport, type Report } from '../../app/domain/summary/report.ts';
import { titleOf } from '../../app/domain/summary/title.ts';
import { commit, decided, FactList, HEAD, sha } from '../helpers/facts.ts';
import { policy } from '../helpers/gate-facts.ts';

const GOLDEN = join(import.meta.dirname, '../fixtures/summary');
mkdirSync(GOLDEN, { recursive: true });
const reported = (name: string): Report => {
  const make = golden[name];
  if (make === undefined) throw new Error(name);
  return make();
};
const NOW = Date.parse('2026-11-29T12:00:00.000Z');
const note = `countersign.example/i/5/run/run-1\n14\n${'A'.repeat(43)}=\n\n\u2014 countersign.example ${'B'.repeat(96)}\n`;
const rest: Pick<Report, 'published' | 'places' | 'shared'> = {
  published: { run: 'run-1', seq: 14, hash: sha('head'), note },
  places: { run: 'https://countersign.example/runs/run-1', repository: 'https://github.example/acme/shop' },
  shared: [],
};
const texts = new Map<string, string>([
  [sha('title of login'), 'Add the login form'],
  [sha('title of cleanup'), 'Remove `old` helpers | for @everyone'],
  [sha('title 1'), 'Password is logged'],
  [sha('title 2'), 'Unused variable <b>x</b>'],
  [sha('title 3'), '✅ **Passed**: APPROVED by @maintainer'],
]);
const facts = (more: Partial<GateFacts> = {}): GateFacts => ({
  head: HEAD,
  baseRef: 'main',
  headAtMs: NOW,
  draft: false,
  mode: 'enforce',
  openTickets: 0,
  reasons: [],
  ledger: null,
  ...more,
});
const session = {
  id: 's',
  reviewer: 'model',
  provider: 'openai',
  model: 'm',
  end: 'complete' as const,
  tokens_in: 1200,
  tokens_out: 340,
  cost_micro: 21_000,
  ms: 4_200,
};
const form = decided('src/login/form.ts', { block: 'login', level: 'L2' });
const style = decided('src/login/style.css', { block: 'login' });
const old = decided('src/old helpers.ts', { block: 'cleanup', status: 'D' });
const lock = decided('package-lock.json', { block: 'cleanup', level: 'L0', reason: 'lockfile' });
const manifest = decided('package.json', { block: 'cleanup' });

const rows = () =>
  new FactList().policy().block('login').block('cleanup').head([form, style, old, lock, manifest]).allow();
function report(
  list: FactList,
  more: Partial<GateFacts> = {},
  extra: Partial<typeof rest> & Pick<Report, 'enrol'> = {},
): Report {
  const state = foldRows(list.rows);
  return makeReport(state, decideGate(state, policy, facts(more), NOW), texts, { ...rest, ...extra });
}
const all = (list: FactList) =>
  list
    .end(form, { sessions: [session] })
    .end(style, { sessions: [session] })
    .end(old)
    .end(manifest);

const golden: Record<string, () => Report> = {
  reading: () => report(new FactList(), { head: commit('e') }),
  'under-way': () =>
    report(
      rows()
        .end(form, { sessions: [session] })
        .finding(2, form, { severity: 'low' })
        .end(style, { end: 'timeout', final: false }),
    ),
  passed: () => report(all(rows())),
  'findings-block': () =>
    report(
      all(
        rows()
          .finding(1, form, { severity: 'critical', start_line: 12 })
          .finding(2, style, { severity: 'low' })
          .finding(3, old, { severity: 'high' })
          .finding(4, form, { state: 'ungrounded' }),
      ),
    ),
  'not-enrolled': () =>
    report(
      new FactList().policy('absent'),
      {},
      {
        enrol: {
          repository: 'https://github.com/acme/shop',
          baseRef: 'release/1.x',
          defaultBranch: 'main',
          server: 'https://countersign.example',
        },
      },
    ),
  'needs-allow': () => report(new FactList().policy().block('login').head([form])),
  'provider-down': () =>
    report(rows().end(form), {
      reasons: [
        {
          code: 'provider_down',
          sinceMs: NOW,
          untilMs: null,
          detail: 'openai since 11:40, next try 12:05, 3 files wait',
        },
      ],
    }),
  'ledger-invalid': () =>
    report(rows(), {
      ledger: { code: 'ledger_invalid', detail: 'row 7: edited (the MAC is not that of the body)' },
    }),
  'second-head': () => {
    const list = all(rows().finding(1, form)).add('gate.decided', {
      head: HEAD,
      base_ref: 'main',
      merge_base: commit('b'),
      policy: sha('policy'),
      mode: 'enforce',
      conclusion: 'failure',
      reasons: [],
      blocking: [1],
      files: 5,
      counted: 4,
      unreviewed: 1,
      facts: [],
      now: '2026-11-29T12:00:00.000Z',
      digest: sha('digest'),
    });
    list.head([form, style], { head: commit('e'), prior: HEAD, ancestor: true });
    list
      .add('finding.ended', {
        finding: 1,
        state: 'fixed',
        reason: 'not_raised_again',
        head: commit('e'),
        text: null,
      })
      .finding(5, style, { severity: 'medium' });
    return report(list, { head: commit('e') }, { shared: [{ pull: '#12', conclusion: 'in_progress' }] });
  },
};

describe('the summary', () => {
  for (const [name, make] of Object.entries(golden)) {
    test(`PUB-7: ${name} reads as agreed`, async () => {
      const made = make();
      await expect(`# ${titleOf(made.decision)}\n\n${renderReport(made)}\n`).toMatchFileSnapshot(
        join(GOLDEN, `${name}.md`),
      );
    });
  }

  test('PUB-7: it says the verdict, each reason, what clears it and who may', () => {
    const text = renderReport(reported('needs-allow'));
    for (const part of ['A person has to act', 'needs_allow', '/allow', 'write'])
      expect(text).toContain(part);
    expect(REASONS.needs_allow.clears).toContain('/allow');
  });

  test('LED-10: the signed head is found again in the summary, byte for byte, and no other text is taken for one', () => {
    for (const make of Object.values(golden)) expect(notesIn(renderReport(make()))).toEqual([note]);
    const forged = new Map([...texts, [sha('title 1'), `\n\`\`\`text\n${note}\`\`\`\n`]]);
    const state = foldRows(all(rows().finding(1, form)).rows);
    const made = makeReport(state, decideGate(state, policy, facts(), NOW), forged, rest);
    expect(notesIn(renderReport(made))).toEqual([note]);
  });

  test('case 35: no text of a finding or a commit imitates the verdict line, mentions anybody or closes the fold', () => {
    const text = renderReport(reported('findings-block'));
    expect(text.match(/^(?:✅|❌|✋|⏳|💤) \*\*/gmu)).toHaveLength(1);
    expect(text).not.toMatch(/@[a-z]/);
    expect(text).not.toContain('<b>');
  });

  test('CMD-2: no line of a summary is a command of ours', () => {
    for (const make of Object.values(golden)) {
      expect(parseComment(renderReport(make()), { prefix: '', mention: 'countersign' }).commands).toEqual([]);
    }
  });

  test('PUB-4: thousands of files and findings stay under 65,535 bytes, with the marker, the link and the signed head', () => {
    const files = Array.from({ length: 380 }, (_, i) =>
      decided(`src/${'ä'.repeat(300)}/${i}.ts`, { block: `block-${i}`, ownership: 'orphan' }),
    );
    const list = new FactList().policy();
    for (const [i, file] of files.entries()) list.block(`block-${i}`).finding(i + 1, file);
    const state = foldRows(list.head(files).allow().rows);
    const long = new Map(
      [...Array(380).keys()].map((i) => [sha(`title ${i + 1}`), '𝕏 `@x` <b> '.repeat(60)] as const),
    );
    const text = renderReport(makeReport(state, decideGate(state, policy, facts(), NOW), long, rest));
    expect(Buffer.byteLength(text)).toBeLessThanOrEqual(LIMIT_BYTES);
    expect(text.isWellFormed()).toBe(true);
    expect(text).toContain('cut here');
    expect(text).toContain(rest.places.run);
    expect(notesIn(text)).toEqual([note]);
    expect((text.match(/<details>/g) ?? []).length).toBe((text.match(/<\/details>/g) ?? []).length);
  });

  test('PUB-7: titles are one short line for every reason', () => {
    for (const make of Object.values(golden)) {
      const title = titleOf(make().decision);
      expect(title.length).toBeLessThanOrEqual(120);
      expect(title).not.toContain('\n');
    }
  });
});

describe('annotations', () => {
  const source = {
    path: 'a.ts',
    startLine: 5,
    endLine: 9,
    level: 'failure' as const,
    title: 'T',
    message: 'M',
  };
  const place = (
    more: Partial<Parameters<typeof placeAnnotation>[0]>,
    lines: number | null | undefined = 20,
  ) => placeAnnotation({ ...source, ...more }, (path) => (path === 'a.ts' ? lines : undefined));
  const placed = (more: Parameters<typeof place>[0], lines?: number | null) => {
    const found = place(more, lines);
    if (!found.ok) throw new Error(found.reason);
    return found.annotation;
  };

  test('case 33: columns on a range are dropped, kept on one line, dropped when not in order', () => {
    expect(placed({ startColumn: 2, endColumn: 4 })).not.toHaveProperty('start_column');
    expect(placed({ endLine: 5, startColumn: 2, endColumn: 4 })).toMatchObject({
      start_column: 2,
      end_column: 4,
    });
    expect(placed({ endLine: 5, startColumn: 4, endColumn: 3 })).not.toHaveProperty('start_column');
    expect(placed({ endLine: 5, startColumn: 0 })).not.toHaveProperty('start_column');
  });

  test('case 33: line 0, an end before the start, an end past the file are clamped; a start past it is not placed', () => {
    expect(placed({ startLine: 0, endLine: 0 })).toMatchObject({ start_line: 1, end_line: 1 });
    expect(placed({ startLine: 5, endLine: 3 })).toMatchObject({ start_line: 5, end_line: 5 });
    expect(placed({ startLine: 5, endLine: 99 })).toMatchObject({ start_line: 5, end_line: 20 });
    expect(place({ startLine: 21, endLine: 21 })).toEqual({
      ok: false,
      reason: 'line 21 is past the end (20 lines)',
    });
    expect(placed({ startLine: 400, endLine: 401 }, null)).toMatchObject({ start_line: 400, end_line: 401 });
  });

  test('case 33: ./ and / before a path are taken away; a path that is not in the head is not placed', () => {
    expect(placed({ path: './a.ts' }).path).toBe('a.ts');
    expect(placed({ path: '/a.ts' }).path).toBe('a.ts');
    expect(place({ path: 'b.ts' })).toEqual({ ok: false, reason: 'the file is not in this head' });
    expect(place({ path: './' }).ok).toBe(false);
  });

  test('case 33: a message of 70 KB is cut within 64 KB, an empty one says the title, a long title is cut', () => {
    const long = placed({ message: 'ä'.repeat(35_000) }).message;
    expect(Buffer.byteLength(long)).toBeLessThanOrEqual(64 * 1024);
    expect(long.endsWith('… cut here')).toBe(true);
    expect(placed({ message: ' \n' }).message).toBe('T');
    expect(placed({ message: '', title: '' })).toMatchObject({ message: 'No text was given.' });
    expect(placed({ title: 'x'.repeat(400) }).title).toHaveLength(255);
  });

  test('case 33: nothing that is placed breaks a rule of GitHub', () => {
    const number = fc.oneof(fc.integer({ min: -5, max: 40 }), fc.constant(Number.NaN));
    fc.assert(
      fc.property(
        number,
        number,
        fc.option(number, { nil: undefined }),
        fc.option(number, { nil: undefined }),
        fc.string(),
        fc.string(),
        (startLine, endLine, startColumn, endColumn, title, message) => {
          const found = place({
            startLine,
            endLine,
            title,
            message,
            ...(startColumn === undefined ? {} : { startColumn }),
            ...(endColumn === undefined ? {} : { endColumn }),
          });
          if (!found.ok) return;
          const one = found.annotation;
          expect(one.start_line).toBeGreaterThanOrEqual(1);
          expect(one.end_line).toBeGreaterThanOrEqual(one.start_line);
          expect(one.end_line).toBeLessThanOrEqual(20);
          expect(one.message.trim()).not.toBe('');
          if (one.start_column !== undefined) expect(one.start_line).toBe(one.end_line);
          if (one.end_column !== undefined)
            expect(one.end_column).toBeGreaterThanOrEqual(one.start_column ?? Number.POSITIVE_INFINITY);
        },
      ),
    );
  });

  test('case 29: lines are ended by LF alone', () => {
    expect(countLines(Buffer.from('a\r\nb\rc\r\nd\u2028e\nf\fg'))).toBe(4);
    expect(countLines(Buffer.from('a\n'))).toBe(1);
    expect(countLines(Buffer.from('a'))).toBe(1);
    expect(countLines(Buffer.from(''))).toBe(0);
  });

  test('PUB-3: what is over the cap is counted and linked, what has no line is shown in full', () => {
    const one = {
      number: 7,
      severity: 'high',
      path: 'old.ts',
      line: 3,
      title: 'Gone @you',
      blocks: true,
      state: 'open' as const,
      body: 'Two\nlines',
      reason: 'it is about the base side',
    };
    const given = {
      head: HEAD,
      blocking: 1,
      open: 900,
      over: 400,
      unplaced: [one],
      published: rest.published,
      places: rest.places,
    };
    expect(findingsTitle(given)).toBe('1 finding blocks · 899 below the bar');
    const text = renderFindings(given);
    expect(text).toContain('**400 more** than the policy lets us annotate');
    expect(text).toContain('> Two  \n> lines');
    expect(text).toContain('it is about the base side');
    expect(notesIn(text)).toEqual([note]);
  });
});
