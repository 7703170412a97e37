import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { execa } from 'execa';
import type { GitRepository, Signature } from './repository.ts';

/** How a merge queue puts a pull request on its base (facts/github.md §4). */
export type MergeMethod = 'MERGE' | 'SQUASH' | 'REBASE';

/** What to put where. */
export interface MergeInput {
  readonly base: string;
  readonly head: string;
  readonly method: MergeMethod;
  readonly message: string;
  readonly author: Signature;
  readonly date: Date;
}

/**
 * Puts a head on a base with git's own merge or rebase in a work tree of its own, attributes and all; the new
 * commit, or null where it conflicts. Nothing but objects stays.
 */
export async function mergeOnto(
  git: GitRepository,
  { base, head, method, message, author, date }: MergeInput,
): Promise<string | null> {
  const folder = await mkdtemp(join(git.directory, 'queue-'));
  const tree = join(folder, 'tree');
  const when = `${Math.floor(date.getTime() / 1000)} +0000`;
  const env = {
    PATH: process.env['PATH'] ?? '/usr/bin:/bin',
    HOME: '/nonexistent',
    LC_ALL: 'C',
    GIT_CONFIG_NOSYSTEM: '1',
    GIT_AUTHOR_NAME: author.name,
    GIT_AUTHOR_EMAIL: author.email,
    GIT_AUTHOR_DATE: when,
    GIT_COMMITTER_NAME: 'web-flow',
    GIT_COMMITTER_EMAIL: 'noreply@github.com',
    GIT_COMMITTER_DATE: when,
  };
  const run = (args: readonly string[], cwd: string) =>
    execa('git', args, { cwd, env, extendEnv: false, reject: false });
  const must = async (args: readonly string[], cwd: string): Promise<string> => {
    const { exitCode, stdout, stderr } = await run(args, cwd);
    if (exitCode !== 0) throw new Error(`git ${args.join(' ')}: ${stderr}`);
    return stdout.trim();
  };
  try {
    const start = method === 'REBASE' ? head : base;
    await must(['worktree', 'add', '--quiet', '--detach', tree, start], git.directory);
    const merge = {
      MERGE: ['merge', '--quiet', '--no-ff', '-m', message, head],
      SQUASH: ['merge', '--quiet', '--squash', head],
      // the author of a rebased commit stays its own
      REBASE: ['rebase', '--quiet', '--onto', base, await must(['merge-base', base, head], git.directory)],
    }[method];
    if ((await run(merge, tree)).exitCode !== 0) return null;
    if (method === 'SQUASH') await must(['commit', '--quiet', '--allow-empty', '-m', message], tree);
    return await must(['rev-parse', 'HEAD'], tree);
  } finally {
    await rm(folder, { recursive: true, force: true });
    await run(['worktree', 'prune'], git.directory);
  }
}
