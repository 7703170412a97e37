/**
 * How each command-line agent is started with its tools off (REV-11): documented flags, the versions
 * they were documented for, and the environment it gets. No text of a ticket is ever an argument (ACT-4).
 */
import type { AgentKind } from '../../../app/domain/transcript.ts';

/** What a session of an agent is started with. */
export type AgentStart = Readonly<{
  /** A model's name, as the policy has it. */
  model: string;
  /** Where the prompt lies for agents that do not read it from standard input. */
  promptFile: string;
}>;

/** One kind of agent. */
export type Agent = Readonly<{
  program: string;
  /** The oldest version that is known to take these flags; another major version is not known at all. */
  since: readonly [number, number, number];
  argv: (start: AgentStart) => readonly string[];
  /** Whether the prompt goes to standard input; else it is a file. */
  reads: 'stdin' | 'file';
  /** The variable the agent takes its key from. */
  keyAs: (name: string) => string;
  /** Constant switches: none of them comes from the job. */
  env: Readonly<Record<string, string>>;
  /** A listing that has to show that its tools are off, where the program has one: arguments, and a reader that says what is wrong. */
  listing: Readonly<{ argv: readonly string[]; wrong: (text: string) => string | null }> | null;
}>;

/** Features of Codex that bring tools, or run what nobody asked for. */
const CODEX_FEATURES = [
  'shell_tool',
  'unified_exec',
  'shell_snapshot',
  'apps',
  'plugins',
  'hooks',
  'multi_agent',
  'js_repl',
  'code_mode',
  'code_mode_host',
  'browser_use',
  'computer_use',
  'in_app_browser',
  'image_generation',
  'view_image',
  'memories',
  'goals',
  'skill_search',
  'tool_suggest',
  'sleep_tool',
];
const CODEX_CONFIG = [
  ...CODEX_FEATURES.map((feature) => `features.${feature}=false`),
  'web_search="disabled"',
  'approval_policy="never"',
  'mcp_servers={}',
  'project_doc_max_bytes=0',
  'tools.experimental_request_user_input.enabled=false',
].flatMap((setting) => ['-c', setting]);

/** What `codex features list` has to show: the shell is known and off, and so is everything else that it lists of ours. */
function codexFeatures(text: string): string | null {
  const states = new Map(
    text.split('\n').flatMap((line) => {
      const match = /^([a-z][a-z0-9_]*)\s.*\b(true|false)\s*$/.exec(line);
      return match?.[1] === undefined ? [] : [[match[1], match[2] === 'true'] as const];
    }),
  );
  if (!states.has('shell_tool')) return 'its list of features does not name its shell';
  // newer versions list unified_exec as on whatever is set, and offer no shell of either kind without shell_tool:
  // with 0.171.0 and these settings a request was seen to carry no tool (2026-11-30)
  const on = CODEX_FEATURES.find((feature) => feature !== 'unified_exec' && states.get(feature) === true);
  return on === undefined ? null : `its feature ${on} cannot be turned off`;
}

const OPENCODE_CONFIG = JSON.stringify({
  share: 'disabled',
  autoupdate: false,
  mcp: {},
  permission: { '*': 'deny' },
  agent: { countersign: { mode: 'primary', permission: { '*': 'deny' } } },
});

/** The agents by kind. */
export const agents: Readonly<Record<AgentKind, Agent>> = {
  'claude-code': {
    program: 'claude',
    since: [2, 1, 111],
    argv: ({ model }) => [
      ...['claude', '-p', '--output-format', 'stream-json', '--verbose'],
      // the servers of a machine's own settings bring tools past an empty list of tools
      ...['--tools', '', '--strict-mcp-config', '--setting-sources', 'user'],
      ...['--disable-slash-commands', '--permission-mode', 'dontAsk', '--no-session-persistence'],
      ...['--model', model],
    ],
    reads: 'stdin',
    keyAs: () => 'ANTHROPIC_API_KEY',
    env: { DISABLE_AUTOUPDATER: '1', CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1' },
    listing: null,
  },
  codex: {
    program: 'codex',
    since: [0, 130, 0],
    argv: ({ model }) => [
      ...['codex', ...CODEX_CONFIG, 'exec', '--json', '--sandbox', 'read-only', '--ephemeral'],
      ...['--ignore-user-config', '--ignore-rules', '--skip-git-repo-check', '--model', model, '-'],
    ],
    reads: 'stdin',
    keyAs: () => 'CODEX_API_KEY',
    env: {},
    listing: { argv: ['codex', ...CODEX_CONFIG, 'features', 'list'], wrong: codexFeatures },
  },
  grok: {
    program: 'grok',
    since: [1, 0, 41],
    argv: ({ model, promptFile }) => [
      ...['grok', '--prompt-file', promptFile, '--output-format', 'streaming-messages-json'],
      // an empty --tools means all of them here, and one name alone brings two more along: all three are taken
      // away again, which leaves none (seen with 1.0.41, 2026-11-30). No --sandbox: without bubblewrap it does not start
      ...['--tools', 'todo_write', '--disallowed-tools', 'todo_write,search_tool,use_tool'],
      ...['--permission-mode', 'dontAsk', '--deny', '*', '--no-subagents'],
      ...['--disable-web-search', '--no-auto-update', '--model', model],
    ],
    reads: 'file',
    keyAs: () => 'XAI_API_KEY',
    env: { GROK_DISABLE_AUTOUPDATER: '1', GROK_TELEMETRY_ENABLED: '0' },
    listing: null,
  },
  opencode: {
    program: 'opencode',
    since: [1, 18, 0],
    argv: ({ model }) => [
      ...['opencode', 'run', '--format', 'json', '--pure', '--agent', 'countersign', '--model', model],
    ],
    reads: 'stdin',
    // its providers are told by the usual names of their variables
    keyAs: (name) => name,
    env: {
      OPENCODE_CONFIG_CONTENT: OPENCODE_CONFIG,
      OPENCODE_DISABLE_PROJECT_CONFIG: '1',
      OPENCODE_DISABLE_AUTOUPDATE: '1',
      OPENCODE_DISABLE_CLAUDE_CODE: '1',
      OPENCODE_DISABLE_DEFAULT_PLUGINS: '1',
      OPENCODE_DISABLE_LSP_DOWNLOAD: '1',
      OPENCODE_DISABLE_SHARE: '1',
    },
    listing: null,
  },
};
