/** The log of `codex exec --json` (REV-7): thread, turn and item events; every item but words is something done. */
import { countOf, type EventReader, objectOf, type Step, shown, stringOf } from './step.ts';

/** Items that do nothing; `error` is a warning that the program shows beside its work. */
const SAYING = new Set(['agent_message', 'reasoning', 'error']);

/** Reads one event of Codex. What is no item event is skipped, except the ends. */
export const readCodex: EventReader = (event) => {
  const type = stringOf(event['type']);
  if (type === null) return [{ kind: 'unknown', why: 'an event without a type' }];
  if (type === 'thread.started') return [{ kind: 'start', unsafe: null }];
  if (type === 'turn.completed') {
    const usage = objectOf(event['usage']);
    return [
      {
        kind: 'end',
        // Codex tells no reason: an answer that was cut off is none that parses
        finish: 'stop',
        text: null,
        usage: {
          tokensIn: countOf(usage?.['input_tokens']),
          tokensOut: countOf(usage?.['output_tokens']),
          costMicro: 0,
        },
      },
    ];
  }
  if (type === 'turn.failed') return [failed(objectOf(event['error'])?.['message'], true)];
  // it also says so before it connects again and goes on
  if (type === 'error') return [failed(event['message'], false)];
  return type.startsWith('item.') ? [item(event['item'], type)] : [{ kind: 'skip' }];
};

function item(value: unknown, event: string): Step {
  const one = objectOf(value);
  const type = stringOf(one?.['type']);
  if (one === null || type === null) return { kind: 'unknown', why: 'an item without a type' };
  if (!SAYING.has(type)) return { kind: 'act', entry: shown(type, detailOf(one)) };
  const text = stringOf(one['text']);
  return type === 'agent_message' && event === 'item.completed' && text !== null
    ? { kind: 'say', text }
    : { kind: 'skip' };
}

function detailOf(one: Readonly<Record<string, unknown>>): string | null {
  return stringOf(one['command']) ?? stringOf(one['tool']) ?? stringOf(one['query']);
}

/** Codex tells failures in words alone; the status in them is all that is read, and it only picks the wait. */
function failed(message: unknown, sure: boolean): Step {
  const status = /\bstatus:? ([1-5]\d\d)\b/.exec((stringOf(message) ?? '').slice(0, 2000))?.[1];
  return { kind: 'fail', sure, status: status === undefined ? null : Number(status), code: null };
}
