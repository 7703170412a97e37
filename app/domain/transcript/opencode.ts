/** The log of `opencode run --format json` (REV-7): steps, texts, tools and errors; no other event is known. */
import { countOf, type EventReader, objectOf, shown, statusOf, stringOf } from './step.ts';

/** Reads one event of OpenCode. */
export const readOpencode: EventReader = (event) => {
  const type = stringOf(event['type']);
  const part = objectOf(event['part']);
  switch (type) {
    case 'step_start':
      return [{ kind: 'start', unsafe: null }];
    case 'text': {
      const text = stringOf(part?.['text']);
      return text === null ? [{ kind: 'unknown', why: 'a text without text' }] : [{ kind: 'say', text }];
    }
    case 'reasoning':
      return [{ kind: 'skip' }];
    case 'tool_use':
      return [{ kind: 'act', entry: shown(type, stringOf(part?.['tool'])) }];
    case 'step_finish': {
      const reason = stringOf(part?.['reason']) ?? 'unknown';
      if (/^tool/.test(reason)) return [{ kind: 'act', entry: shown(type, reason) }];
      const tokens = objectOf(part?.['tokens']);
      const cache = objectOf(tokens?.['cache']);
      return [
        {
          kind: 'end',
          finish: shown(reason),
          text: null,
          usage: {
            tokensIn: countOf(tokens?.['input']) + countOf(cache?.['read']) + countOf(cache?.['write']),
            tokensOut: countOf(tokens?.['output']) + countOf(tokens?.['reasoning']),
            costMicro: countOf(Number(part?.['cost'] ?? 0) * 1e6),
          },
        },
      ];
    }
    case 'error': {
      const error = objectOf(event['error']);
      const status = statusOf(objectOf(error?.['data'])?.['statusCode']);
      return [{ kind: 'fail', sure: true, status, code: shown(stringOf(error?.['name']) ?? 'error') }];
    }
    default:
      return [
        { kind: 'unknown', why: type === null ? 'an event without a type' : `the event ${shown(type)}` },
      ];
  }
};
