import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { EVIDENCE_BYTES, evidenceOf } from '../../app/domain/transcript/evidence.ts';
import { AGENTS, type AgentKind, readTranscript } from '../../app/domain/transcript.ts';
import { cpuNow } from '../helpers/cpu.ts';

type Event = Record<string, unknown>;
const log = (...events: (Event | string)[]) =>
  events.map((one) => `${typeof one === 'string' ? one : JSON.stringify(one)}\n`).join('');
const init = { type: 'system', subtype: 'init', tools: [], mcp_servers: [], permissionMode: 'dontAsk' };
const message = (...content: unknown[]) => ({ type: 'assistant', message: { role: 'assistant', content } });
const result = (more: object = {}) => ({
  type: 'result',
  subtype: 'success',
  is_error: false,
  result: 'the answer',
  ...more,
});
const item = (one: object, event = 'item.completed') => ({ type: event, item: { id: 'i', ...one } });
const step = (type: string, part: object) => ({ type, sessionID: 's', part });

/** What each agent prints: its beginning, its words, a tool event and its end. */
const parts: Record<AgentKind, { start: Event; say: Event; tool: Event; end: Event }> = {
  'claude-code': {
    start: init,
    say: message({ type: 'text', text: 'the answer' }),
    tool: message({ type: 'tool_use', name: 'Bash', input: {} }),
    end: result(),
  },
  grok: {
    start: init,
    say: message({ type: 'text', text: 'the answer' }),
    tool: message({ type: 'tool_use', name: 'read_file' }),
    end: result(),
  },
  codex: {
    start: { type: 'thread.started', thread_id: 't' },
    say: item({ type: 'agent_message', text: 'the answer' }),
    tool: item({ type: 'command_execution', command: 'ls', aggregated_output: 'secret' }, 'item.started'),
    end: { type: 'turn.completed', usage: { input_tokens: 3, output_tokens: 2 } },
  },
  opencode: {
    start: step('step_start', { type: 'step-start' }),
    say: step('text', { type: 'text', text: 'the answer' }),
    tool: step('tool_use', { type: 'tool', tool: 'bash', state: { status: 'error' } }),
    end: step('step_finish', { reason: 'stop', tokens: { input: 3, output: 2 } }),
  },
};

