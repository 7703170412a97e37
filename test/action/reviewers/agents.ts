/** Installs the stand-ins of the command-line agents in a folder that any user can run them from. */
import { chmodSync, copyFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { AgentKind } from '../../../app/domain/transcript.ts';
import type { ReviewerSpec } from '../../../app/protocol/runner.ts';

/** The keys that a job with all four of them has. */
export const AGENT_KEYS: Readonly<Record<string, string>> = {
  ANTHROPIC_API_KEY: 'key-of-claude',
  OPENAI_API_KEY: 'key-of-codex',
  XAI_API_KEY: 'key-of-grok',
  OPENROUTER_API_KEY: 'key-of-opencode',
};

/** An agent that does what the last part of its model's name says. */
export const agent = (uses: AgentKind, doing: string, more: Partial<ReviewerSpec> = {}): ReviewerSpec => ({
  name: uses,
  uses,
  model: uses === 'opencode' ? `openrouter/${doing}` : `m:${doing}`,
  ...(uses === 'opencode' ? { key: 'OPENROUTER_API_KEY' } : {}),
  ...more,
});

const PROGRAMS = ['claude', 'codex', 'grok', 'opencode'] as const;
/** Versions that are known to hold their tools off, as each program words them. */
const VERSIONS = {
  claude: '2.1.283 (Claude Code)',
  codex: 'codex-cli 0.154.0',
  grok: 'grok 1.0.41 (abc) [stable]',
  opencode: '1.18.31',
};

export type InstalledAgents = { path: string; dir: string; remove: () => void };

/** Installs them; `versions` overrides what they tell and how codex lists its features. */
export function installAgents(versions: Record<string, unknown> = {}): InstalledAgents {
  const dir = mkdtempSync(path.join(tmpdir(), 'cs-agents-'));
  chmodSync(dir, 0o755);
  writeFileSync(path.join(dir, 'versions.json'), JSON.stringify({ ...VERSIONS, ...versions }), {
    mode: 0o644,
  });
  for (const name of PROGRAMS) {
    copyFileSync(path.resolve('test/fixtures/agents/agent.cjs'), path.join(dir, name));
    chmodSync(path.join(dir, name), 0o755);
  }
  return {
    dir,
    path: `${dir}:${process.env['PATH'] ?? ''}`,
    remove: () => rmSync(dir, { recursive: true, force: true }),
  };
}
