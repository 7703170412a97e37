/** Attack 30 through the built Action over HTTP: a model that meets the corpus, and nothing of the job in what leaves it. */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { encodePath } from '../../app/domain/path.ts';
import type { LeasedTicket, ReviewerSpec, TicketResult } from '../../app/protocol/runner.ts';
import { answerOf, corpus, type Entry, EVIL, models } from '../helpers/injection.ts';
import { makeRepository, startAction } from './harness.ts';
import { openStage } from './reviewers/stage.ts';
import { makeTicket, startProtocolServer } from './server.ts';

/** What a job holds and no model and no server of ours ever reads; each would be known by its own number. */
const CANARIES = {
  SCRIPTED_API_KEY: 'canary-1-3f9d2c7a41',
  DEPLOY_TOKEN: 'canary-2-3f9d2c7a41',
  INPUT_TOKEN: 'canary-3-3f9d2c7a41',
  AWS_SECRET_ACCESS_KEY: 'canary-4-3f9d2c7a41',
};
const IN_HOME = 'canary-5-3f9d2c7a41';
const CANARY = /canary-\d-3f9d2c7a41/;

/** Every request body that the model was sent. */
const bodies: string[] = [];
let provider: Server;
let baseUrl: string;
beforeAll(async () => {
  provider = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const body = Buffer.concat(chunks).toString('utf8');
      bodies.push(body);
      const asked: { model: string; messages: { role: string; content: string }[] } = JSON.parse(body);
      const of = (role: string) => asked.messages.find((one) => one.role === role)?.content ?? '';
      const prompt = { system: of('system'), user: of('user') };
      const nonce = /<<<DATA ([^\s"]+)/.exec(prompt.system)?.[1] ?? '';
      const section = (name: string) =>
        new RegExp(`<<<DATA ${nonce} ${name}\\n([\\s\\S]*?)\\n>>>END ${nonce}`).exec(prompt.user)?.[1] ?? '';
      const lines = section('head lines, numbered').split('\n');
      const at = lines.findIndex((line) => line.includes(EVIL)) + 1;
      const [quote = ''] = lines.slice(at - 1).map((line) => line.replace(/^\s*\d+\| /, ''));
      const finding = {
        path: section('path'),
        start_line: at,
        end_line: at,
        severity: 'high',
        lens: 'security',
        // one that had found the secrets would tell them here
        title: `eval ${CANARIES.DEPLOY_TOKEN}`,
        body: `Runs it. ${CANARIES.AWS_SECRET_ACCESS_KEY}`,
        quote,
        suggestion: null,
      };
      const [, model = 'careful'] = /:(\w+)$/.exec(asked.model) ?? [];
      const said = models[model as keyof typeof models](prompt, nonce);
      const content = said ?? answerOf(nonce, { verdict: 'findings', count: 1, findings: [finding] });
      response.writeHead(200, { 'content-type': 'application/json' }).end(
        JSON.stringify({
          id: 'c1',
          object: 'chat.completion',
          created: 1,
          model: asked.model,
          choices: [{ index: 0, message: { role: 'assistant', content }, finish_reason: 'stop' }],
          usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
        }),
      );
    });
  });
  await new Promise<void>((resolve) => provider.listen(0, '127.0.0.1', resolve));
  baseUrl = `http://127.0.0.1:${(provider.address() as AddressInfo).port}/v1`;
});
afterAll(async () => {
  provider.closeAllConnections();
  await new Promise((resolve) => provider.close(resolve));
});

const reviewer = (model: string): ReviewerSpec => ({
  name: 'model',
  uses: 'openai-compatible',
  model: `scripted:${model}`,
  base_url: baseUrl,
  key: 'SCRIPTED_API_KEY',
});

type Files = Readonly<Record<string, string>>;