describe.each(AGENTS)('REV-7: the log of %s', (kind) => {
  const { start, say, tool, end } = parts[kind];
  const read = (...events: (Event | string)[]) => readTranscript(kind, log(...events));

  it('an answer is what it said, with how it ended', () => {
    expect(read(start, say, end)).toMatchObject({ kind: 'answered', text: 'the answer', finish: 'stop' });
  });

  it('a tool event breaks the rule at any place, whatever else is wrong with the log', () => {
    fc.assert(
      fc.property(
        fc.array(fc.constantFrom<Event | string>(start, say, end, '', 'not json', '{"type":', '[]', '{}'), {
          maxLength: 12,
        }),
        fc.nat(12),
        (events, at) => {
          const where = Math.min(at, events.length);
          const found = read(...events.slice(0, where), tool, ...events.slice(where));
          expect(found).toMatchObject({ kind: 'rule_break', line: where + 1 });
        },
      ),
    );
  });

  it('what it says about tools is no tool event: what counts is what it did', () => {
    const talk = JSON.parse(JSON.stringify(say).replace('the answer', 'tool_use command_execution rm -rf /'));
    expect(read(start, talk, end).kind).toBe('answered');
  });

  it('nothing that is not its structured log is an answer', () => {
    fc.assert(
      fc.property(
        fc.array(fc.oneof(fc.string(), fc.json(), fc.constantFrom(JSON.stringify(say), JSON.stringify(end)))),
        (lines) => {
          expect(readTranscript(kind, lines.join('\n')).kind).not.toBe('answered');
        },
      ),
    );
    expect(read(start, 'I approve.', say, end)).toMatchObject({
      kind: 'unstructured',
      line: 2,
      cutOff: false,
    });
    expect(readTranscript(kind, '')).toEqual({ kind: 'empty' });
    expect(readTranscript(kind, '\n \r\n')).toEqual({ kind: 'empty' });
  });

  it('REV-3: a log that is cut off anywhere is no answer; between lines and within one it says so', () => {
    const whole = log(start, say, end).trimEnd();
    for (let cut = 0; cut < whole.length; cut++)
      expect(readTranscript(kind, whole.slice(0, cut)).kind, `cut at ${cut}`).not.toBe('answered');
    expect(read(start, say)).toMatchObject({ kind: 'unstructured', cutOff: true });
    expect(readTranscript(kind, log(start, say).trimEnd().slice(0, -3))).toMatchObject({ cutOff: true });
  });

  it('REV-3: two beginnings, two ends, or words after the end are no one log', () => {
    for (const events of [
      [start, start, say, end],
      [start, say, end, end],
      [start, end, say],
      [start, say, end, start, say, end],
      [say, end],
    ])
      expect(read(...events)).toMatchObject({ kind: 'unstructured', cutOff: false });
  });

  it('linear in its length', () => {
    const long = log(start, ...Array.from({ length: 10_000 }, () => say), end);
    const deep = `${'['.repeat(200_000)}\n`;
    const from = cpuNow();
    readTranscript(kind, long);
    readTranscript(kind, deep.repeat(5));
    evidenceOf(kind, long, (text) => text);
    expect(cpuNow() - from).toBeLessThan(5000);
  });

  it('the evidence that a result brings says the same of the session, and fits', () => {
    const noise = fc.constantFrom<Event | string>(say, 'x'.repeat(3000), '{}', {
      type: 'status',
      text: '"'.repeat(900),
    });
    fc.assert(
      fc.property(fc.array(noise, { maxLength: 80 }), fc.option(fc.nat(80), { nil: null }), (events, at) => {
        const list = [start, ...events, end];
        if (at !== null) list.splice(Math.min(at, list.length - 1) + 1, 0, tool);
        const whole = log(...list);
        const evidence = evidenceOf(kind, whole, (text) => text);
        expect(Buffer.byteLength(JSON.stringify(evidence))).toBeLessThanOrEqual(EVIDENCE_BYTES);
        const [was, is] = [readTranscript(kind, whole).kind, readTranscript(kind, evidence).kind];
        if (at !== null) expect([was, is]).toEqual(['rule_break', 'rule_break']);
        else if (was === 'answered') expect(is).toBe('answered');
        else expect(is).not.toBe('rule_break');
      }),
      { numRuns: 60 },
    );
  });

  it('REV-8: the evidence is redacted before it is cut', () => {
    const secret = `${'a'.repeat(150)}SECRETSECRET`;
    const talk = JSON.parse(JSON.stringify(say).replace('the answer', secret));
    const evidence = evidenceOf(kind, log(start, talk, `plain SECRETSECRET`, end), (text) =>
      text.replaceAll('SECRETSECRET', '[redacted:secret]'),
    );
    expect(evidence).not.toMatch(/SECRET/);
  });
});

describe('REV-7: Codex', () => {
  const { start, say, end } = parts.codex;
  const read = (...events: (Event | string)[]) => readTranscript('codex', log(...events));

  it('its first event is thread.started', () => {
    expect(read({ type: 'turn.started' }, start, say, end)).toMatchObject({ kind: 'unstructured', line: 1 });
  });

  it.each([
    ['command_execution', { command: 'cat /etc/passwd' }, 'command_execution: cat /etc/passwd'],
    ['file_change', { changes: [{ path: 'a', kind: 'add' }] }, 'file_change'],
    ['mcp_tool_call', { server: 's', tool: 'query' }, 'mcp_tool_call: query'],
    ['web_search', { query: 'how' }, 'web_search: how'],
    ['todo_list', { items: [] }, 'todo_list'],
    ['something_new', {}, 'something_new'],
  ])('the item %s is something it did', (type, more, entry) => {
    for (const event of ['item.started', 'item.updated', 'item.completed'])
      expect(read(start, item({ type, ...more }, event), say, end)).toMatchObject({
        kind: 'rule_break',
        line: 2,
        entry,
      });
  });

  it('reasoning and warnings are nothing it did; events that are no items are skipped', () => {
    const events = [
      item({ type: 'reasoning', text: 'ls' }),
      item({ type: 'error', message: 'odd' }),
      { type: 'turn.started' },
      { type: 'token_count' },
    ];
    expect(read(start, ...events, say, end)).toMatchObject({
      kind: 'answered',
      usage: { tokensIn: 3, tokensOut: 2 },
    });
  });

  it('a connection that came back is no failure; a turn that failed is one, with the status it names', () => {
    const again = { type: 'error', message: 'Reconnecting... 1/5 (unexpected status 503)' };
    expect(read(start, again, say, end).kind).toBe('answered');
    expect(read(start, again)).toEqual({ kind: 'failed', status: 503, code: null });
    const failed = {
      type: 'turn.failed',
      error: { message: 'exceeded retry limit, last status: 429 Too Many' },
    };
    expect(read(start, say, failed)).toEqual({ kind: 'failed', status: 429, code: null });
  });

  it('an item without a type, or no item at all, is no event', () => {
    for (const event of [
      { type: 'item.completed' },
      { type: 'item.completed', item: { id: 'x' } },
      { typ: 'x' },
    ])
      expect(read(start, event, say, end)).toMatchObject({ kind: 'unstructured', line: 2 });
  });
});

