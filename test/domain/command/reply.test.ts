import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { explainReply } from '../../../app/domain/command/explain.ts';
import {
  doneReply,
  helpReply,
  refusedReply,
  statusReply,
  stickyBody,
  stickyMarker,
  unknownReply,
} from '../../../app/domain/command/reply.ts';
import { PERMISSIONS, rightFault, shownHead } from '../../../app/domain/command/rights.ts';
import { COMMAND_NAMES } from '../../../app/domain/command/table.ts';
import { parseComment } from '../../../app/domain/command.ts';
import type { GateDecision } from '../../../app/domain/gate/decide.ts';
import { REASONS, type ReasonCode } from '../../../app/domain/gate/reason.ts';
import type { FindingFact } from '../../../app/domain/run-state/state.ts';
import { Markdown, md } from '../../../app/domain/summary/markdown.ts';

/** Text of people, with what could become a command put in often. */
const foreign = fc
  .array(
    fc.oneof(
      fc.constantFrom(
        '/stop',
        '\n/stop',
        '\r/status',
        '`',
        '```\n',
        '> ',
        '<!--',
        '-->',
        '\n\n',
        '@countersign status',
        '/cs stop',
        '\u2028/stop',
        '</details>',
        '- ',
        '\\',
      ),
      fc.string({ unit: 'binary', maxLength: 12 }),
    ),
    { maxLength: 12 },
  )
  .map((parts) => parts.join(''));

const codes = Object.keys(REASONS) as ReasonCode[];
const decision = fc
  .record({
    conclusion: fc.constantFrom('queued', 'in_progress', 'success', 'failure', 'action_required'),
    codes: fc.uniqueArray(fc.constantFrom(...codes), { maxLength: 6 }),
    text: foreign,
    untilMs: fc.option(fc.integer({ min: 0, max: 4e12 })),
  })
  .map(
    ({ conclusion, codes: found, text, untilMs }): GateDecision => ({
      head: 'a'.repeat(40),
      mode: 'enforce',
      conclusion: conclusion as GateDecision['conclusion'],
      reasons: found.map((code) => ({
        code,
        class: REASONS[code].class ?? 'machine',
        blocks: [text],
        paths: text === '' ? [] : [text],
        findings: [3],
        count: 12,
        detail: text,
        untilMs,
        past: false,
      })),
      next: [],
      blocking: [3],
      counts: { files: 3, counted: 1, unreviewed: 1 },
      dueAtMs: null,
    }),
  );

const reply = fc.oneof(
  fc.record({ name: fc.constantFrom(...COMMAND_NAMES), text: foreign }).map(
    ({ name, text }) =>
      (prefix: string) =>
        refusedReply(prefix, name, md`${text}`, text),
  ),
  fc.record({ name: fc.constantFrom(...COMMAND_NAMES), text: foreign }).map(
    ({ name, text }) =>
      (prefix: string) =>
        doneReply(prefix, name, md`${Markdown.code(text)} belongs to ${text}`),
  ),
  foreign.map((text) => (prefix: string) => unknownReply(prefix, text, 'status')),
  fc.constantFrom(...COMMAND_NAMES, null).map((topic) => (prefix: string) => helpReply(prefix, topic)),
  decision.map((one) => (prefix: string) => statusReply(prefix, one, null)),
  fc.record({ one: decision, text: foreign }).map(
    ({ one, text }) =>
      (prefix: string) =>
        statusReply(prefix, one, 'closed', [
          { name: text, sha: text, fault: text, attempts: 25, failingSinceMs: 0 },
        ]),
  ),
);

const explained = fc
  .record({ text: foreign, blocks: fc.boolean(), path: foreign.filter((one) => one !== '') })
  .map(({ text, blocks, path }) => (prefix: string) => {
    const finding: FindingFact = {
      number: 3,
      fingerprint: 'f'.repeat(64),
      path,
      side: 'head',
      startLine: 1,
      endLine: 2,
      severity: 'high',
      lens: text,
      state: 'open',
      reviewer: text,
      key: 'k',
      blob: null,
      title: 'title',
      body: 'body',
      quote: 'quote',
      suggestion: 'suggestion',
      answer: 'answer',
      dismissals: [],
      seq: 1,
      carriedSeq: null,
      command: false,
      witnesses: null,
      readBefore: false,
    };
    const texts = new Map(['title', 'body', 'quote', 'suggestion', 'answer'].map((ref) => [ref, text]));
    return explainReply(prefix, finding, blocks, texts);
  });

const nothing = { commands: [], nearMisses: [] };

