import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { makeRepository, startAction } from './harness.ts';
import { AGENT_KEYS, agent, installAgents } from './reviewers/agents.ts';
import { makeTicket, startProtocolServer } from './server.ts';

/** Each provider's own wire format, answered with the same review; the request decides nothing but its nonce. */
const formats: Record<string, (text: string, tools: boolean) => unknown> = {
  // older models of this provider answer structured output as the input of a tool
  '/messages': (text, tools) => ({
    id: 'm1',
    type: 'message',
    role: 'assistant',
    model: 'm',
    content: [
      tools ? { type: 'tool_use', id: 't1', name: 'json', input: JSON.parse(text) } : { type: 'text', text },
    ],
    stop_reason: tools ? 'tool_use' : 'end_turn',
    stop_sequence: null,
    usage: { input_tokens: 11, output_tokens: 7 },
  }),
  '/responses': (text) => ({
    id: 'r1',
    object: 'response',
    created_at: 1,
    status: 'completed',
    model: 'm',
    output: [
      {
        type: 'message',
        id: 'o1',
        status: 'completed',
        role: 'assistant',
        content: [{ type: 'output_text', text, annotations: [] }],
      },
    ],
    usage: { input_tokens: 11, output_tokens: 7, total_tokens: 18 },
  }),
  '/chat/completions': (text) => ({
    id: 'c1',
    object: 'chat.completion',
    created: 1,
    model: 'm',
    choices: [{ index: 0, message: { role: 'assistant', content: text }, finish_reason: 'stop' }],
    usage: { prompt_tokens: 11, completion_tokens: 7, total_tokens: 18 },
  }),
};
const seen: { path: string; key: string; body: string }[] = [];
let provider: Server;
let baseUrl: string;
const repository = makeRepository({}, { 'a.ts': 'eval(input);\n' });

beforeAll(async () => {
  provider = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const body = Buffer.concat(chunks).toString('utf8');
      const path = request.url ?? '';
      seen.push({ path, key: String(request.headers['x-api-key'] ?? request.headers.authorization), body });
      const nonce = /key nonce: ([\w-]+)/.exec(body)?.[1];
      const finding = {
        path: 'a.ts',
        start_line: 1,
        end_line: 1,
        severity: 'critical',
        lens: 'security',
        title: 'eval',
        body: 'Runs input.',
        quote: 'eval(input);',
        suggestion: null,
      };
      const text = JSON.stringify({
        nonce,
        verdict: 'findings',
        count: 1,
        findings: [finding],
        answers: [],
        clauses: [],
      });
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end(
        JSON.stringify(formats[path.replace('/v1', '')]?.(text, body.includes('"tool_choice"')) ?? {}),
      );
    });
  });
  await new Promise<void>((resolve) => provider.listen(0, '127.0.0.1', resolve));
  baseUrl = `http://127.0.0.1:${(provider.address() as AddressInfo).port}/v1`;
});
afterAll(async () => {
  await new Promise((resolve) => provider.close(resolve));
  repository.remove();
});

test('REV-1: anthropic, openai and xai are asked in their own form, with their usual key, for a schema', async () => {
  const server = await startProtocolServer();
  const providers = [
    { uses: 'anthropic', model: 'claude-sonnet-4-5', path: '/v1/messages', key: 'key-of-anthropic' },
    { uses: 'anthropic', model: 'claude-3-haiku-20240307', path: '/v1/messages', key: 'key-of-anthropic' },
    { uses: 'openai', model: 'gpt-5', path: '/v1/responses', key: 'Bearer key-of-openai' },
    { uses: 'xai', model: 'grok-4', path: '/v1/chat/completions', key: 'Bearer key-of-xai' },
  ] as const;
  const tickets = providers.map(({ uses, model }) =>
    makeTicket({ ...repository.at('a.ts'), reviewers: [{ name: uses, uses, model, base_url: baseUrl }] }),
  );
  for (const ticket of tickets) server.add(ticket);
  const run = await startAction(
    { server: server.url },
    {
      ...server.env,
      ANTHROPIC_API_KEY: 'key-of-anthropic',
      OPENAI_API_KEY: 'key-of-openai',
      XAI_API_KEY: 'key-of-xai',
    },
  ).done;
  await server.close();
  expect(run).toMatchObject({ code: 0, stderr: '' });
  expect(server.violations).toEqual([]);
  for (const [i, { path, key, uses, model }] of providers.entries()) {
    const result = server.results.get(tickets[i]?.id ?? '');
    expect(result).toMatchObject({
      end: 'reviewed',
      verdict: 'findings',
      findings: [{ severity: 'critical', grounded: true, reviewer: uses }],
      sessions: [{ end: 'complete', model, tokens_in: 11, tokens_out: 7 }],
    });
    const asked = seen.find((one) => one.path === path && one.body.includes(model));
    expect(asked?.key).toBe(key);
    expect(asked?.body).toContain('cannot_review');
  }
  expect(run.stdout).not.toContain('key-of');
});

