/** The git reader against real repositories: every byte of a path, every commit, never a short list. */
import { execFileSync, spawnSync } from 'node:child_process';
import { appendFileSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { decodePath, encodePath, pathKey } from '../../app/domain/path.ts';
import { createGitReader } from '../../app/github/git.ts';

const root = mkdtempSync(join(tmpdir(), 'cs-git-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

let serial = 0;

const WHO = ['-c', 'user.name=A', '-c', 'user.email=a@x.test', '-c', 'core.autocrlf=false'];

/** A repository with a work tree, and the bare one it publishes to, as GitHub would hold it. */
class Origin {
  readonly work: string;
  readonly bare: string;
  readonly repository = { id: String(1000 + ++serial), owner: 'o', name: 'n' };
  constructor(format: 'sha1' | 'sha256' = 'sha1') {
    this.work = join(root, `work-${serial}`);
    this.bare = join(root, `bare-${serial}.git`);
    execFileSync('git', ['init', '-q', '-b', 'main', `--object-format=${format}`, this.work]);
    execFileSync('git', ['init', '-q', '--bare', '-b', 'main', `--object-format=${format}`, this.bare]);
    appendFileSync(
      join(this.bare, 'config'),
      '[uploadpack]\n\tallowFilter = true\n\tallowAnySHA1InWant = true\n',
    );
  }
  git(...args: string[]): string {
    return this.#call('git', ...WHO, ...args);
  }
  #call(program: string, ...args: string[]): string {
    const env = { ...process.env, GIT_CONFIG_GLOBAL: '/dev/null' };
    const done = spawnSync(program, args, { cwd: this.work, env, maxBuffer: 1e9 });
    if (done.status !== 0) throw new Error(`${program} ${args.join(' ')}: ${done.stderr}`);
    return done.stdout.toString('utf8').trim();
  }
  write(path: string | Buffer, content: string | Buffer): void {
    const full = Buffer.concat([Buffer.from(`${this.work}/`), Buffer.from(path)]);
    const slash = full.lastIndexOf(0x2f);
    mkdirSync(full.subarray(0, slash), { recursive: true });
    writeFileSync(full, content);
  }
  commit(message: string): string {
    // one start for three: this process is large, and a fork of it costs more than git's work
    const steps = 'm=$1; shift; "$@" add -A && "$@" commit -q --allow-empty -m "$m" && "$@" rev-parse HEAD';
    return this.#call('sh', '-c', steps, 'sh', message, 'git', ...WHO);
  }
  /** Commits made by fast-import: many, quickly. */
  many(branch: string, from: string, count: number, file: (i: number) => string): string {
    const lines: string[] = [];
    for (let i = 0; i < count; i++) {
      const text = `${branch} ${i}\n`;
      lines.push(`commit refs/heads/${branch}`, `committer A <a@x.test> ${1_700_000_000 + i} +0000`);
      lines.push(`data ${Buffer.byteLength(text)}`, text);
      if (i === 0) lines.push(`from ${from}`);
      lines.push(`M 100644 inline ${file(i)}`, `data ${Buffer.byteLength(text)}`, text);
    }
    execFileSync('git', ['-C', this.work, 'fast-import', '--quiet', '--force'], { input: lines.join('\n') });
    return this.git('rev-parse', branch);
  }
  publish(pull: string, head: string): void {
    this.git('push', '-q', '-f', this.bare, 'main:refs/heads/main', `${head}:refs/pull/${pull}/head`);
  }
  reader(cache = `cache-${serial}`) {
    const git = createGitReader({ directory: join(root, cache) });
    const cloneUrl = `file://${this.bare}`;
    return {
      git,
      cloneUrl,
      readPull: (head: string, commits?: number, mergeBase: string | null = null) =>
        git.readPull({
          repository: this.repository,
          cloneUrl,
          token: '',
          pull: '7',
          head,
          base: this.git('rev-parse', 'main'),
          mergeBase,
          ...(commits === undefined ? {} : { commits }),
        }),
    };
  }
}

describe('paths', () => {
  it('case 19: seven odd names round-trip as bytes', async () => {
    const origin = new Origin();
    origin.write('keep', 'x\n');
    origin.commit('base');
    origin.git('checkout', '-q', '-b', 'f');
    const names = [
      Buffer.from('naïve.ts'),
      Buffer.from('a b/c d.md'),
      Buffer.from('x b/y.txt'),
      Buffer.from('tab\t🐧".sh'),
      Buffer.from('-n.txt'),
      Buffer.from('ends in a space '),
      Buffer.from([0x62, 0x61, 0x64, 0xff, 0xfe, 0x2e, 0x74, 0x73]),
    ];
    for (const name of names) origin.write(name, `content of ${name.toString('hex')}\n`);
    const head = origin.commit('odd names');
    origin.publish('7', head);
    const { readPull, git, cloneUrl } = origin.reader();
    const reading = await readPull(head, 1);
    const keys = names.map((name) => name.toString('latin1')).sort();
    expect(reading.files.map((file) => decodePath(file.path).toString('latin1')).sort()).toEqual(keys);
    expect(reading.commits).toHaveLength(1);
    expect(reading.commits[0]?.changes.map((c) => pathKey(c.path)).sort()).toEqual(keys);
    for (const name of names) {
      const bytes = await git.readPath(origin.repository, cloneUrl, '', head, encodePath(name));
      expect(bytes?.toString()).toBe(`content of ${name.toString('hex')}\n`);
    }
  });

  it('GIT-2: CRLF, symlinks, modes and submodules come as git has them', async () => {
    const origin = new Origin();
    origin.write('crlf.txt', 'a\r\nb\r\n');
    origin.write('run.sh', 'echo\n');
    const first = origin.commit('base');
    origin.git('update-index', '--add', '--cacheinfo', `160000,${first},vendor/lib`);
    origin.git('commit', '-q', '-m', 'submodule');
    const second = origin.git('rev-parse', 'HEAD');
    origin.git('checkout', '-q', '-b', 'f');
    origin.write('crlf.txt', 'a\r\nb\r\nc\r\n');
    origin.git('update-index', '--chmod=+x', 'run.sh');
    symlinkSync('run.sh', join(origin.work, 'link'));
    origin.git('add', 'crlf.txt', 'link');
    origin.git('update-index', '--add', '--cacheinfo', `160000,${second},vendor/lib`);
    origin.git('commit', '-q', '-m', 'change');
    const head = origin.git('rev-parse', 'HEAD');
    origin.publish('7', head);
    const { readPull, git, cloneUrl } = origin.reader();
    const { files } = await readPull(head);
    const by = new Map(files.map((f) => [pathKey(f.path), f]));
    expect(by.get('run.sh')).toMatchObject({ status: 'M', modeBase: '100644', modeHead: '100755' });
    expect(by.get('link')).toMatchObject({ status: 'A', modeBase: null, modeHead: '120000' });
    expect(by.get('vendor/lib')).toMatchObject({
      status: 'M',
      modeHead: '160000',
      blobBase: first,
      blobHead: second,
    });
    const blob = by.get('crlf.txt')?.blobHead ?? '';
    const blobs = await git.readBlobs(origin.repository, cloneUrl, '', [blob, 'f'.repeat(40)]);
    expect(blobs.get(blob)?.toString()).toBe('a\r\nb\r\nc\r\n');
    expect(blobs.size).toBe(1);
  });

  it('GIT-2: a message cannot forge entries of the log', async () => {
    const origin = new Origin();
    origin.write('a', '1\n');
    origin.commit('base');
    origin.git('checkout', '-q', '-b', 'f');
    origin.write('b', '2\n');
    const forged = `subject\n\n:100644 100644 ${'1'.repeat(40)} ${'2'.repeat(40)} M\n\u001f\u001eBlock\u001eevil\n`;
    const head = origin.commit(forged);
    origin.publish('7', head);
    const reading = await origin.reader().readPull(head);
    expect(reading.commits.map((c) => c.changes.map((x) => x.path))).toEqual([['b']]);
    expect(reading.commits[0]?.message.startsWith('subject\n\n:100644')).toBe(true);
  });

  it('BLK-3: trailers come as git parses them, of the last paragraph only', async () => {
    const origin = new Origin();
    origin.write('a', '1\n');
    origin.commit('base');
    origin.git('checkout', '-q', '-b', 'f');
    const head = origin.commit(
      'subject\n\nBlock: not-this\n\ntext\n\nBlock: login\nOwns: src/\nOwns: a long\n value',
    );
    origin.publish('7', head);
    const { commits } = await origin.reader().readPull(head);
    expect(commits[0]?.trailers).toEqual([
      { key: 'Block', value: 'login' },
      { key: 'Owns', value: 'src/' },
      { key: 'Owns', value: 'a long value' },
    ]);
    expect(commits[0]?.changes).toEqual([]);
  });
});

describe('completeness', () => {
  it('case 14: 310 commits and a merge that brings 400 of the base make 311, none of the 400', async () => {
    const origin = new Origin();
    origin.write('both.txt', 'one\n');
    const base = origin.commit('base');
    origin.many('f', base, 200, (i) => `own/${i}`);
    origin.many('main', base, 400, (i) => `base/${i}`);
    origin.git('checkout', '-q', '-f', 'main');
    origin.write('both.txt', 'of main\n');
    const tip = origin.commit('main changes both');
    origin.git('checkout', '-q', '-f', 'f');
    origin.write('both.txt', 'of f\n');
    origin.commit('f changes both');
    spawnSync('git', ['merge', '-q', 'main'], { cwd: origin.work });
    origin.write('both.txt', 'resolved\n');
    const merge = origin.commit('Merge main');
    origin.git('branch', '-f', 'g', merge);
    const head = origin.many('g', merge, 109, (i) => `later/${i}`);
    origin.publish('7', head);

    const { readPull } = origin.reader();
    const reading = await readPull(head, 311, tip);
    expect(reading.commits).toHaveLength(311);
    expect(reading.mergeBase).toBe(tip);
    const merged = reading.commits.find((c) => c.oid === merge);
    expect(merged?.parents).toHaveLength(2);
    expect(merged?.changes.map((c) => c.path)).toEqual(['both.txt']);
    const want = origin.git('log', '--reverse', '--topo-order', '--format=%H', `main..${head}`).split('\n');
    expect(reading.commits.map((c) => c.oid)).toEqual(want);
    // the same without being told anything
    const told = await origin.reader('other').readPull(head);
    expect(told.commits.map((c) => c.oid)).toEqual(want);
    expect(told.files).toEqual(reading.files);
    expect(told.mergeBase).toBe(tip);
  });

  it('case 17: 3,412 files are all there', async () => {
    const origin = new Origin();
    origin.write('a', '1\n');
    const base = origin.commit('base');
    const lines = [
      `commit refs/heads/f`,
      'committer A <a@x.test> 1700000000 +0000',
      'data 1',
      'm',
      `from ${base}`,
    ];
    for (let i = 0; i < 3412; i++) lines.push(`M 100644 inline d${i % 40}/f${i}`, 'data 2', `${i % 10}\n`);
    execFileSync('git', ['-C', origin.work, 'fast-import', '--quiet'], { input: `${lines.join('\n')}\n` });
    const head = origin.git('rev-parse', 'f');
    origin.publish('7', head);
    expect((await origin.reader().readPull(head, 1)).files).toHaveLength(3412);
  });

  it('GIT-3: a head that is not fetchable yet is git_unavailable, never a shorter list', async () => {
    const origin = new Origin();
    origin.write('a', '1\n');
    origin.commit('base');
    origin.git('checkout', '-q', '-b', 'f');
    const seen = origin.commit('one');
    origin.publish('7', seen);
    const { readPull } = origin.reader();
    await readPull(seen);
    const unseen = origin.commit('two');
    await expect(readPull(unseen)).rejects.toMatchObject({ code: 'git_unavailable', retryable: true });
    origin.publish('7', unseen);
    expect((await readPull(unseen)).commits).toHaveLength(2);
  });

  it('GIT-3: no common commit is no_merge_base', async () => {
    const origin = new Origin();
    origin.write('a', '1\n');
    origin.commit('base');
    origin.git('checkout', '-q', '--orphan', 'f');
    const head = origin.commit('root');
    origin.publish('7', head);
    await expect(origin.reader().readPull(head)).rejects.toMatchObject({ code: 'no_merge_base' });
  });

  it('GIT-3: a server that is away is git_unavailable', async () => {
    const origin = new Origin();
    origin.write('a', '1\n');
    const head = origin.commit('base');
    origin.publish('7', head);
    const { git } = origin.reader();
    const gone = {
      repository: origin.repository,
      cloneUrl: `file://${root}/nowhere.git`,
      token: '',
      pull: '7',
      head,
      base: head,
      mergeBase: null,
    };
    await expect(git.readPull(gone)).rejects.toMatchObject({ code: 'git_unavailable', retryable: true });
  });

  it('GIT-1: past the size limit git_unavailable names it', async () => {
    const origin = new Origin();
    origin.write('a', '1\n');
    const head = origin.commit('base');
    origin.publish('7', head);
    const git = createGitReader({ directory: join(root, 'tiny'), limits: { bytes: 10 } });
    const read = () =>
      git.readPath(origin.repository, `file://${origin.bare}`, '', head, 'a').catch((error: Error) => error);
    for (let i = 0; i < 2; i++) {
      expect(await read()).toMatchObject({
        code: 'git_unavailable',
        message: expect.stringContaining('10 bytes'),
      });
    }
  });

  it('GIT-1: past the time limit git_unavailable names it', async () => {
    const origin = new Origin();
    origin.write('a', '1\n');
    const head = origin.commit('base');
    origin.publish('7', head);
    const git = createGitReader({ directory: join(root, 'small'), limits: { fetchMs: 1 } });
    await expect(
      git.readPull({
        repository: origin.repository,
        cloneUrl: `file://${origin.bare}`,
        token: '',
        pull: '7',
        head,
        base: head,
        mergeBase: null,
      }),
    ).rejects.toMatchObject({ code: 'git_unavailable', message: expect.stringContaining('finish within') });
  });

  it('GIT-1: the cache may be deleted at any time, and by halves', async () => {
    const origin = new Origin();
    origin.write('a', '1\n');
    origin.commit('base');
    origin.git('checkout', '-q', '-b', 'f');
    origin.write('b', '2\n');
    const head = origin.commit('one');
    origin.publish('7', head);
    const { readPull } = origin.reader('fragile');
    const first = await readPull(head);
    rmSync(join(root, 'fragile', `${origin.repository.id}.git`), { recursive: true });
    expect(await readPull(head)).toEqual(first);
    rmSync(join(root, 'fragile', `${origin.repository.id}.git`, 'objects'), { recursive: true });
    expect(await readPull(head)).toEqual(first);
  });

  it('GIT-1: two processes may share a cache', async () => {
    const origin = new Origin();
    origin.write('a', '1\n');
    const base = origin.commit('base');
    const head = origin.many('f', base, 80, (i) => `f/${i}`);
    origin.publish('7', head);
    // readers of their own: nothing in the process keeps them apart
    const readings = await Promise.all(
      Array.from({ length: 4 }, () => origin.reader('shared').readPull(head, 80)),
    );
    for (const reading of readings) expect(reading).toEqual(readings[0]);
    expect(readings[0]?.commits).toHaveLength(80);
  });

  it('GIT-5: a SHA-256 repository is read alike', async () => {
    const origin = new Origin('sha256');
    origin.write('a', '1\n');
    origin.commit('base');
    origin.git('checkout', '-q', '-b', 'f');
    origin.write('dir/b', '2\n');
    const head = origin.commit('one');
    origin.publish('7', head);
    expect(head).toHaveLength(64);
    const { readPull, git, cloneUrl } = origin.reader();
    const reading = await readPull(head);
    expect(reading.files).toMatchObject([{ path: 'dir/b', status: 'A' }]);
    expect(reading.files[0]?.blobHead).toHaveLength(64);
    expect((await git.readPath(origin.repository, cloneUrl, '', head, 'dir/b'))?.toString()).toBe('2\n');
    expect(await git.readPath(origin.repository, cloneUrl, '', head, 'dir')).toBeNull();
    expect(await git.readPath(origin.repository, cloneUrl, '', head, 'none/at/all')).toBeNull();
  });
});

describe('the token', () => {
  it('GIT-1: goes to the server alone, is not stored, not told, and follows no redirect', async () => {
    const seen: { server: string; authorization: string | undefined }[] = [];
    const serve = (server: string, answer: (response: ServerResponse) => void) =>
      new Promise<Server>((resolve) => {
        const made = createServer((request, response) => {
          seen.push({ server, authorization: request.headers.authorization });
          answer(response);
          response.end();
        }).listen(0, '127.0.0.1', () => resolve(made));
      });
    const url = (server: Server) => `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const thief = await serve('thief', () => {});
    const github = await serve('github', (response) =>
      response.writeHead(302, { location: `${url(thief)}/o/n.git/info/refs?service=git-upload-pack` }),
    );
    const git = createGitReader({ directory: join(root, 'token') });
    const token = 'ghs_secretsecretsecret';
    const repository = { id: '77', owner: 'o', name: 'n' };
    const error = await git
      .readPath(repository, `${url(github)}/o/n.git`, token, 'a'.repeat(40), 'x')
      .catch((reason: Error) => reason);
    await Promise.all([thief, github].map((server) => new Promise((done) => server.close(done))));
    expect(error).toMatchObject({ code: 'git_unavailable', retryable: true });
    expect(String((error as Error).message)).not.toContain(token);
    const basic = `Basic ${Buffer.from(`x-access-token:${token}`).toString('base64')}`;
    expect(seen).toEqual([{ server: 'github', authorization: basic }]);
    const stored = spawnSync('grep', ['-rlE', `${token}|${basic.slice(6)}|secret`, join(root, 'token')]);
    expect(stored.stdout.toString()).toBe('');
  });

  it('GIT-1: a URL with credentials, or of another protocol, is refused', async () => {
    const git = createGitReader({ directory: join(root, 'odd') });
    const repository = { id: '78', owner: 'o', name: 'n' };
    for (const url of ['https://u:p@x.test/a.git', 'ssh://x.test/a.git', 'ext::sh -c id']) {
      await expect(git.readPath(repository, url, '', 'a'.repeat(40), 'x')).rejects.toMatchObject({
        code: 'bug',
      });
    }
  });
});

describe('changes', () => {
  it('case 18: pairs of a 500-file move are right, exact or similar', async () => {
    const origin = new Origin();
    const body = (i: number) => Array.from({ length: 20 }, (_, n) => `line ${n} of ${i}`).join('\n');
    for (let i = 0; i < 500; i++) origin.write(`old/f${i}.ts`, `${body(i)}\n`);
    origin.write('secrets/policy.yml', 'rule: 1\nof: secrets\n');
    origin.commit('base');
    origin.git('checkout', '-q', '-b', 'f');
    origin.git('mv', 'old', 'new');
    mkdirSync(join(origin.work, 'docs'));
    origin.git('mv', 'secrets/policy.yml', 'docs/old.yml');
    for (let i = 0; i < 500; i += 10) origin.write(`new/f${i}.ts`, `${body(i)}\nedited ${i}\n`);
    const head = origin.commit('move');
    origin.publish('7', head);
    const { files, renames } = await origin.reader().readPull(head);
    expect(files).toHaveLength(1002); // both sides of every move are paths
    expect(renames).toHaveLength(501);
    for (const pair of renames) {
      const to = String(pair.to);
      if (to === 'docs/old.yml') expect(pair).toEqual({ from: 'secrets/policy.yml', to, exact: true });
      else {
        expect(pair.from).toBe(to.replace(/^new/, 'old'));
        expect(pair.exact).toBe(!/f\d*0\.ts$/.test(to));
      }
    }
  });

  it('REV-5: files of two heads are paired by their blobs alone, under odd names, also after a force push', async () => {
    const origin = new Origin();
    const body = (word: string) => Array.from({ length: 20 }, (_, n) => `line ${n} of ${word}`).join('\n');
    origin.write('keep', 'x\n');
    origin.commit('base');
    const odd = Buffer.from([0x62, 0xff, 0x2f, 0x61]);
    const blob = (text: string) => {
      origin.write('blob', text);
      return origin.git('hash-object', '-w', 'blob');
    };
    const [one, other, short] = [blob(`${body('one')}\n`), blob(`${body('other')}\n`), blob('short\n')];
    rmSync(join(origin.work, 'blob'));
    origin.git('checkout', '-q', '-b', 'f');
    origin.write(odd, `${body('one')}\nedited\n`);
    origin.write('-n.ts', `${body('other')}\nedited\n`);
    const head = origin.commit('renamed');
    origin.publish('7', head);
    const { readPull, git, cloneUrl } = origin.reader();
    const { files } = await readPull(head);
    const came = files.map(({ path, blobHead }) => ({ path, blob: blobHead ?? '' }));
    // blobs of a head that is no longer anywhere: here from the object store, at GitHub for as long as it keeps them
    for (const oid of [one, other, short])
      execFileSync('git', ['-C', origin.bare, 'hash-object', '-w', '--stdin'], {
        input: `${origin.git('cat-file', 'blob', oid)}\n`,
      });
    const gone = [
      { path: 'was/one.ts', blob: one },
      { path: 'was/other.ts', blob: other },
      { path: 'was/short.ts', blob: short },
      { path: 'was/unknown.ts', blob: 'e'.repeat(40) },
    ];
    const pairs = await git.pairSimilar(origin.repository, cloneUrl, '', gone, came);
    expect(new Map(pairs.map(({ from, to }) => [String(from), pathKey(to)]))).toEqual(
      new Map([
        ['was/one.ts', odd.toString('latin1')],
        ['was/other.ts', '-n.ts'],
      ]),
    );
    expect(await git.pairSimilar(origin.repository, cloneUrl, '', [], came)).toEqual([]);
  });

  it('case 24: what is added and deleted again is no file, but its commits tell', async () => {
    const origin = new Origin();
    origin.write('old/auth.ts', 'auth\n');
    origin.commit('base');
    origin.git('checkout', '-q', '-b', 'f');
    origin.write('a.ts', 'a\n');
    origin.write('b.ts', 'b\n');
    origin.commit('one');
    rmSync(join(origin.work, 'b.ts'));
    origin.commit('two');
    rmSync(join(origin.work, 'old/auth.ts'));
    const head = origin.commit('three');
    origin.publish('7', head);
    const { files, commits } = await origin.reader().readPull(head);
    expect(files.map((f) => [f.path, f.status])).toEqual([
      ['a.ts', 'A'],
      ['old/auth.ts', 'D'],
    ]);
    expect(commits.map((c) => c.changes.map((x) => `${x.status} ${x.path}`))).toEqual([
      ['A a.ts', 'A b.ts'],
      ['D b.ts'],
      ['D old/auth.ts'],
    ]);
  });

  it('RUN-3: a force push is told from a push on top', async () => {
    const origin = new Origin();
    origin.write('a', '1\n');
    origin.commit('base');
    origin.git('checkout', '-q', '-b', 'f');
    const c1 = origin.commit('c1');
    origin.publish('7', c1);
    const { readPull, git } = origin.reader();
    await readPull(c1);
    const next = origin.commit('on top');
    origin.publish('7', next);
    await readPull(next);
    expect(await git.isAncestor(origin.repository, c1, next)).toBe(true);
    origin.git('reset', '-q', '--hard', 'main');
    const sibling = origin.commit('sibling');
    origin.publish('7', sibling);
    await readPull(sibling);
    expect(await git.isAncestor(origin.repository, next, sibling)).toBe(false);
    expect(await git.isAncestor(origin.repository, 'e'.repeat(40), sibling)).toBeNull();
    // the old head was merged, the base went on, and the branch begins anew from there: behind the cut
    origin.git('checkout', '-q', 'main');
    origin.git('merge', '-q', '--ff-only', next);
    for (let i = 0; i < 3; i++) origin.commit(`base ${i}`);
    origin.git('checkout', '-q', '-B', 'f');
    const anew = origin.commit('anew');
    origin.publish('7', anew);
    await readPull(anew);
    expect(await git.isAncestor(origin.repository, next, anew), 'never false where it cannot see').not.toBe(
      false,
    );
  });
});
