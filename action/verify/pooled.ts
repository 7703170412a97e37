/**
 * One verify command of a resident pool (VER-1): the pull request's head is fetched by id and laid out without a
 * repository around it, a throw-away container runs the command on it, and everything of both goes. The
 * credential that reads the repository is git's alone, and is gone before the container is made.
 */
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { CommandFacts } from '../../app/domain/receipt/input-hash.ts';
import type { Redactor } from '../../app/domain/redact.ts';
import { type Git, git, gitEnvironment } from '../objects/git.ts';
import { type ContainerOptions, containerPlace } from './container.ts';
import { type Executed, execute } from './execute.ts';

/** A command, the head it runs on, and the container it gets. */
export type Pooled = Readonly<{
  name: string;
  command: CommandFacts & Readonly<{ timeout: number }>;
  container: ContainerOptions;
  remote: string;
  base: string;
  head: string;
  /** Reads this one repository; empty where it takes none. */
  token: string;
  /** The GitHub server that the token is for. */
  serverUrl: string;
  path: string;
  tempDir: string;
  redactor: Redactor;
  show: (line: string) => void;
  /** Says at the server that it starts; where it throws nothing does. */
  onStart: () => Promise<void>;
  signal: AbortSignal;
}>;

/** Runs it; throws Fault `git_unavailable` where the head cannot be had, `config_value` where the image is not there. */
export async function verifyInContainer(of: Pooled): Promise<Executed> {
  const place = await containerPlace(of.container, of.signal);
  const dir = await mkdtemp(join(of.tempDir, 'countersign-pooled-'));
  try {
    const workspace = join(dir, 'work');
    await layOut(of, join(dir, 'git'), workspace);
    return await execute({
      name: of.name,
      command: of.command,
      base: of.base,
      head: of.head,
      workspace,
      evidence: join(dir, 'evidence'),
      tempDir: dir,
      path: of.path,
      place,
      redactor: of.redactor,
      show: of.show,
      onStart: of.onStart,
      signal: of.signal,
    });
  } finally {
    await rm(dir, { recursive: true, force: true, maxRetries: 3 }).catch(() => undefined);
  }
}

/** The files of the head, without `.git`: no filter, hook or configuration of it is known to this git. */
async function layOut(of: Pooled, dir: string, workspace: string): Promise<void> {
  for (const folder of [dir, workspace]) await mkdir(folder, { recursive: true, mode: 0o700 });
  const env = gitEnvironment({
    home: dir,
    path: of.path,
    remote: of.remote,
    token: of.token,
    serverUrl: of.serverUrl,
  });
  const at: Git = { dir, env };
  await git(at, ['init', '--quiet', '--bare', '--template=', '.'], of.signal);
  const fetch = ['fetch', '--quiet', '--no-tags', '--no-write-fetch-head', '--no-filter', '--depth=1'];
  await git(at, [...fetch, 'origin', of.head], of.signal);
  const tree: Git = { dir, env: { ...env, GIT_DIR: dir, GIT_WORK_TREE: workspace } };
  await git(tree, ['read-tree', of.head], of.signal);
  await git(tree, ['-c', 'core.symlinks=true', 'checkout-index', '--all', '--force'], of.signal);
  // its container must find nothing of how it came here
  await rm(dir, { recursive: true, force: true });
}