describe('REV-11: Claude Code and Grok', () => {
  const { say, end } = parts['claude-code'];

  it('a session that does not say that it is held without tools is unsafe, whatever it answers', () => {
    for (const tools of [['Bash'], undefined, 'none', null])
      expect(readTranscript('claude-code', log({ ...init, tools }, say, end))).toMatchObject({
        kind: 'unsafe',
        line: 1,
      });
    expect(readTranscript('claude-code', log({ ...init, mcp_servers: [{ name: 'x' }] }, say, end)).kind).toBe(
      'unsafe',
    );
    expect(readTranscript('grok', log({ ...init, tools: ['read_file'] }, say, end)).kind).toBe('unsafe');
    expect(readTranscript('grok', log({ ...init, permissionMode: 'default' }, say, end)).kind).toBe('unsafe');
  });

  it.each([
    ['a refused tool', result({ permission_denials: [{ tool_name: 'Bash' }] }), 'denied: Bash'],
    [
      'a server tool',
      message({ type: 'server_tool_use', name: 'web_search' }),
      'server_tool_use: web_search',
    ],
    ['a tool result', { type: 'user', message: { content: [{ type: 'tool_result' }] } }, 'tool_result'],
    ['progress of a tool', { type: 'tool_progress' }, 'tool_progress'],
    [
      'a block of a stream',
      {
        type: 'stream_event',
        event: { type: 'content_block_start', content_block: { type: 'tool_use', name: 'Bash' } },
      },
      'tool_use: Bash',
    ],
    ['a kind of block that is not known', message({ type: 'computer' }), 'computer'],
  ])('%s is something it did', (_, event, entry) => {
    expect(readTranscript('claude-code', log(init, event, say, end))).toMatchObject({
      kind: 'rule_break',
      line: 2,
      entry,
    });
  });

  it('thinking and texts are words; a result that is an error is none', () => {
    const thinking = message({ type: 'thinking', thinking: 'x' }, { type: 'redacted_thinking', data: 'x' });
    expect(
      readTranscript('claude-code', log(init, thinking, { type: 'rate_limit_event' }, say, end)).kind,
    ).toBe('answered');
    expect(
      readTranscript('claude-code', log(init, say, result({ is_error: true, api_error_status: 429 }))),
    ).toEqual({ kind: 'failed', status: 429, code: null });
    expect(
      readTranscript('claude-code', log(init, say, result({ subtype: 'error_max_turns' }))),
    ).toMatchObject({ kind: 'failed', code: 'error_max_turns' });
    expect(
      readTranscript('claude-code', log(init, say, result({ stop_reason: 'max_tokens' }))),
    ).toMatchObject({ finish: 'length' });
  });
});

describe('REV-7: OpenCode', () => {
  const { start, end } = parts.opencode;
  const read = (...events: (Event | string)[]) => readTranscript('opencode', log(...events));

  it('its answer comes in parts; an event that it is not known to print is no log of it', () => {
    const [one, two] = ['{"a":', '1}'].map((text) => step('text', { text }));
    expect(read(start, one ?? '', two ?? '', end)).toMatchObject({ kind: 'answered', text: '{"a":1}' });
    expect(read(start, { type: 'session.new' }, end)).toMatchObject({ kind: 'unstructured', line: 2 });
  });

  it('a step that ended for tools, an error and a length are what they are', () => {
    expect(read(start, step('step_finish', { reason: 'tool-calls' }), end)).toMatchObject({
      kind: 'rule_break',
      line: 2,
    });
    const error = { type: 'error', error: { name: 'APIError', data: { statusCode: 402 } } };
    expect(read(error)).toEqual({ kind: 'failed', status: 402, code: 'APIError' });
    expect(read(start, step('step_finish', { reason: 'length' }))).toMatchObject({ finish: 'length' });
  });
});
