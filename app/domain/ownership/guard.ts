/**
 * Guarded paths (OWN-8): what decides how the repository is reviewed. No block owns them, they are
 * read at the highest level, and a person with maintain answers for them.
 */
import { decodePath, type WirePath } from '../path.ts';
import { POLICY_PATH, type Policy } from '../policy.ts';
import { compileEntries } from './match.ts';

/** Names that steer AI tools, linters and owners wherever they lie, lower-case: file systems may fold case. */
const NAMES = new Set([
  'claude.md',
  'claude.local.md',
  'agents.md',
  'agent.md',
  'gemini.md',
  '.mcp.json',
  '.cursorrules',
  '.windsurfrules',
  '.clinerules',
  '.aider.conf.yml',
  'copilot-instructions.md',
  'codeowners',
  '.gitattributes',
  'biome.json',
  'biome.jsonc',
  '.oxlintrc.json',
  'tslint.json',
  'ruff.toml',
  '.ruff.toml',
  '.flake8',
  '.pylintrc',
  'pylintrc',
  'mypy.ini',
  '.mypy.ini',
  'clippy.toml',
  '.clippy.toml',
  '.rubocop.yml',
  '.shellcheckrc',
  '.hadolint.yaml',
  '.semgrep.yml',
  '.semgrepignore',
  '.gitleaks.toml',
  '.gitleaksignore',
  '.pre-commit-config.yaml',
]);
/** Beginnings of names with many endings, lower-case. */
const NAME_STARTS = [
  '.eslintrc',
  'eslint.config.',
  '.eslintignore',
  '.stylelintrc',
  'stylelint.config.',
  '.golangci.',
  '.secretlintrc',
  '.secretlintignore',
  '.markdownlint',
];
/** Folders of such configuration, lower-case. */
const FOLDERS = new Set([
  '.claude',
  '.codex',
  '.cursor',
  '.gemini',
  '.windsurf',
  '.continue',
  '.countersign',
]);

/** A test whether a path is guarded under a policy. */
export function compileGuard(policy: Policy): (path: WirePath) => boolean {
  const workflows = policy.pools.map((pool) => `.github/workflows/${pool.workflow}`);
  const configs = [...policy.reviewers.values()].flatMap((entry) =>
    entry.uses === 'command' ? (entry.config ?? []) : [],
  );
  const listed = compileEntries([POLICY_PATH, ...workflows, ...configs, ...policy.guard]);
  return (path) => {
    const text = pathText(path);
    return listed(text) || isSteering(text.toLowerCase());
  };
}

/** The text that patterns are tested against: latin-1 where the bytes are not UTF-8, so ASCII parts still match. */
export function pathText(path: WirePath): string {
  return typeof path === 'string' ? path : decodePath(path).toString('latin1');
}

function isSteering(lower: string): boolean {
  const segments = lower.split('/');
  const name = segments.pop() ?? '';
  if (NAMES.has(name) || NAME_STARTS.some((start) => name.startsWith(start))) return true;
  // the policy and its twin by another ending
  if (/^\.github\/countersign\.ya?ml$/.test(lower)) return true;
  return segments.some((segment) => FOLDERS.has(segment)) || FOLDERS.has(name);
}
