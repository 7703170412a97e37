/**
 * The logs of Claude Code (`--output-format stream-json`) and of Grok (`streaming-messages-json`), which
 * has the same events: `system`/`init` first, messages with content blocks, one `result` last (REV-7).
 */
import {
  countOf,
  type EventReader,
  type LogEvent,
  objectOf,
  type Step,
  shown,
  statusOf,
  stringOf,
} from './step.ts';

/** Content blocks that say something; every other kind of block is something that was done. */
const SAYING = new Set(['text', 'thinking', 'redacted_thinking']);
/** Why a session stopped whose answer is not whole; also the code of a failure by it. */
export const CUT_OFF = 'max_tokens';
/** Error codes of assistant messages that tell more than that the provider failed. */
const STATUS: Readonly<Record<string, number>> = {
  rate_limit: 429,
  billing_error: 402,
  authentication_failed: 401,
};

const toolless = ({ tools }: LogEvent): string | null =>
  Array.isArray(tools) && tools.length === 0 ? null : 'its log does not say that it has no tools';

/** Claude Code is held by an empty list of tools, which its first event has to confirm. */
export const readClaudeCode: EventReader = (event) => read(event, toolless);

/** Grok's tools are taken away by name: its first event shows what is left, and a tool of a later version is denied besides. */
export const readGrok: EventReader = (event) =>
  read(
    event,
    (init) =>
      toolless(init) ??
      (init['permissionMode'] === 'dontAsk'
        ? null
        : 'its log does not say that what is not allowed is denied'),
  );

function read(event: LogEvent, unsafe: (init: LogEvent) => string | null): readonly Step[] {
  const type = stringOf(event['type']);
  switch (type) {
    case 'system':
      if (event['subtype'] !== 'init') return [{ kind: 'skip' }];
      return [{ kind: 'start', unsafe: servers(event['mcp_servers']) ?? unsafe(event) }];
    case 'assistant': {
      const code = stringOf(event['error']);
      const failed: Step[] =
        code === null ? [] : [{ kind: 'fail', sure: false, status: STATUS[code] ?? null, code: shown(code) }];
      return [...blocks(objectOf(event['message'])?.['content'], code === null), ...failed];
    }
    case 'user':
      return blocks(objectOf(event['message'])?.['content'], false);
    case 'stream_event':
      return partial(objectOf(event['event']));
    case 'result':
      return [...denials(event['permission_denials']), result(event)];
    default:
      if (type === null) return [{ kind: 'unknown', why: 'an event without a type' }];
      return /tool/i.test(type) ? [{ kind: 'act', entry: shown(type) }] : [{ kind: 'skip' }];
  }
}

function servers(list: unknown): string | null {
  return list === undefined || (Array.isArray(list) && list.length === 0)
    ? null
    : 'its log names servers that bring tools';
}

function blocks(content: unknown, saying: boolean): readonly Step[] {
  if (typeof content === 'string') return saying ? [{ kind: 'say', text: content }] : [{ kind: 'skip' }];
  if (!Array.isArray(content)) return [{ kind: 'unknown', why: 'a message without content' }];
  return content.map((item): Step => {
    const block = objectOf(item);
    const type = stringOf(block?.['type']);
    if (block === null || type === null) return { kind: 'unknown', why: 'a content block without a type' };
    if (!SAYING.has(type)) return { kind: 'act', entry: shown(type, stringOf(block['name'])) };
    const text = stringOf(block['text']);
    return type === 'text' && saying && text !== null ? { kind: 'say', text } : { kind: 'skip' };
  });
}

function partial(event: LogEvent | null): readonly Step[] {
  const block = objectOf(event?.['content_block']);
  return block === null ? [{ kind: 'skip' }] : blocks([block], false);
}

/** A tool that was refused was asked for all the same: the session tried. */
function denials(list: unknown): readonly Step[] {
  if (!Array.isArray(list)) return [];
  return list.map((one) => ({
    kind: 'act',
    entry: shown('denied', stringOf(objectOf(one)?.['tool_name']) ?? 'a tool'),
  }));
}

function result(event: LogEvent): Step {
  const usage = objectOf(event['usage']);
  const cached = ['cache_read_input_tokens', 'cache_creation_input_tokens'];
  const reason = stringOf(event['stop_reason']);
  if (event['is_error'] === true || event['subtype'] !== 'success')
    return {
      kind: 'fail',
      sure: true,
      status: statusOf(event['api_error_status']),
      // Grok calls an answer that was cut off a failure of its own
      code:
        reason === CUT_OFF
          ? CUT_OFF
          : event['subtype'] === 'success'
            ? null
            : shown(stringOf(event['subtype']) ?? 'error'),
    };
  return {
    kind: 'end',
    finish: reason === null || reason === 'end_turn' ? 'stop' : reason === CUT_OFF ? 'length' : shown(reason),
    text: stringOf(event['result']),
    usage: {
      tokensIn: ['input_tokens', ...cached].reduce((sum, key) => sum + countOf(usage?.[key]), 0),
      tokensOut: countOf(usage?.['output_tokens']),
      costMicro: countOf(Number(event['total_cost_usd'] ?? 0) * 1e6),
    },
  };
}