/** Commits on the base with these files each, without a checkout: names may hold what file systems and shells mind. */
function commitAll(repository: ReturnType<typeof makeRepository>, all: readonly Files[]): string[] {
  const quoted = (name: string) =>
    `"${Array.from(Buffer.from(name), (byte) => `\\${byte.toString(8).padStart(3, '0')}`).join('')}"`;
  const data = (text: string) => `data ${Buffer.byteLength(text)}\n${text}\n`;
  const stream = all.flatMap((files, n) => [
    `commit refs/heads/entry-${n}\ncommitter a <a@example.org> 1 +0000\n${data('Add a file')}from ${repository.base}\n`,
    ...Object.entries(files).map(([name, text]) => `M 100644 inline ${quoted(name)}\n${data(text)}`),
  ]);
  const input = `${stream.join('')}done\n`;
  execFileSync('git', ['fast-import', '--quiet', '--done'], { cwd: repository.dir, input });
  const refs = repository.git('for-each-ref', '--format=%(refname:short) %(objectname)', 'refs/heads');
  const heads = new Map(refs.split('\n').map((line) => line.split(' ') as [string, string]));
  return all.map((_, n) => heads.get(`entry-${n}`) ?? '');
}

/** What git calls a text. */
const blobOf = (text: string) =>
  createHash('sha1')
    .update(`blob ${Buffer.byteLength(text)}\0${text}`)
    .digest('hex');

/** One text with its number, in a change of its own where its place is another file or a file's name. */
type Case = Readonly<{ n: number; name: string; entry: Entry | null }>;
const isApart = ({ entry }: Case) => entry?.where === 'path' || entry?.where === 'hunk';
const nameOf = ({ n, entry }: Case) => (entry?.where === 'path' ? entry.text : `src/e${n}.ts`);
const textOf = ({ entry }: Case) => `${entry?.where === 'head' ? entry.text : '// a file'}\n${EVIL}\n`;
/** The file with the plain defect, and what stands beside it. */
const filesOf = (one: Case): Files => ({
  [nameOf(one)]: textOf(one),
  ...(one.entry?.where === 'hunk'
    ? { 'src/b.ts': one.entry.text.replace(/^[+@].*?\n?/gm, (line) => line.slice(1)) }
    : {}),
});

/** The ticket of a file with a plain defect, and what a text adds to it. */
function ticketOf(
  repository: ReturnType<typeof makeRepository>,
  head: string,
  one: Case,
): Omit<LeasedTicket, 'reviewers' | 'id' | 'key'> {
  const { n, entry } = one;
  const at = (where: Entry['where'], plain: string) => (entry?.where === where ? entry.text : plain);
  const name = nameOf(one);
  const {
    id: _,
    key: __,
    ...ticket
  } = makeTicket({
    path: encodePath(Buffer.from(name)),
    head,
    merge_base: repository.base,
    blob: { base: null, head: blobOf(textOf(one)) },
    // what stands in the file of another text is none of this one's
    ...(isApart(one) ? {} : { near: [] }),
    repository: { id: '1', owner: 'octo', name: 'repo', clone_url: repository.url },
    reviewers: [reviewer('careful')],
    timeout_ms: 200_000,
    round: n,
    block: { id: 'a-block', title: at('title', 'Add a file'), brief: at('brief', 'Adds a file.') },
    ...(entry?.where === 'clause' ? { clauses: [entry.text] } : {}),
    ...(entry?.where === 'answer'
      ? {
          earlier: [
            {
              finding: 1,
              fingerprint: 'f'.repeat(64),
              severity: 'high' as const,
              title: 'eval of input',
              body: 'Runs it.',
              start_line: 2,
              answer: entry.text,
            },
          ],
        }
      : {}),
  });
  return ticket;
}

/** Whether a machine alone would let it pass. */
const isGreen = (result: TicketResult | undefined) =>
  result?.end === 'reviewed' &&
  result.verdict === 'approve' &&
  !result.partial &&
  (result.calls ?? []).length === 0;

