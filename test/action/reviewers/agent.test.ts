import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { openCell, withKeyTurn } from '../../../action/reviewers/agent/cell.ts';
import { agents } from '../../../action/reviewers/agent/kinds.ts';
import { whyNotHeld } from '../../../action/reviewers/agent.ts';
import { AGENTS, readTranscript } from '../../../app/domain/transcript.ts';
import { AGENT_KEYS, agent, type InstalledAgents, installAgents } from './agents.ts';
import { openStage, type ReviewStage } from './stage.ts';

/** What a job has in its environment and an agent must never see, beside the keys of the others. */
const CANARIES = {
  INPUT_TOKEN: 'canary-of-input',
  GITHUB_TOKEN: 'canary-of-github',
  ACTIONS_ID_TOKEN_REQUEST_TOKEN: 'canary-of-oidc',
};
const { signal } = new AbortController();
const secrets = { ...AGENT_KEYS, ...CANARIES };
/** Where the cells of this file are, so that those of others are none of its business. */
const temp = mkdtempSync(path.join(tmpdir(), 'cs-cells-'));
chmodSync(temp, 0o755);
const cells = () => readdirSync(temp).filter((name) => name.startsWith('countersign-agent-'));
/** Processes that were started with the HOME of an agent's cell. */
const left = () =>
  readdirSync('/proc').filter((pid) => {
    try {
      return (
        /^\d+$/.test(pid) &&
        readFileSync(`/proc/${pid}/environ`, 'utf8').includes(`HOME=${temp}/countersign-agent-`)
      );
    } catch {
      return false;
    }
  });

let installed: InstalledAgents;
let stage: ReviewStage;
beforeAll(async () => {
  for (const [name, value] of Object.entries(secrets)) vi.stubEnv(name, value);
  vi.stubEnv('TMPDIR', temp);
  installed = installAgents();
  stage = await openStage({ path: installed.path, secrets });
});
afterAll(async () => {
  vi.unstubAllEnvs();
  await stage.close();
  installed.remove();
  rmSync(temp, { recursive: true, force: true });
});

test('REV-11: without root, or without another user, there is no place to run an agent in', async () => {
  expect(await openCell('/nonexistent')).toEqual({ unsafe: expect.stringContaining('no') });
  vi.spyOn(process, 'getuid').mockReturnValue(1001);
  try {
    expect(await openCell()).toEqual({ unsafe: expect.stringContaining('not root') });
    const { result, records, purposes } = await stage.work([agent('codex', 'approve')]);
    expect(result).toMatchObject({ end: 'reviewer_unsafe', verdict: null, sessions: [] });
    // nothing was admitted, so nothing was spent
    expect([records, purposes]).toEqual([[], []]);
  } finally {
    vi.restoreAllMocks();
  }
});

test('REV-11: sessions with one key run side by side, those with another wait for their turn', async () => {
  const order: string[] = [];
  const open: (() => void)[] = [];
  const session = (key: string, name: string) =>
    withKeyTurn(key, async () => {
      order.push(`+${name}`);
      await new Promise<void>((resolve) => open.push(resolve));
      order.push(`-${name}`);
    });
  const all = [session('a', 'a1'), session('a', 'a2'), session('b', 'b1'), session('a', 'a3')];
  for (let i = 0; i < 4; i++) {
    await vi.waitFor(() => expect(open.length).toBeGreaterThan(i), 60_000);
    open[i]?.();
    await new Promise((resolve) => setImmediate(resolve));
  }
  await Promise.all(all);
  expect(order).toEqual(['+a1', '+a2', '-a1', '-a2', '+b1', '-b1', '+a3', '-a3']);
});

test('docs/security.md names the versions that are held', () => {
  const text = readFileSync('docs/security.md', 'utf8');
  for (const { since } of Object.values(agents))
    expect(text).toContain(`| ${since.join('.')} and later of ${since[0]} |`);
});

// another user is had by root alone: elsewhere an agent is `reviewer_unsafe`, which is tested above
const asRoot = describe.skipIf(process.getuid?.() !== 0);

asRoot.each(AGENTS)('REV-11: %s', (uses) => {
  test('reviews: verdict, findings, usage and the evidence of what it did', async () => {
    const { result, checked } = await stage.work([agent(uses, 'findings')]);
    expect(result).toMatchObject({
      end: 'reviewed',
      verdict: 'findings',
      findings: [{ severity: 'high', grounded: true, start_line: 2, reviewer: uses }],
      sessions: [{ end: 'complete', exit: 0, provider: uses, tokens_in: 150, tokens_out: 20 }],
    });
    expect(result.sessions[0]?.cost_micro).toBe(uses === 'codex' ? 0 : 12_500);
    expect(readTranscript(uses, result.sessions[0]?.log ?? '').kind).toBe('answered');
    expect(checked).toMatchObject({ end: 'reviewed', verdict: 'findings' });
  });

  test('attack 30: it is another user in an empty folder and sees PATH, HOME, its own key and our switches', async () => {
    const { result } = await stage.work([agent(uses, 'env')]);
    // what it saw is in the finding's body, redacted on its way out
    const seen: {
      env: Record<string, string>;
      argv: string[];
      uid: number;
      groups: number[];
      cwd: string[];
    } = JSON.parse(result.findings[0]?.body ?? '{}');
    const key = agents[uses].keyAs('OPENROUTER_API_KEY');
    const ours = Object.keys(agents[uses].env);
    expect(Object.keys(seen.env).sort()).toEqual([...ours, key, 'HOME', 'PATH', 'TMPDIR'].sort());
    expect(seen.env[key]).toBe('[redacted:secret]');
    expect(seen.uid).not.toBe(0);
    expect(seen.groups).not.toContain(0);
    expect(seen.cwd).toEqual(uses === 'grok' ? ['prompt.txt'] : []);
    expect(JSON.stringify(result)).not.toMatch(/canary-of|key-of/);
    expect(seen.argv.join(' ')).not.toMatch(/eval\(input\)|a\.ts|DATA/);
  });

  test('nothing of it stays: no folder, and no process, even one that left its group', async () => {
    const before = cells();
    const { result } = await stage.work([agent(uses, 'daemon')]);
    expect(result.verdict).toBe('approve');
    expect(cells().filter((name) => !before.includes(name))).toEqual([]);
    expect(left()).toEqual([]);
  });
});

