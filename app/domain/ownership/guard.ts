/**
 * Guarded paths (OWN-8): what decides how the repository is reviewed. No block owns them, they are
 * read at the highest level, and a person with maintain answers for them.
 */
import { decodePath, type WirePath } from '../path.ts';
import { POLICY_PATH, type Policy } from '../policy.ts';
import { compileEntries } from './match.ts';

/** Names that steer AI tools, linters and owners wherever they lie, as `foldPath` writes them. */
const NAMES = new Set([
  // instructions and settings of AI tools
  'claude.md',
  'claude.local.md',
  'agents.md',
  'agents.override.md',
  'agent.md',
  'gemini.md',
  'qwen.md',
  'crush.md',
  'warp.md',
  'llms.txt',
  '.mcp.json',
  'mcp.json',
  '.cursorrules',
  '.cursorignore',
  '.cursorindexingignore',
  '.windsurfrules',
  '.codeiumignore',
  '.clinerules',
  '.clineignore',
  '.roorules',
  '.roomodes',
  '.rooignore',
  '.kilocodemodes',
  '.goosehints',
  '.geminiignore',
  '.aiexclude',
  '.aiignore',
  '.copilotignore',
  '.augment-guidelines',
  '.augmentignore',
  '.continuerules',
  '.continueignore',
  'opencode.json',
  'opencode.jsonc',
  'copilot-instructions.md',
  'copilot-setup-steps.yml',
  '.coderabbit.yaml',
  '.coderabbit.yml',
  '.pr_agent.toml',
  '.sourcery.yaml',
  'greptile.json',
  'ellipsis.yaml',
  'sweep.yaml',
  // owners, and what git says of files
  'codeowners',
  '.gitattributes',
  // linters and scanners
  'biome.json',
  'biome.jsonc',
  '.oxlintrc.json',
  'tslint.json',
  '.jshintrc',
  '.htmlhintrc',
  '.textlintrc',
  'ruff.toml',
  '.ruff.toml',
  '.flake8',
  '.pylintrc',
  'pylintrc',
  'mypy.ini',
  '.mypy.ini',
  'pyrightconfig.json',
  '.bandit',
  'clippy.toml',
  '.clippy.toml',
  'deny.toml',
  '.rubocop.yml',
  '.rubocop_todo.yml',
  '.reek.yml',
  '.standard.yml',
  '.erb_lint.yml',
  '.credo.exs',
  '.swiftlint.yml',
  'detekt.yml',
  'checkstyle.xml',
  'psalm.xml',
  'phpcs.xml',
  'phpcs.xml.dist',
  'revive.toml',
  'staticcheck.conf',
  '.clang-tidy',
  '.luacheckrc',
  '.yamllint',
  '.yamllint.yml',
  '.yamllint.yaml',
  '.ansible-lint',
  '.tflint.hcl',
  '.checkov.yml',
  '.checkov.yaml',
  '.trivyignore',
  '.trivyignore.yaml',
  'trivy.yaml',
  'zizmor.yml',
  'actionlint.yaml',
  'actionlint.yml',
  '.shellcheckrc',
  '.hadolint.yaml',
  '.hadolint.yml',
  '.semgrep.yml',
  '.semgrep.yaml',
  '.semgrepignore',
  '.snyk',
  '.gitleaks.toml',
  '.gitleaksignore',
  '.secrets.baseline',
  'sonar-project.properties',
  '.pre-commit-config.yaml',
  '.pre-commit-config.yml',
]);
/** Beginnings of names with many endings. */
const NAME_STARTS = [
  '.aider.',
  '.eslintrc',
  'eslint.config.',
  '.eslintignore',
  'oxlint.config.',
  '.stylelintrc',
  'stylelint.config.',
  '.golangci.',
  '.secretlintrc',
  '.secretlintignore',
  '.markdownlint',
  'phpstan.',
];
/** Folders of such configuration; what lies in them is guarded, wherever they lie. */
const FOLDERS = new Set([
  '.claude',
  '.claude-plugin',
  '.codex',
  '.cursor',
  '.gemini',
  '.windsurf',
  '.clinerules',
  '.roo',
  '.kilocode',
  '.continue',
  '.junie',
  '.amazonq',
  '.kiro',
  '.trae',
  '.augment',
  '.opencode',
  '.goose',
  '.agents',
  '.semgrep',
  '.countersign',
]);
/** Folders at one place: GitHub's own instructions to its AI tools. */
const PLACES = /^\.github\/(?:instructions|prompts|chatmodes|agents|skills)\//;

/** A test whether a path is guarded under a policy. Case does not matter: file systems that fold it would take a twin for the path. */
export function compileGuard(policy: Policy): (path: WirePath) => boolean {
  const pools = policy.pools.filter((pool) => pool.kind === 'workflow');
  const jobs = [...policy.verify.values()].filter((command) => command.from !== 'pool');
  const runs = [...pools, ...jobs];
  const workflows = runs.map(({ workflow }) => `.github/workflows/${workflow}`);
  const configs = [...policy.reviewers.values()].flatMap((entry) =>
    entry.uses === 'command' ? (entry.config ?? []) : [],
  );
  const patterns = [POLICY_PATH, ...workflows, ...configs, ...policy.guard];
  const listed = compileEntries(patterns);
  // what a person listed is listed in every case of it, and as it stands where folding changes a glob
  const folded = compileEntries(patterns.map(foldPath));
  return (path) => {
    const text = pathText(path);
    const fold = foldPath(text);
    return listed(text) || folded(fold) || isSteering(fold);
  };
}

/**
 * A path as a file system could take it that folds case, drops what shows nothing (HFS+), or dots and
 * spaces at the end of a name and what follows a colon (NTFS). Only guards and `.git` ask: owners are told apart by exact bytes (OWN-1).
 */
export function foldPath(text: string): string {
  if (PLAIN.test(text)) return text;
  return text
    .normalize('NFC')
    .toLowerCase()
    .replace(INVISIBLE, '')
    .split('/')
    .map((segment) => segment.replace(/(?<=[^/:]):.*$/s, '').replace(/(?<=[^. ])[. ]+$/, ''))
    .join('/');
}

/** Nothing to fold. */
const PLAIN = /^(?:[a-z0-9_-]|[.](?![./ ]|$)|\/)*$/;
/** What HFS+ ignores in names. */
const INVISIBLE = /[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]/g;

/** The text that patterns are tested against: latin-1 where the bytes are not UTF-8, so ASCII parts still match. */
export function pathText(path: WirePath): string {
  return typeof path === 'string' ? path : decodePath(path).toString('latin1');
}

function isSteering(fold: string): boolean {
  const segments = fold.split('/');
  const name = segments.pop() ?? '';
  if (NAMES.has(name) || NAME_STARTS.some((start) => name.startsWith(start))) return true;
  // the policy and its twin by another ending
  if (/^\.github\/countersign\.ya?ml$/.test(fold) || PLACES.test(fold)) return true;
  return segments.some((segment) => FOLDERS.has(segment)) || FOLDERS.has(name);
}
