/** What a fetch brings and what it may do (GIT-1), watched from beside: every call of git is recorded by a program of its name. */
import { execFileSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createGitReader } from '../../../app/github/git.ts';

const root = mkdtempSync(join(tmpdir(), 'cs-fetch-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

const GIT = execFileSync('sh', ['-c', 'command -v git']).toString().trim();
const log = join(root, 'calls');
const bin = join(root, 'bin');
const origin = join(root, 'origin.git');
const repository = { id: '501', owner: 'o', name: 'n' };

function git(args: readonly string[], input?: string | Buffer, gitDir = origin): string {
  const who = ['-c', 'user.name=A', '-c', 'user.email=a@x.test'];
  return execFileSync(GIT, [...who, `--git-dir=${gitDir}`, ...args], {
    input: input ?? '',
    env: { ...process.env, GIT_CONFIG_GLOBAL: '/dev/null' },
    stdio: ['pipe', 'pipe', 'pipe'],
    maxBuffer: 1e9,
  })
    .toString()
    .trim();
}

/** Commits on a branch by fast-import; `files` of each are lines of its language. */
function commits(branch: string, from: string | null, each: readonly (readonly string[])[]): string {
  const lines = each.flatMap((files, i) => [
    `commit refs/heads/${branch}`,
    `committer A <a@x.test> ${1_700_000_000 + i} +0000`,
    'data 1',
    'm',
    ...(i === 0 && from !== null ? [`from ${from}`] : []),
    ...files,
  ]);
  git(['fast-import', '--quiet', '--force'], `${lines.join('\n')}\n`);
  return git(['rev-parse', branch]);
}
const file = (path: string, text: string) => [
  `M 100644 inline ${path}`,
  `data ${Buffer.byteLength(text)}`,
  text,
];

let base: string;
beforeAll(() => {
  execFileSync(GIT, ['init', '-q', '--bare', '-b', 'main', origin]);
  for (const key of ['uploadpack.allowFilter', 'uploadpack.allowAnySHA1InWant']) git(['config', key, 'true']);
  base = commits(
    'main',
    null,
    Array.from({ length: 30 }, (_, i) => file(`lib/f${i}.ts`, `base ${i}\n`)),
  );
  mkdirSync(bin);
  // one line a call: its arguments, and those of its configuration by environment
  writeFileSync(
    join(bin, 'git'),
    `#!/bin/sh\nprintf 'argv' >> "${log}"\nprintf ' %s' "$@" >> "${log}"\nprintf '\\n' >> "${log}"\nexport | grep GIT_CONFIG_VALUE >> "${log}"\nexec ${GIT} "$@"\n`,
  );
  chmodSync(join(bin, 'git'), 0o755);
});

const environment = { PATH: `${bin}:${process.env['PATH']}` };
const calls = (verb: string) =>
  readFileSync(log, 'utf8')
    .split('\n')
    .filter((line) => line.startsWith('argv ') && line.includes(` ${verb} `));

function reader(cache: string, cloneUrl = `file://${origin}`) {
  const directory = join(root, cache);
  const of = createGitReader({ directory, environment });
  return {
    of,
    cloneUrl,
    cache: join(directory, `${repository.id}.git`),
    readPull: (pull: string, head: string, count: number) => {
      git(['update-ref', `refs/pull/${pull}/head`, head]);
      const at = { repository, cloneUrl, token: '', pull, head, base, mergeBase: base, commits: count };
      return of.readPull(at);
    },
  };
}

it('GIT-1: the cache is bare, holds the commits of the pull request and no blob; what is asked for comes in one batch', async () => {
  const head = commits('one', base, [
    file('lib/f1.ts', 'one\n'),
    file('lib/f2.ts', 'two\n'),
    file('new.ts', 'new\n'),
  ]);
  const { of, cloneUrl, cache, readPull } = reader('plain');
  rmSync(log, { force: true });
  const { files } = await readPull('1', head, 3);
  expect(files).toHaveLength(3);
  expect(calls('fetch')).toHaveLength(1);
  expect(calls('fetch')[0]).toMatch(/ --filter=blob:none --depth=4 /);
  expect(calls('fetch')[0]).toContain(' +refs/pull/1/head:');
  const held = () =>
    git(['cat-file', '--batch-all-objects', '--batch-check=%(objecttype)'], '', cache).split('\n');
  expect(held().filter((type) => type === 'blob')).toEqual([]);
  // the three, and as deep the base's: 30 are there
  expect(held().filter((type) => type === 'commit')).toHaveLength(7);
  expect(git(['config', 'core.bare'], '', cache)).toBe('true');
  expect(readFileSync(join(cache, 'config'), 'utf8')).not.toMatch(/remote|url/i);

  const both = files.flatMap(({ blobBase, blobHead }) => [blobBase, blobHead].filter((oid) => oid !== null));
  expect(both).toHaveLength(5);
  rmSync(log);
  const blobs = await of.readBlobs(repository, cloneUrl, '', both);
  expect([...blobs.values()].map(String).sort()).toEqual(['base 1\n', 'base 2\n', 'new\n', 'one\n', 'two\n']);
  expect(calls('fetch')).toHaveLength(1);
  expect(held().filter((type) => type === 'blob')).toHaveLength(5);
});

it('GIT-1: the token is in the environment of git and in no argument of it', async () => {
  const server = createServer((_, response) => {
    response.writeHead(404).end();
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/o/n.git`;
  const token = 'ghs_secretsecretsecret';
  const basic = Buffer.from(`x-access-token:${token}`).toString('base64');
  rmSync(log, { force: true });
  const failed = reader('token', url).of.readPath(repository, url, token, base, 'a');
  await expect(failed).rejects.toMatchObject({ code: 'git_unavailable' });
  server.closeAllConnections();
  await new Promise((done) => server.close(done));
  expect(calls('fetch').length).toBeGreaterThan(0);
  expect(readFileSync(log, 'utf8')).toContain(basic);
  for (const line of readFileSync(log, 'utf8').split('\n')) {
    if (line.startsWith('argv ')) expect(line).not.toMatch(new RegExp(`${token}|${basic}`));
  }
});

it('GIT-1: no hook of the cache runs, and nothing is checked out', async () => {
  const { cache, readPull } = reader('hooks');
  const first = commits('two', base, [file('a.ts', 'a\n')]);
  await readPull('2', first, 1);
  const marker = join(root, 'hook-ran');
  mkdirSync(join(cache, 'hooks'), { recursive: true });
  for (const name of ['reference-transaction', 'post-checkout', 'post-index-change', 'pre-auto-gc']) {
    writeFileSync(join(cache, 'hooks', name), `#!/bin/sh\ntouch ${marker}\n`, { mode: 0o755 });
  }
  const { files } = await readPull('2', commits('two', first, [file('b.ts', 'b\n')]), 2);
  expect(files.map(({ path }) => path)).toEqual(['a.ts', 'b.ts']);
  expect(existsSync(marker)).toBe(false);
  expect(existsSync(join(cache, 'a.ts'))).toBe(false);
});

it('GIT-1: objects are checked as they come: a tree that holds .git is not taken', async () => {
  const blob = git(['hash-object', '-w', '--stdin'], '[core]\n');
  const entry = Buffer.concat([Buffer.from('100644 .git\0', 'latin1'), Buffer.from(blob, 'hex')]);
  const tree = git(['hash-object', '-t', 'tree', '-w', '--literally', '--stdin'], entry);
  const head = git(['commit-tree', tree, '-p', base, '-m', 'harm']);
  const { readPull, cache } = reader('checked');
  await expect(readPull('3', head, 1)).rejects.toMatchObject({
    code: 'git_unavailable',
    message: expect.stringContaining('hasDotgit'),
  });
  expect(() => git(['cat-file', '-e', tree], '', cache)).toThrow();
});

it('GIT-4: past 1,000 candidates a side only equal contents are paired, and no blob is fetched for it', async () => {
  const many = Array.from({ length: 1_001 }, (_, i) => i);
  const text = (i: number) => `${'line of text\n'.repeat(20)}${i}\n`;
  base = commits('main', base, [
    [...many.flatMap((i) => file(`old/f${i}`, text(i))), ...file('was', 'same\n')],
  ]);
  const gone = [...many.map((i) => `D old/f${i}`), 'D was'];
  const came = many.flatMap((i) => file(`new/f${i}`, `${text(i)}edited\n`));
  const head = commits('many', base, [[...gone, ...came, ...file('is', 'same\n')]]);
  const { readPull } = reader('many');
  rmSync(log);
  const { files, renames } = await readPull('4', head, 1);
  expect(files).toHaveLength(2_004);
  expect(renames).toEqual([{ from: 'was', to: 'is', exact: true }]);
  expect(calls('fetch')).toHaveLength(1);
});