asRoot('REV-11: an agent that cannot be held is not asked', () => {
  test.each([
    ['claude-code', { claude: '2.0.9 (Claude Code)' }, /claude 2\.0\.9 is not known to hold its tools off/],
    ['claude-code', { claude: '3.0.0 (Claude Code)' }, /claude 3\.0\.0 is not known/],
    ['claude-code', { claude: 'a nightly build' }, /does not tell its version/],
    ['grok', { grok: undefined }, /does not tell its version/],
    ['opencode', { opencode: '1.17.99' }, /opencode 1\.17\.99/],
    ['codex', { stuck: 'shell_tool' }, /its feature shell_tool cannot be turned off/],
    ['codex', { features: false }, /does not list what it can do/],
  ] as const)('%s with %j', async (uses, versions, why) => {
    const other = installAgents(versions);
    try {
      const found = await whyNotHeld({ path: other.path, redact: String, signal }, uses);
      expect(found).toMatchObject({ end: 'reviewer_unsafe', detail: expect.stringMatching(why) });
    } finally {
      other.remove();
    }
  });

  test('the ticket ends without a session; a program or a key that is not there is named', async () => {
    const missing = await whyNotHeld({ path: '/nonexistent', redact: String, signal }, 'codex');
    expect(missing).toMatchObject({
      end: 'worker_error',
      detail: expect.stringMatching(/codex cannot.*ENOENT/),
    });
    const keyless = agent('codex', 'approve', { key: 'NO_SUCH_KEY' });
    const { result, purposes } = await stage.work([keyless]);
    expect(result).toMatchObject({ end: 'provider_error', sessions: [] });
    expect(result.detail).toContain('NO_SUCH_KEY');
    expect(purposes).toEqual([]);
  });
});

asRoot('REV-3, REV-10, ACT-5: how sessions of agents end', () => {
  test('an answer that is no document is asked for once more', async () => {
    const { result, purposes } = await stage.work([agent('codex', 'repaired')]);
    expect(purposes).toEqual(['review', 'repair']);
    expect(result).toMatchObject({
      end: 'reviewed',
      verdict: 'approve',
      sessions: [{ end: 'invalid' }, { end: 'complete' }],
    });
  });

  test('an agent falls back to another under its own slot', async () => {
    const second = agent('codex', 'findings');
    const { result, purposes, checked } = await stage.work(
      [agent('claude-code', 'status-503', { fallbacks: ['codex'] })],
      { fallbacks: [second] },
    );
    expect(purposes).toEqual(['review', 'fallback']);
    expect(result).toMatchObject({
      end: 'reviewed',
      sessions: [{ end: 'failed' }, { end: 'complete', provider: 'codex' }],
    });
    expect(checked.end).toBe('reviewed');
  });

  test('told to stop, it ends the session and gives the ticket back', async () => {
    const stop = new AbortController();
    const working = stage.work([agent('grok', 'hang')], {}, stop.signal);
    await vi.waitFor(() => expect(left()).not.toEqual([]), 60_000);
    stop.abort();
    const { reviewed } = await working;
    expect(reviewed).toEqual({ kind: 'given_up', why: 'stopping' });
    expect(left()).toEqual([]);
  });

  test.each(AGENTS.filter((uses) => uses !== 'codex'))(
    '%s: an answer that was cut off is no answer',
    async (uses) => {
      const { result, purposes } = await stage.work([agent(uses, 'length-stop')]);
      const { length } = result.sessions.filter((one) => one.end === 'invalid');
      expect([result.end, result.verdict, length]).toEqual(['truncated', null, 2]);
      expect(purposes).toEqual(['review', 'repair']);
    },
  );

  test('a tool that a later version of Grok adds makes the session unsafe, whatever it answered', async () => {
    const later = installAgents({ grokAdds: ['teleport'] });
    const other = await openStage({ path: later.path, secrets });
    try {
      const { result, checked } = await other.work([agent('grok', 'approve')]);
      expect([result.end, checked.end, checked.verdict]).toEqual(['rule_break', 'rule_break', null]);
      const quiet = await other.work([agent('grok', 'quiet')]);
      expect([quiet.result.end, quiet.checked.end]).toEqual(['reviewer_unsafe', 'reviewer_unsafe']);
    } finally {
      await other.close();
      later.remove();
    }
  });

  test('a log without end is cut off and its program ended', async () => {
    const { result } = await stage.work([agent('codex', 'flood')]);
    expect(result).toMatchObject({ end: 'truncated', verdict: null });
    expect(result.sessions[0]?.log?.length).toBeLessThan(16_000);
  });
});