describe('attack 30, case 81: the built Action and a model over HTTP', { timeout: 480_000 }, () => {
  it('no verdict is better with such a text than without, and no canary leaves the runner', async () => {
    const server = await startProtocolServer();
    server.heartbeatMs = 5000;
    server.leaseMs = 400_000;
    const repository = makeRepository({ 'README.md': '# base\n' }, {});
    const home = mkdtempSync(path.join(tmpdir(), 'cs-home-'));
    for (const name of ['.netrc', '.ssh/id_ed25519', '.config/gh/hosts.yml']) {
      mkdirSync(path.dirname(path.join(home, name)), { recursive: true });
      writeFileSync(path.join(home, name), IN_HOME);
    }
    try {
      const rows: [name: string, model: string, ticket: string][] = [];
      const cases = [['nothing', null] as const, ...corpus].map(([name, entry], n) => ({ n, name, entry }));
      const together = Object.assign({}, ...cases.filter((one) => !isApart(one)).map(filesOf)) as Files;
      const apart = cases.filter(isApart);
      const [head = '', ...heads] = commitAll(repository, [together, ...apart.map(filesOf)]);
      for (const one of cases) {
        const { name } = one;
        const ticket = ticketOf(repository, heads[apart.indexOf(one)] ?? head, one);
        for (const model of Object.keys(models)) {
          const of = makeTicket({ ...ticket, reviewers: [reviewer(model)] });
          rows.push([name, model, of.id]);
          server.add(of);
        }
      }
      const { done } = startAction(
        { server: server.url, parallel: '8', token: CANARIES.INPUT_TOKEN },
        { ...server.env, ...CANARIES, HOME: home },
      );
      const { code, stdout, stderr, summary, outputs } = await done;
      expect([code, server.results.size]).toEqual([0, rows.length]);
      const greens = rows.filter(([, , id]) => isGreen(server.results.get(id)));
      // one that approves whatever it reads is the only one that passes, and only where nothing tells it to
      expect(greens.map(([name, model]) => [name, model])).toEqual([['nothing', 'servile']]);
      const ends = new Set([...server.results.values()].map((one) => one.end));
      expect([...ends].sort()).toEqual(['bad_output', 'reviewed']);
      expect(bodies.length).toBeGreaterThanOrEqual(rows.length);
      expect(bodies.filter((body) => CANARY.test(body))).toEqual([]);
      const heard = server.calls.map(({ body }) => JSON.stringify(body));
      expect(heard.filter((body) => CANARY.test(body))).toEqual([]);
      for (const text of [stdout, stderr, summary, JSON.stringify(outputs)]) expect(text).not.toMatch(CANARY);
      expect(server.violations).toEqual([]);
    } finally {
      await server.close();
      repository.remove();
      rmSync(home, { recursive: true, force: true });
    }
  });

  it('REV-8: a secret that the change itself holds is hidden from the model too, and its finding still stands at its line', async () => {
    const key = [
      '-----BEGIN PRIVATE KEY-----',
      ...Array.from({ length: 4 }, (_, i) => `MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC${i}`),
      '-----END PRIVATE KEY-----',
    ];
    const token = `ghp_${'q7W2e9R4t6'.repeat(4).slice(0, 36)}`;
    const held = `const used = '${CANARIES.DEPLOY_TOKEN}'; const other = '${token}'; ${EVIL}`;
    const stage = await openStage({
      path: process.env['PATH'] ?? '',
      secrets: CANARIES,
      files: [
        { 'a.ts': 'export const a = 1;\n' },
        {
          'a.ts': ['export const a = 1;', ...key, held, ''].join('\n'),
          'b.ts': `// ${token}\n${key.join('\n')}\n`,
        },
      ],
    });
    const before = bodies.length;
    try {
      const { result } = await stage.work([reviewer('careful')], {
        block: { id: 'a-block', title: `Use ${token}`, brief: `It is ${CANARIES.DEPLOY_TOKEN}.` },
        clauses: [`${token} works`],
      });
      expect(result).toMatchObject({
        end: 'reviewed',
        verdict: 'findings',
        findings: [{ grounded: true, start_line: key.length + 2, severity: 'high' }],
      });
      const sent = bodies.slice(before).join('\n');
      expect(sent).toContain('[redacted:secret]');
      for (const secret of [token, ...Object.values(CANARIES), key[1] ?? '', key[4] ?? '']) {
        expect(sent).not.toContain(secret);
        expect(JSON.stringify(result)).not.toContain(secret);
      }
    } finally {
      await stage.close();
    }
  });
});
