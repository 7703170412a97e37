/** Issue 5: every kind of reviewer, every way to go wrong: never approved, the right reason, the ticket's state, what the gate says. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { TicketEnd } from '../../../app/domain/review.ts';
import { endTicketWith } from '../../../app/domain/ticket-end.ts';
import { AGENTS, type AgentKind } from '../../../app/domain/transcript.ts';
import type { ReviewerSpec } from '../../../app/protocol/runner.ts';
import { FactList } from '../../helpers/facts.ts';
import { a, judge } from '../../helpers/gate-facts.ts';
import { AGENT_KEYS, agent, type InstalledAgents, installAgents } from './agents.ts';
import { startProvider } from './provider.ts';
import { openStage, type ReviewStage, type Worked } from './stage.ts';

const MODELS = ['anthropic', 'openai', 'xai', 'openai-compatible'] as const;
type Kind = (typeof MODELS)[number] | AgentKind | 'command';

let provider: Awaited<ReturnType<typeof startProvider>>;
let installed: InstalledAgents;
let stage: ReviewStage;
let fine: Worked[];
beforeAll(async () => {
  provider = await startProvider();
  installed = installAgents();
  stage = await openStage({ path: installed.path, secrets: { ...AGENT_KEYS, BAD_KEY: 'no-such-key' } });
  // the first session of each kind pays for what is loaded and looked at once
  fine = await Promise.all(kinds.map((kind) => stage.work([reviewer(kind, 'fine')])));
});
afterAll(async () => {
  await stage.close();
  installed.remove();
  await provider.close();
});

const agents: readonly AgentKind[] = process.getuid?.() === 0 ? AGENTS : [];
const kinds: readonly Kind[] = [...MODELS, ...agents, 'command'];

/** Names of models that each provider takes our schema for. */
const NAMES = { anthropic: 'claude-sonnet-4-5', openai: 'gpt-5', xai: 'grok-4', 'openai-compatible': 'm' };
const isModel = (kind: Kind): kind is (typeof MODELS)[number] => (MODELS as readonly string[]).includes(kind);

/** What a program says that goes wrong in this way; `said` is our JSON of one finding. */
const SCRIPTS: Record<string, string> = {
  fine: 'say({version: 1, count: 0, findings: []})',
  hang: 'setInterval(() => {}, 1000)',
  empty: '',
  'cut-in-finding': 'out(said.slice(0, -30))',
  'cut-between': 'out(said.slice(0, -2) + ",")',
  'two-documents': 'out(said + said)',
  'wrong-type': 'say({version: 1, count: "0", findings: []})',
  crash:
    'say({version: 1, count: 0, findings: []}); process.exitCode = 3; console.error("Segmentation fault")',
  killed: 'say({version: 1, count: 0, findings: []}); process.kill(process.pid, "SIGKILL")',
};
function reviewer(kind: Kind, doing: string): ReviewerSpec {
  if (isModel(kind))
    return { name: kind, uses: kind, model: `${NAMES[kind]}:${doing}`, base_url: provider.baseUrl };
  if (kind !== 'command') return agent(kind, doing, doing === 'bad-key' ? { key: 'BAD_KEY' } : {});
  const script = `const fs = require('node:fs'); const out = (text) => fs.writeSync(1, text); const say = (d) => out(JSON.stringify(d));
    const said = JSON.stringify({version: 1, count: 1, findings: [{start_line: 1, severity: 'high', title: 't', body: 'b'}]}); ${SCRIPTS[doing] ?? 'process.exit(9)'}`;
  return {
    name: 'command',
    uses: 'command',
    command: {
      run: [process.execPath, '-e', script, '--', '{path}'],
      output: 'countersign',
      paths: ['**'],
      ok_exit: [0, 1],
      deletions: false,
      config: [],
      severity: { error: 'high', warning: 'medium', note: 'low' },
    },
  };
}