test('REV-1: a provider that redirects is unavailable; neither the key nor the code goes to another host', async () => {
  const elsewhere: string[] = [];
  const other = createServer((request, response) => {
    elsewhere.push(`${request.url} ${request.headers['x-api-key'] ?? ''}`);
    response.end('{}');
  });
  await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
  const to = `http://127.0.0.1:${(other.address() as AddressInfo).port}/taken`;
  const moved = createServer((request, response) => {
    request.resume();
    response.writeHead(307, { location: to }).end();
  });
  await new Promise<void>((resolve) => moved.listen(0, '127.0.0.1', resolve));
  const base_url = `http://127.0.0.1:${(moved.address() as AddressInfo).port}/v1`;
  const server = await startProtocolServer();
  const tickets = (['anthropic', 'openai-compatible'] as const).map((uses) =>
    makeTicket({ ...repository.at('a.ts'), reviewers: [{ name: uses, uses, model: 'm', base_url }] }),
  );
  for (const ticket of tickets) server.add(ticket);
  const run = await startAction(
    { server: server.url },
    { ...server.env, ANTHROPIC_API_KEY: 'key-of-anthropic' },
  ).done;
  await server.close();
  for (const one of [other, moved]) await new Promise((resolve) => one.close(resolve));
  expect(elsewhere).toEqual([]);
  for (const ticket of tickets)
    expect(server.results.get(ticket.id)).toMatchObject({ end: 'provider_error', verdict: null });
  expect(run.stdout + run.stderr).not.toContain('key-of');
});

test.skipIf(process.getuid?.() !== 0)(
  'attack 30, REV-11: in the built bundle an agent sees nothing of the job but its own key, and its log goes along',
  async () => {
    const server = await startProtocolServer();
    const installed = installAgents();
    const fault = makeRepository({}, { 'a.ts': '\nexport const b = eval(input);\n' });
    const tickets = [agent('claude-code', 'env'), agent('codex', 'tool')].map((one) =>
      makeTicket({ ...fault.at('a.ts'), reviewers: [one] }),
    );
    for (const ticket of tickets) server.add(ticket);
    const run = await startAction(
      { server: server.url, token: 'canary-of-input' },
      { ...server.env, ...AGENT_KEYS, PATH: installed.path, GITHUB_TOKEN: 'canary-of-github' },
    ).done;
    await server.close();
    installed.remove();
    fault.remove();
    expect(run).toMatchObject({ code: 0, stderr: '' });
    expect(server.violations).toEqual([]);
    const [seen, broke] = tickets.map((ticket) => server.results.get(ticket.id));
    expect(seen).toMatchObject({ end: 'reviewed', sessions: [{ end: 'complete', exit: 0 }] });
    const { env } = JSON.parse(seen?.findings[0]?.body ?? '{}') as { env: Record<string, string> };
    expect(Object.keys(env).sort()).toEqual([
      'ANTHROPIC_API_KEY',
      'CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC',
      'DISABLE_AUTOUPDATER',
      'HOME',
      'PATH',
      'TMPDIR',
    ]);
    expect(broke).toMatchObject({
      end: 'rule_break',
      verdict: null,
      detail: expect.stringContaining('used a tool'),
    });
    expect(broke?.sessions[0]?.log).toContain('command_execution');
    const everything = JSON.stringify([
      ...server.results.values(),
      ...server.calls.map((call) => call.body),
      run.stdout,
      run.summary,
    ]);
    expect(everything).not.toMatch(/canary-of|key-of-(claude|codex|grok|opencode)/);
  },
);
