/** Merge groups by git itself (GAT-5): against real repositories. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { createGitReader } from '../../../app/github/git.ts';

const root = mkdtempSync(join(tmpdir(), 'cs-group-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));
let serial = 0;

function origin(format: 'sha1' | 'sha256' = 'sha1') {
  const id = ++serial;
  const work = join(root, `work-${id}`);
  const git = (...args: string[]): string =>
    execFileSync('git', ['-c', 'user.name=A', '-c', 'user.email=a@x.test', ...args], {
      cwd: work,
      env: { ...process.env, GIT_CONFIG_GLOBAL: '/dev/null' },
      stdio: ['ignore', 'pipe', 'ignore'],
    })
      .toString()
      .trim();
  mkdirSync(work);
  git('init', '-q', '-b', 'main', `--object-format=${format}`);
  git('config', 'uploadpack.allowFilter', 'true');
  git('config', 'uploadpack.allowAnySHA1InWant', 'true');
  const commit = (files: Record<string, string | null>): string => {
    for (const [path, text] of Object.entries(files)) {
      mkdirSync(dirname(join(work, path)), { recursive: true });
      if (text === null) rmSync(join(work, path));
      else writeFileSync(join(work, path), text);
    }
    git('add', '-A');
    git('commit', '-q', '--allow-empty', '-m', 'change');
    return git('rev-parse', 'HEAD');
  };
  const branch = (from: string, files: Record<string, string | null>): string => {
    git('checkout', '-q', '--detach', from);
    return commit(files);
  };
  const reader = createGitReader({ directory: join(root, 'cache') });
  const read = (head: string, base: string, ...members: string[]) =>
    reader.readGroup({
      repository: { id: String(5_000 + id), owner: 'o', name: 'n' },
      cloneUrl: `file://${work}`,
      token: '',
      head,
      base,
      members: members.map((one, i) => ({ pull: String(i + 1), head: one })),
    });
  return { git, commit, branch, read };
}
const text = (...changed: [number, string][]) => {
  const lines = Array.from({ length: 30 }, (_, i) => `line ${i}`);
  for (const [at, to] of changed) lines[at] = to;
  return `${lines.join('\n')}\n`;
};

describe('GAT-5: a merge group read by git', () => {
  it.each(['sha1', 'sha256'] as const)(
    'GAT-5: squashed, of a base that moved on, one file of two members: the tree is the clean merge (%s)',
    async (format) => {
      const { git, commit, branch, read } = origin(format);
      const start = commit({ 'shared.txt': text(), 'old.ts': 'o\n', 'keep.ts': 'k\n' });
      const one = branch(start, { 'shared.txt': text([2, 'one']), 'old.ts': null });
      const two = branch(start, { 'shared.txt': text([20, 'two']), 'new.ts': 'n\n' });
      const base = branch(start, { 'shared.txt': text([28, 'base']), 'keep.ts': 'kept\n' });
      branch(base, { 'shared.txt': text([2, 'one'], [28, 'base']), 'old.ts': null });
      const head = commit({ 'shared.txt': text([2, 'one'], [20, 'two'], [28, 'base']), 'new.ts': 'n\n' });
      git('branch', 'group', head);
      git('branch', 'one', one);
      git('branch', 'two', two);
      const { reading, tree, merged } = await read(head, base, one, two);
      expect(reading.files.map((file) => `${file.status} ${file.path}`)).toEqual([
        'A new.ts',
        'D old.ts',
        'M shared.txt',
      ]);
      expect(tree).toBe(git('rev-parse', `${head}^{tree}`));
      expect(merged).toBe(tree);
      expect((await read(head, base, one)).merged, 'not of one alone').not.toBe(tree);
      expect((await read(head, base)).merged).toBeNull();
    },
  );

  it('GAT-5: members that conflict, or a head that nobody has, leave no clean merge, and the group is read all the same', async () => {
    const { commit, branch, read } = origin();
    const base = commit({ 'a.txt': 'a\n' });
    const one = branch(base, { 'a.txt': 'one\n' });
    const two = branch(base, { 'a.txt': 'two\n' });
    const head = branch(base, { 'a.txt': 'one\ntwo\n' });
    expect(await read(head, base, one, two)).toMatchObject({
      merged: null,
      reading: { files: [{ path: 'a.txt' }] },
    });
    expect(await read(head, base, 'e'.repeat(40))).toMatchObject({ merged: null });
  });

  it('GAT-5: what is in the group and in no member makes another tree; a rename is merged with its edit', async () => {
    const { commit, branch, read } = origin();
    const base = commit({ 'lib/a.ts': text(), 'b.ts': 'b\n' });
    const one = branch(base, { 'lib/a.ts': null, 'src/a.ts': text() });
    const two = branch(base, { 'lib/a.ts': text([5, 'edited']) });
    const clean = branch(base, { 'lib/a.ts': null, 'src/a.ts': text([5, 'edited']) });
    const whole = await read(clean, base, one, two);
    expect(whole.merged).toBe(whole.tree);
    const more = branch(base, { 'lib/a.ts': null, 'src/a.ts': text([5, 'edited']), 'b.ts': 'smuggled\n' });
    const other = await read(more, base, one, two);
    expect(other.merged).toBe(whole.tree);
    expect(other.merged).not.toBe(other.tree);
  });

  it('GAT-5: a commit that is not fetchable, or is not on the base, is never an empty list', async () => {
    const { commit, branch, read } = origin();
    const base = commit({ 'a.txt': 'a\n' });
    await expect(read('e'.repeat(40), base)).rejects.toMatchObject({
      code: 'git_unavailable',
      retryable: true,
    });
    const beside = branch(base, { 'b.txt': 'b\n' });
    const head = branch(base, { 'c.txt': 'c\n' });
    await expect(read(head, beside)).rejects.toMatchObject({ code: 'no_merge_base' });
  });
});