/** A way to go wrong: what each sort of reviewer does for it and how its ticket ends; null: it cannot. */
type Way = readonly [doing: string, end: TicketEnd] | null;
type Row = readonly [
  name: string,
  of: Readonly<Record<'model' | 'agent' | 'command', Way>> & Partial<Readonly<Record<AgentKind, Way>>>,
];
const same = (doing: string, end: TicketEnd) => ({
  model: [doing, end] as const,
  agent: [doing, end] as const,
  command: [doing, end] as const,
});
const rows: readonly Row[] = [
  [
    'a bad key',
    { model: ['bad-key', 'provider_error'], agent: ['bad-key', 'provider_error'], command: null },
  ],
  [
    '429 for long',
    {
      model: ['rate-limit', 'rate_limited'],
      agent: ['status-429', 'rate_limited'],
      // its log tells no status
      grok: ['status-429', 'provider_error'],
      command: null,
    },
  ],
  [
    'a server error',
    { model: ['server-error', 'provider_error'], agent: ['status-503', 'provider_error'], command: null },
  ],
  ['a time-out', same('hang', 'timeout')],
  ['an empty answer', same('empty', 'empty_output')],
  [
    'cut off in a finding',
    {
      model: ['cut-in-finding', 'truncated'],
      agent: ['log-cut', 'truncated'],
      command: ['cut-in-finding', 'bad_output'],
    },
  ],
  [
    'a whole log whose answer is cut off in a finding',
    { model: null, agent: ['cut-in-finding', 'bad_output'], command: null },
  ],
  ['cut off between findings', same('cut-between', 'bad_output')],
  ['two documents', same('two-documents', 'bad_output')],
  ['a wrong type', same('wrong-type', 'bad_output')],
  [
    'a crash after valid output',
    {
      model: ['crash-after', 'provider_error'],
      agent: ['crash', 'worker_error'],
      command: ['crash', 'worker_error'],
    },
  ],
  [
    'killed',
    {
      model: ['killed', 'provider_error'],
      agent: ['killed', 'worker_error'],
      command: ['killed', 'worker_error'],
    },
  ],
  ['tool use', { model: ['tool-use', 'bad_output'], agent: ['tool', 'rule_break'], command: null }],
  ['words instead of a log', { model: null, agent: ['plain', 'bad_output'], command: null }],
  ['a log without an end', { model: null, agent: ['log-unended', 'truncated'], command: null }],
];

/** What the gate says of a file whose ticket ended so. */
function gateSays(end: TicketEnd, final: boolean): { conclusion: string; codes: string[] } {
  const list = new FactList().policy().block('work').head([a]).allow().end(a, { end, final });
  const { conclusion, reasons } = judge(list);
  return { conclusion, codes: reasons.map((one) => one.code) };
}
const TRANSIENT = new Set<TicketEnd>(['provider_error', 'rate_limited', 'timeout']);

describe('issue 5, REV-10: no reviewer that went wrong approves anything', () => {
  /** Kinds that can go wrong in this way; without root there are no agents to hold. */
  const casesOf = (of: Row[1]) =>
    kinds.flatMap((kind) => {
      const own = isModel(kind) || kind === 'command' ? undefined : of[kind];
      const found = own ?? of[isModel(kind) ? 'model' : kind === 'command' ? 'command' : 'agent'];
      return found === null ? [] : [{ kind, doing: found[0], end: found[1] }];
    });

  test.each(rows.filter(([, of]) => casesOf(of).length > 0))('%s', async (name, of) => {
    const cases = casesOf(of);
    const timeout_ms = name === 'a time-out' ? 400 : 60_000;
    const worked = await Promise.all(
      cases.map(({ kind, doing }) => stage.work([reviewer(kind, doing)], { timeout_ms })),
    );
    for (const [i, { kind, end }] of cases.entries()) {
      const { result, checked } = worked[i] as Worked;
      const what = `${kind}: ${result.detail}`;
      expect({ end: result.end, verdict: result.verdict, findings: result.findings }, what).toEqual({
        end,
        verdict: null,
        findings: [],
      });
      expect({ end: checked.end, verdict: checked.verdict }, what).toEqual({ end, verdict: null });
      expect(
        result.sessions.some((one) => one.end === 'complete'),
        what,
      ).toBe(false);
      expect(result.detail, what).toContain(kind);
      const past = { losses: 0, timeouts: 0, transients: 0, suspect: false };
      const state = endTicketWith(past, checked.end, { retryAfterMs: result.retry_after_ms, alone: true });
      expect(state.final, what).toBe(!TRANSIENT.has(end));
      expect(gateSays(end, state.final), what).toEqual(
        state.final
          ? { conclusion: 'failure', codes: ['ticket_unavailable'] }
          : { conclusion: 'in_progress', codes: ['reviews_pending'] },
      );
      // a provider that says when it is back is believed, and only providers are
      const told = name === '429 for long' && isModel(kind);
      expect([state.notBeforeMs === 3_600_000, result.retry_after_ms], what).toEqual([
        told,
        told ? 3_600_000 : null,
      ]);
    }
  });

  test('the same reviewers approve where nothing goes wrong', () => {
    for (const [i, { checked }] of fine.entries())
      expect(checked, kinds[i]).toMatchObject({ end: 'reviewed', verdict: 'approve', partial: false });
  });
});
