/** Every workflow file that a policy needs in its repository (ACT-1, VER-1, REV-11), as `countersign workflow` prints them. */

import type { ActionCommand } from '../policy/verify.ts';
import type { Policy } from '../policy.ts';
import { AGENTS, type AgentKind } from '../transcript.ts';
import { workflowFile } from '../workflow.ts';
import { verifyWorkflowFile } from './verify.ts';

/** A file, and where it lies in the repository. */
export type WorkflowText = Readonly<{ path: string; text: string }>;

/** What the policy does not say. */
export type WorkflowAsk = Readonly<{
  /** The server's public URL; null is enough where no file reviews. */
  serverUrl: string | null;
  /** The Action as `uses:` names it. */
  ref: string;
  /** Secrets that hold keys; by default those of the policy's reviewers. */
  keys?: readonly string[];
  /** An image that has the agents; by default a public one into which they are installed. */
  container?: string;
}>;

/** The image of jobs that run agents: Debian with git and a user `nobody`, whose jobs are root's. */
const AGENT_IMAGE = 'node:24-bookworm';

/** Agents as npm has them, in the versions that were looked at (docs/decisions/2026-11-30-what-holds-an-agent.md). */
const AGENT_PACKAGES: Readonly<Record<AgentKind, string>> = {
  'claude-code': '@anthropic-ai/claude-code@2.1.197',
  codex: '@openai/codex@0.171.0',
  grok: '@xai-official/grok@1.0.41',
  opencode: 'opencode-ai@1.18.33',
};

const FOLDER = '.github/workflows';

/** The files of a policy, those that review first; throws TypeError where a file needs what was not said. */
export function workflowFiles(policy: Policy, ask: WorkflowAsk): WorkflowText[] {
  return [...reviewFiles(policy, ask), ...verifyFiles(policy, ask.ref)];
}

function reviewFiles(policy: Policy, ask: WorkflowAsk): WorkflowText[] {
  const pools = policy.pools.flatMap((pool) => (pool.kind === 'workflow' ? [pool.workflow] : []));
  if (pools.length === 0) return [];
  if (ask.serverUrl === null) throw new TypeError('--server is needed: where runners reach this server');
  const reviewers = [...policy.reviewers.values()];
  const keys = new Set(
    reviewers.flatMap((entry) => (entry.uses === 'command' || entry.key === undefined ? [] : [entry.key])),
  );
  const agents = AGENTS.filter((kind) => reviewers.some((entry) => entry.uses === kind));
  const text = workflowFile({
    serverUrl: ask.serverUrl,
    ref: ask.ref,
    keys: ask.keys ?? [...keys],
    ...(agents.length === 0 ? {} : { container: ask.container ?? AGENT_IMAGE }),
    // an image of one's own has its agents
    ...(agents.length === 0 || ask.container !== undefined
      ? {}
      : { setup: [`npm install --global ${agents.map((kind) => AGENT_PACKAGES[kind]).join(' ')}`] }),
  });
  return pools.map((file) => ({ path: `${FOLDER}/${file}`, text }));
}

function verifyFiles(policy: Policy, ref: string): WorkflowText[] {
  const byFile = new Map<string, [string, ActionCommand][]>();
  for (const [name, command] of policy.verify) {
    if (command.from !== 'action') continue;
    byFile.set(command.workflow, [...(byFile.get(command.workflow) ?? []), [name, command]]);
  }
  return [...byFile].map(([file, commands]) => ({
    path: `${FOLDER}/${file}`,
    text: verifyWorkflowFile({ ref, file, commands }),
  }));
}
