/**
 * Fingerprints of a work tree (VER-2): the tree object that git would write of it, untracked files that are not
 * ignored with it. Its index and its trees are ours, not the checkout's, whose configuration and flags may say
 * anything; contents are hashed and copied nowhere.
 */
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { compileEntries } from '../../app/domain/ownership/match.ts';
import { encodePath, showPath, type WirePath } from '../../app/domain/path.ts';
import { type Git, git } from '../objects/git.ts';

/** A work tree under watch. */
export type Tree = Readonly<{
  /** The tree of what lies there now; throws Fault `git_unavailable` where a file cannot be read. */
  print: () => Promise<string>;
  /**
   * The tree of what lies there now without new files that `artifacts` names, and what differs from `before`:
   * a command may leave what it was asked for.
   */
  compare: (before: string, artifacts: readonly string[]) => Promise<{ after: string; mutated: WirePath[] }>;
}>;

/** Watches `workspace`, keeping index and objects in `dir`. */
export async function watchTree(of: {
  workspace: string;
  dir: string;
  path: string;
  signal: AbortSignal;
}): Promise<Tree> {
  const { dir, signal } = of;
  await mkdir(dir, { recursive: true, mode: 0o700 });
  const config: [string, string][] = [
    ['core.autocrlf', 'false'],
    ['core.quotePath', 'false'],
    ['core.fsmonitor', 'false'],
    ['core.untrackedCache', 'false'],
    ['core.attributesFile', '/dev/null'],
    ['core.excludesFile', '/dev/null'],
    ['core.hooksPath', '/dev/null'],
    ['advice.addEmbeddedRepo', 'false'],
    ['gc.auto', '0'],
  ];
  const env: Record<string, string> = {
    PATH: of.path,
    HOME: dir,
    GIT_DIR: dir,
    GIT_INDEX_FILE: join(dir, 'index'),
    GIT_CONFIG_NOSYSTEM: '1',
    GIT_CONFIG_GLOBAL: '/dev/null',
    GIT_TERMINAL_PROMPT: '0',
    LC_ALL: 'C',
    GIT_CONFIG_COUNT: String(config.length),
  };
  config.forEach(([key, value], i) => {
    env[`GIT_CONFIG_KEY_${i}`] = key;
    env[`GIT_CONFIG_VALUE_${i}`] = value;
  });
  const bare: Git = { dir, env };
  await git(bare, ['init', '--quiet', '--bare', '--template=', dir], signal);
  const at: Git = { dir: of.workspace, env: { ...env, GIT_WORK_TREE: of.workspace } };
  const add = async (): Promise<void> => {
    // not `git add`, which runs `git status` in repositories inside, under their own configuration: code of theirs
    const list = ['ls-files', '-z', '--cached', '--others', '--exclude-standard'];
    const paths = (await git(at, list, signal)).toString('latin1').replaceAll('/\0', '\0');
    // ids are all that a fingerprint takes: no content is copied
    const update = ['update-index', '--info-only', '--add', '--remove', '--replace', '-z', '--stdin'];
    await git(at, update, signal, Buffer.from(paths, 'latin1'));
  };
  const write = async () => (await git(at, ['write-tree', '--missing-ok'], signal)).toString('utf8').trim();
  return {
    async print() {
      await add();
      return write();
    },
    async compare(before, artifacts) {
      await add();
      let after = await write();
      let changed = await differing(at, before, after, signal);
      const isArtifact = compileEntries(artifacts);
      const left = changed.filter(({ status, path }) => status === 'A' && isArtifact(showPath(path)));
      if (left.length > 0) {
        const names = left.map(({ raw }) => `${raw.toString('latin1')}\0`).join('');
        await git(
          at,
          ['update-index', '--force-remove', '-z', '--stdin'],
          signal,
          Buffer.from(names, 'latin1'),
        );
        after = await write();
        changed = changed.filter((entry) => !left.includes(entry));
      }
      return { after, mutated: changed.map(({ path }) => path) };
    },
  };
}

type Changed = { status: string; path: WirePath; raw: Buffer };

async function differing(at: Git, before: string, after: string, signal: AbortSignal): Promise<Changed[]> {
  if (before === after) return [];
  const args = ['diff-tree', '-r', '-z', '--no-renames', '--name-status', before, after];
  const out = await git(at, args, signal);
  const fields = out.toString('latin1').split('\0');
  const changed: Changed[] = [];
  for (let i = 0; i + 1 < fields.length; i += 2) {
    const raw = Buffer.from(fields[i + 1] ?? '', 'latin1');
    changed.push({ status: fields[i] ?? '', path: encodePath(raw), raw });
  }
  return changed;
}
