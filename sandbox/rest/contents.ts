import { type Answer, type Call, notFound, Refused, repositoryOf } from '../http/call.ts';
import type { Json } from '../model.ts';
import type { Repository } from '../repository.ts';
import { commitOf } from './repos.ts';

interface Entry {
  readonly mode: string;
  readonly type: string;
  readonly sha: string;
  readonly size: number;
  readonly path: string;
}

const MEGABYTE = 1024 * 1024;

/** Files and directories; ≤ 1 MB in full, to 100 MB raw only; a symlink to a file gives the target (facts §6). */
export async function contents(call: Call): Promise<Answer> {
  const repository = repositoryOf(call);
  const path = String(call.path['path']).replace(/^\/+|\/+$/g, '');
  const ref = String(call.query['ref'] ?? repository.defaultBranch);
  const commit = await commitOf(repository, ref).catch(() => {
    throw new Refused(404, `No commit found for the ref ${ref}`);
  });
  if (path === '') return { status: 200, body: await directory(repository, commit, '', ref) };
  const entry = await find(repository, commit, path);
  if (entry === undefined) throw notFound();
  if (entry.type === 'tree') return { status: 200, body: await directory(repository, commit, path, ref) };
  if (entry.type === 'commit')
    return {
      status: 200,
      body: { ...common(repository, entry, ref), type: 'submodule', submodule_git_url: null },
    };
  if (entry.mode !== '120000') return file(call, repository, entry, ref);
  const target = (await repository.git.run(['cat-file', 'blob', entry.sha])).toString();
  const resolved = new URL(target, `file:///${path}`).pathname.slice(1);
  const pointed = await find(repository, commit, resolved);
  if (pointed?.type === 'blob' && pointed.mode !== '120000')
    return file(call, repository, { ...pointed, path: entry.path }, ref);
  return { status: 200, body: { ...common(repository, entry, ref), type: 'symlink', target } };
}

async function file(call: Call, repository: Repository, entry: Entry, ref: string): Promise<Answer> {
  const raw = /application\/vnd\.github(\.v3)?\.raw/.test(call.accept);
  if (entry.size > 100 * MEGABYTE)
    throw new Refused(403, 'This API returns blobs up to 100 MB in size. The requested blob is too large.');
  const large = entry.size > MEGABYTE;
  const bytes = large && !raw ? Buffer.alloc(0) : await repository.git.run(['cat-file', 'blob', entry.sha]);
  if (raw)
    return {
      status: 200,
      raw: bytes,
      headers: { 'content-type': 'application/vnd.github.v3.raw; charset=utf-8' },
    };
  const content = bytes.toString('base64').replace(/(.{60})/g, '$1\n');
  return {
    status: 200,
    body: {
      ...common(repository, entry, ref),
      type: 'file',
      encoding: large ? 'none' : 'base64',
      content: content === '' || content.endsWith('\n') ? content : `${content}\n`,
    },
  };
}

async function directory(repository: Repository, commit: string, path: string, ref: string): Promise<Json[]> {
  const entries = await list(repository, path === '' ? commit : `${commit}:${path}`);
  return entries.map((entry) => {
    const type = entry.type === 'tree' ? 'dir' : entry.mode === '120000' ? 'symlink' : 'file';
    const full = { ...entry, path: path === '' ? entry.path : `${path}/${entry.path}` };
    return { ...common(repository, full, ref), type };
  });
}

async function find(repository: Repository, commit: string, path: string): Promise<Entry | undefined> {
  const [entry] = await list(repository, commit, path);
  return entry;
}

async function list(repository: Repository, tree: string, path?: string): Promise<Entry[]> {
  const args = [
    '--literal-pathspecs',
    'ls-tree',
    '-l',
    '-z',
    tree,
    ...(path === undefined ? [] : ['--', path]),
  ];
  const out = (await repository.git.run(args)).toString();
  return out
    .split('\0')
    .filter(Boolean)
    .map((line) => {
      const [meta = '', name = ''] = line.split(/\t(.*)/s);
      const [mode = '', type = '', sha = '', size = ''] = meta.split(/ +/);
      return { mode, type, sha, size: Number.parseInt(size, 10) || 0, path: name };
    });
}

function common(repository: Repository, entry: Entry, ref: string): Json {
  const { world, fullName } = repository;
  const path = entry.path.split('/').map(encodeURIComponent).join('/');
  const self = `${world.apiUrl}/repos/${fullName}/contents/${path}?ref=${encodeURIComponent(ref)}`;
  const git = `${world.apiUrl}/repos/${fullName}/git/${entry.type === 'tree' ? 'trees' : 'blobs'}/${entry.sha}`;
  const html = `${world.url}/${fullName}/blob/${encodeURIComponent(ref)}/${path}`;
  return {
    name: entry.path.split('/').pop() ?? '',
    path: entry.path,
    sha: entry.sha,
    size: entry.size,
    url: self,
    html_url: html,
    git_url: git,
    download_url:
      entry.type === 'blob' ? `${world.url}/${fullName}/raw/${encodeURIComponent(ref)}/${path}` : null,
    _links: { self, git, html },
  };
}
