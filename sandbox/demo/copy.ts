/** Opens a pull request on a copy of a local repository; the original is only read. */
import { execFileSync } from 'node:child_process';
import { workflowFile } from '../../app/domain/workflow.ts';
import type { Stage } from './stage.ts';
import type { Opened } from './tea-shop.ts';

/** Which repository and which two refs of it. */
export interface CopySource {
  /** Absolute path of a git repository, bare or not. */
  readonly path: string;
  readonly base: string;
  readonly head: string;
}

const defaultPolicy = `version: 1
reviewers:
  biome:
    uses: command
    run: [biome, lint, --reporter=sarif, --max-diagnostics=none, '{path}']
    output: sarif
    paths: ['**/*.{js,jsx,ts,tsx,cjs,mjs,cts,mts,json,jsonc,css}']
    lenses: [correctness]
    trusted: true
  secretlint:
    uses: command
    run: [secretlint, --format, '@secretlint/secretlint-formatter-sarif', '{path}']
    output: sarif
    paths: ['**']
    config: [.secretlintrc.json]
    lenses: [security]
    severity: { error: critical, warning: high, note: medium }
    trusted: true
`;

function ask(path: string, ...args: string[]): string | null {
  try {
    return execFileSync('git', ['-C', path, 'rev-parse', ...args], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'pipe'],
    }).trim();
  } catch {
    return null;
  }
}

/** The commits that the refs name; throws what is wrong with them, before anything is started. */
export function resolveSource(source: CopySource): Readonly<{ base: string; head: string }> {
  const { path } = source;
  if (ask(path, '--git-dir') === null) throw new Error(`${path} is no git repository`);
  const commitOf = (ref: string) => {
    const commit = ask(path, '--verify', '--end-of-options', `${ref}^{commit}`);
    if (commit === null)
      throw new Error(
        `${path} has no commit ${ref}: give a branch, a tag or an object id of that repository`,
      );
    return commit;
  };
  return { base: commitOf(source.base), head: commitOf(source.head) };
}

/** Copies both refs with their history and opens head against base; adds policy and workflow to the base where missing. */
export async function openCopy(
  { gh, app, owner, author, server }: Stage,
  source: CopySource,
): Promise<Opened> {
  const { base, head } = resolveSource(source);
  const repository = await gh.createRepository({ owner, name: 'copy', collaborators: [[author, 'write']] });
  const { git } = repository;
  await git.run([
    'fetch',
    '--quiet',
    '--no-tags',
    source.path,
    `+${base}:refs/copy/base`,
    `+${head}:refs/copy/head`,
  ]);
  await git.run(['update-ref', '-d', 'refs/copy/base']);
  await git.run(['update-ref', '-d', 'refs/copy/head']);
  await repository.setBranch('main', base);
  await repository.setBranch('proposed', head, author);
  const has = async (path: string) =>
    (await git.run(['ls-tree', '--name-only', 'refs/heads/main', '--', path])).toString() !== '';
  const added: Record<string, string> = {};
  if (!(await has('.github/countersign.yml'))) {
    added['.github/countersign.yml'] = defaultPolicy;
    if (!(await has('.secretlintrc.json')))
      added['.secretlintrc.json'] =
        '{ "rules": [{ "id": "@secretlint/secretlint-rule-preset-recommend" }] }\n';
  }
  if (!(await has('.github/workflows/countersign.yml')))
    added['.github/workflows/countersign.yml'] = workflowFile({
      serverUrl: server.url,
      ref: 'countersign-dev/countersign@v0',
      keys: [],
    });
  const said = [`base ${base.slice(0, 10)}, head ${head.slice(0, 10)}`];
  if (Object.keys(added).length > 0) {
    await repository.commit({ message: 'Add Countersign', files: added });
    said.push(`added to the base of the copy: ${Object.keys(added).join(', ')}`);
  }
  repository.requireCheck('countersign', app);
  await gh.installApp(app, repository);
  const pull = await repository.openPull({
    head: 'proposed',
    user: author,
    title: `${source.head} into ${source.base}`,
  });
  return { pull, said, fix: null };
}