describe('replies', () => {
  it('CMD-2: no reply of ours holds a line that our parser accepts, nor one that it hints at', () => {
    fc.assert(
      fc.property(
        fc.array(
          fc.record({
            login: foreign,
            replies: fc.array(fc.oneof({ weight: 5, arbitrary: reply }, explained), {
              minLength: 1,
              maxLength: 4,
            }),
          }),
          {
            maxLength: 4,
          },
        ),
        fc.constantFrom('', 'cs'),
        (groups, prefix) => {
          const body = stickyBody(
            stickyMarker('1', '2'),
            prefix,
            groups.map(({ login, replies }) => ({
              address: login.length % 2 === 0 ? null : 'https://github.com/o/r/pull/2#issuecomment-3',
              login,
              replies: replies.map((make) => make(prefix).text),
            })),
          );
          for (const addressing of [
            { prefix: '', mention: 'countersign' },
            { prefix, mention: 'countersign' },
          ]) {
            expect(parseComment(body, addressing)).toEqual(nothing);
          }
          expect(body.startsWith('<!-- countersign:sticky 1/2 -->')).toBe(true);
        },
      ),
      { numRuns: 400 },
    );
  });

  it('CMD-2: even quoted back by a person, above their own words, a reply runs nothing', () => {
    const body = stickyBody(stickyMarker('1', '2'), '', [
      { address: 'https://x.test', login: 'a', replies: [helpReply('', null).text] },
    ]);
    const quoted = body
      .split('\n')
      .map((line) => `> ${line}`)
      .join('\n');
    expect(parseComment(`${quoted}\n\nthanks`, { prefix: '', mention: 'countersign' })).toEqual(nothing);
  });

  it('CMD-4: the sticky comment stays within what GitHub takes, newest first', () => {
    const long = doneReply('', 'status', md`${'x'.repeat(9_000)}`).text;
    const groups = Array.from({ length: 10 }, (_, i) => ({
      address: `https://x.test/${i}`,
      login: `u${i}`,
      replies: [long],
    }));
    const body = stickyBody(stickyMarker('1', '2'), '', groups);
    expect(Buffer.byteLength(body)).toBeLessThanOrEqual(65_536);
    expect(body).toContain('https://x.test/0');
    expect(body).toContain('older replies are cut');
  });
});

describe('rights', () => {
  const may = (
    name: Parameters<typeof rightFault>[0],
    permission: (typeof PERMISSIONS)[number],
    author = false,
    allowed = true,
  ) => rightFault(name, { permission, author, allowed }) === null;

  it('CMD-3: a table of who may', () => {
    const who = (command: Parameters<typeof rightFault>[0]) =>
      PERMISSIONS.filter((permission) => may(command, permission));
    const write = ['write', 'maintain', 'admin'];
    expect(who({ name: 'status' })).toEqual([...PERMISSIONS]);
    expect(who({ name: 'explain', finding: 1, text: '' })).toEqual(['read', 'triage', ...write]);
    expect(who({ name: 'allow', scope: 'shown', sha: null })).toEqual(write);
    expect(who({ name: 'rerun', scope: 'failed', value: null })).toEqual(write);
    expect(who({ name: 'claim', path: 'a', block: null, whole: null })).toEqual(write);
    expect(who({ name: 'seal', text: 'x' })).toEqual(['admin']);
  });

  it('CMD-3, RUN-10: the author of an allowed run may claim, release and rerun what failed', () => {
    const claim = { name: 'claim', path: 'a', block: null, whole: null } as const;
    expect(may(claim, 'read', true)).toBe(true);
    expect(may({ name: 'release', path: 'a' }, 'none', true)).toBe(true);
    expect(may({ name: 'rerun', scope: 'failed', value: null }, 'read', true)).toBe(true);
    expect(may({ name: 'rerun', scope: 'all', value: null }, 'read', true)).toBe(false);
    expect(may({ name: 'allow', scope: 'author', sha: null }, 'read', true)).toBe(false);
    expect(may(claim, 'read', true, false)).toBe(false);
  });
});

describe('the head that a comment means', () => {
  const at = (...shown: [string, number][]) => shown.map(([sha, atMs]) => ({ sha, atMs }));

  it('GAT-6: the head whose gate was shown last before it', () => {
    expect(shownHead(at(['a', 1_000], ['b', 5_000]), 4_000)).toEqual({ head: 'a' });
    expect(shownHead(at(['a', 1_000], ['b', 5_000]), 9_000)).toEqual({ head: 'b' });
    expect(shownHead(at(['a', 1_000], ['b', 5_000], ['a', 8_000]), 9_000)).toEqual({ head: 'a' });
    expect(shownHead([], 9_000)).toEqual({ unclear: 'nothing_shown' });
    expect(shownHead(at(['a', 9_000]), 5_000)).toEqual({ unclear: 'nothing_shown' });
  });

  it('case 49: within the one second that GitHub tells, another head makes it unclear', () => {
    expect(shownHead(at(['a', 1_000], ['b', 4_500]), 4_000)).toEqual({ unclear: 'same_second' });
    expect(shownHead(at(['a', 4_100], ['b', 4_500]), 4_000)).toEqual({ unclear: 'same_second' });
    expect(shownHead(at(['a', 4_500]), 4_000)).toEqual({ head: 'a' });
    expect(shownHead(at(['a', 1_000], ['a', 4_500]), 4_000)).toEqual({ head: 'a' });
  });
});
