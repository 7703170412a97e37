/**
 * The scripted model of the demo: a server that speaks the OpenAI chat protocol and answers by fixed
 * rules over the numbered lines of the prompt. It stands where a provider would; nothing in the
 * product knows it.
 */
import { createServer } from 'node:http';

/** What the script looks for in a line of the file under review. */
export interface ScriptRule {
  readonly line: RegExp;
  readonly severity: 'critical' | 'high' | 'medium' | 'low' | 'info';
  readonly lens: string;
  readonly title: string;
  readonly body: string;
}

/** A running scripted model. */
export interface ScriptedModel {
  /** Base URL of its OpenAI-compatible API. */
  readonly url: string;
  /** How many answers it gave. */
  calls(): number;
  close(): Promise<void>;
}

interface Message {
  readonly role: string;
  readonly content: string | readonly { readonly text?: string }[];
}

const textOf = (message: Message): string =>
  typeof message.content === 'string'
    ? message.content
    : message.content.map((part) => part.text ?? '').join('');

/** The body of a named data section of the prompt; undefined when there is none. */
function section(prompt: string, nonce: string, name: RegExp): string | undefined {
  const start = new RegExp(`<<<DATA ${nonce} (?:${name.source})\\n`).exec(prompt);
  if (start === null) return undefined;
  const from = start.index + start[0].length;
  const end = prompt.indexOf(`\n>>>END ${nonce}`, from);
  return prompt.slice(from, end < 0 ? undefined : end);
}

function answer(system: string, user: string, rules: readonly ScriptRule[]): unknown {
  const nonce = /<<<DATA ([^\s"]+)/.exec(system)?.[1] ?? '';
  const path = section(user, nonce, /path/) ?? '';
  const lines = (section(user, nonce, /(?:head|base) lines, numbered/) ?? '').split('\n');
  const earlier = section(user, nonce, /earlier findings/) ?? '';
  const findings = lines.flatMap((line) => {
    const numbered = /^\s*(\d+)\| (.*)$/.exec(line);
    const number = Number(numbered?.[1]);
    const code = numbered?.[2] ?? '';
    return rules
      .filter((rule) => rule.line.test(code))
      .map(({ severity, lens, title, body }) => ({
        path,
        start_line: number,
        end_line: number,
        severity,
        lens,
        title,
        body,
        quote: code.trim(),
        suggestion: null,
      }));
  });
  const answers = [...earlier.matchAll(/^F(\d+) \S+ line \d+: (.*)$/gm)].map((match) => ({
    finding: Number(match[1]),
    proposal: findings.some((finding) => finding.title === match[2]) ? 'persists' : 'fixed',
    reason: 'read again',
  }));
  return {
    verdict: findings.length === 0 ? 'approve' : 'findings',
    findings,
    count: findings.length,
    answers,
    clauses: [],
    nonce,
  };
}

/** Starts a scripted model on a free port of 127.0.0.1. */
export async function startScriptedModel(rules: readonly ScriptRule[]): Promise<ScriptedModel> {
  let calls = 0;
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      if (request.method !== 'POST' || request.url !== '/v1/chat/completions') {
        response.writeHead(404).end();
        return;
      }
      calls++;
      const body = JSON.parse(Buffer.concat(chunks).toString('utf8')) as {
        model: string;
        messages: Message[];
      };
      const system = body.messages
        .filter(({ role }) => role === 'system')
        .map(textOf)
        .join('\n');
      const user = body.messages
        .filter(({ role }) => role === 'user')
        .map(textOf)
        .join('\n');
      const content = JSON.stringify(answer(system, user, rules));
      response.writeHead(200, { 'content-type': 'application/json' }).end(
        JSON.stringify({
          id: `scripted-${calls}`,
          object: 'chat.completion',
          created: 0,
          model: body.model,
          choices: [{ index: 0, finish_reason: 'stop', message: { role: 'assistant', content } }],
          usage: {
            prompt_tokens: Math.ceil((system.length + user.length) / 4),
            completion_tokens: Math.ceil(content.length / 4),
            total_tokens: Math.ceil((system.length + user.length + content.length) / 4),
          },
        }),
      );
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  return {
    url: `http://127.0.0.1:${port}/v1`,
    calls: () => calls,
    close: () =>
      new Promise((resolve) => {
        server.closeAllConnections();
        server.close(() => resolve());
      }),
  };
}
