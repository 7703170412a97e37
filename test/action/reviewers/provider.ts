/** A local server that speaks the protocols of all four providers; what it does is the last part of the model's name. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

/** How an answer is told: what it says, and why the model stopped. */
type Told = { text: string; cutOff?: boolean; tool?: boolean };
const usage = { input_tokens: 11, output_tokens: 7, total_tokens: 18 };

const formats: Record<string, (told: Told) => unknown> = {
  '/messages': ({ text, cutOff, tool }) => ({
    id: 'm1',
    type: 'message',
    role: 'assistant',
    model: 'm',
    content: [
      ...(text === '' ? [] : [{ type: 'text', text }]),
      ...(tool ? [{ type: 'tool_use', id: 't1', name: 'Bash', input: { command: 'env' } }] : []),
    ],
    stop_reason: cutOff ? 'max_tokens' : tool ? 'tool_use' : 'end_turn',
    stop_sequence: null,
    usage,
  }),
  '/responses': ({ text, cutOff, tool }) => ({
    id: 'r1',
    object: 'response',
    created_at: 1,
    status: cutOff ? 'incomplete' : 'completed',
    ...(cutOff ? { incomplete_details: { reason: 'max_output_tokens' } } : {}),
    model: 'm',
    output: tool
      ? [
          {
            type: 'function_call',
            id: 'f1',
            call_id: 'f1',
            name: 'Bash',
            arguments: '{}',
            status: 'completed',
          },
        ]
      : [
          {
            type: 'message',
            id: 'o1',
            status: 'completed',
            role: 'assistant',
            content: [{ type: 'output_text', text, annotations: [] }],
          },
        ],
    usage,
  }),
  '/chat/completions': ({ text, cutOff, tool }) => ({
    id: 'c1',
    object: 'chat.completion',
    created: 1,
    model: 'm',
    choices: [
      {
        index: 0,
        message: {
          role: 'assistant',
          content: text,
          ...(tool
            ? { tool_calls: [{ id: 't1', type: 'function', function: { name: 'Bash', arguments: '{}' } }] }
            : {}),
        },
        finish_reason: cutOff ? 'length' : tool ? 'tool_calls' : 'stop',
      },
    ],
    usage: { prompt_tokens: 11, completion_tokens: 7, total_tokens: 18 },
  }),
};

/** Starts it; its base URL ends in `/v1`. */
export async function startProvider(): Promise<{ baseUrl: string; close: () => Promise<void> }> {
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const body = Buffer.concat(chunks).toString('utf8');
      const asked: { model: string } = JSON.parse(body);
      const doing = /:([a-z0-9-]+)$/.exec(asked.model)?.[1] ?? 'approve';
      const nonce = /key nonce: ([\w-]+)/.exec(body)?.[1] ?? '';
      const format = formats[(request.url ?? '').replace('/v1', '')];
      const json = (status: number, value: unknown, headers = {}): void => {
        response.writeHead(status, { 'content-type': 'application/json', ...headers });
        response.end(JSON.stringify(value));
      };
      const say = (told: Told): void => json(200, format?.(told));
      const finding = {
        path: 'a.ts',
        start_line: 2,
        end_line: 2,
        severity: 'high',
        lens: 'security',
        title: 'eval of input',
        body: 'Runs what it is given.',
        quote: 'export const b = eval(input);',
        suggestion: null,
      };
      const answer = (findings: unknown[], more = {}): string =>
        JSON.stringify({
          nonce,
          verdict: findings.length === 0 ? 'approve' : 'findings',
          count: findings.length,
          findings,
          answers: [],
          clauses: [],
          ...more,
        });
      const acts: Record<string, () => void> = {
        findings: () => say({ text: answer([finding]) }),
        'bad-key': () => json(401, { error: { type: 'authentication_error', message: 'no' } }),
        'rate-limit': () => json(429, { error: { message: 'slow down' } }, { 'retry-after': '3600' }),
        'server-error': () => json(503, { error: { message: 'down' } }),
        hang: () => undefined,
        empty: () => say({ text: '' }),
        'cut-in-finding': () => say({ text: answer([finding]).slice(0, -60), cutOff: true }),
        'cut-between': () =>
          say({ text: answer([finding, { ...finding, title: 'B' }]).split(',{"path"')[0] ?? '' }),
        'two-documents': () => say({ text: `${answer([])}\n${answer([])}` }),
        'wrong-type': () => say({ text: answer([], { count: '0' }) }),
        'crash-after': () => {
          const whole = JSON.stringify(format?.({ text: answer([]) }));
          response.writeHead(200, {
            'content-type': 'application/json',
            'content-length': whole.length + 10,
          });
          response.write(whole, () => request.socket.destroy());
        },
        killed: () => void request.socket.destroy(),
        'tool-use': () => say({ text: '', tool: true }),
      };
      (acts[doing] ?? (() => say({ text: answer([]) })))();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
