import { spawn } from 'node:child_process';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import { createGunzip } from 'node:zlib';
import type { User } from '../model.ts';
import type { Repository } from '../repository.ts';
import type { World } from '../world.ts';
import { findToken } from './authenticate.ts';
import { holds, reaches } from './permit.ts';

const ROUTE = /^\/([^/]+)\/([^/]+?)(?:\.git)?\/(info\/refs|git-upload-pack|git-receive-pack)$/;

/** Whether a path is git's smart HTTP. */
export function isGitPath(path: string): boolean {
  return ROUTE.test(path);
}

const pushes = new WeakMap<Repository, Promise<void>>();

/** What `git upload-pack` advertises in version 2 of the protocol: capabilities, the same as long as a repository is there. */
const advertised = new WeakMap<Repository, Promise<Buffer>>();

/** Serves clone, fetch and push with `git http-backend`, reads of version 2 with its `git upload-pack` alone; Basic auth with any user name and a token as the password. */
export async function serveGit(
  world: World,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<number> {
  const url = new URL(request.url ?? '/', world.url);
  const [, owner = '', name = '', service = ''] = ROUTE.exec(url.pathname) ?? [];
  const repository = world.repositoryByName(decodeURIComponent(owner), decodeURIComponent(name));
  const moved = world.repositoryByFormerName(decodeURIComponent(owner), decodeURIComponent(name));
  if (moved !== undefined) {
    response.writeHead(301, { location: `${moved.cloneUrl}/${service}${url.search}` }).end();
    return 301;
  }
  const pushing = service === 'git-receive-pack' || url.searchParams.get('service') === 'git-receive-pack';
  const refuse = (status: number, text: string): number => {
    const challenge = status === 401 ? { 'www-authenticate': 'Basic realm="GitHub"' } : {};
    response.writeHead(status, { 'content-type': 'text/plain', ...challenge }).end(text);
    return status;
  };
  const credential = basicPassword(request.headers.authorization);
  const token = credential === null ? null : findToken(world, credential);
  if (credential !== null && token === null) return refuse(401, 'Invalid username or token.');
  if (token === null && (pushing || repository === undefined || repository.private))
    return refuse(401, 'Authentication required');
  if (repository === undefined) return refuse(404, 'Repository not found.');
  if (token !== null) {
    if (token.installation !== null && token.installation.suspendedAt !== null)
      return refuse(403, 'This installation has been suspended');
    const byUser = token.kind === 'user';
    const role = repository.roleOf(token.user);
    const visible = byUser ? role !== 'none' : reaches({ kind: 'token', token }, repository);
    if (!visible && (repository.private || pushing)) return refuse(404, 'Repository not found.');
    const allowed = byUser
      ? !pushing || ['write', 'maintain', 'admin'].includes(role)
      : !visible || holds(token.permissions, 'contents', pushing ? 'write' : 'read');
    if (!allowed)
      return refuse(403, `Permission to ${repository.fullName}.git denied to ${token.user.login}.`);
  }
  if (!pushing && request.headers['git-protocol'] === 'version=2')
    return uploadPack(repository, service, request, response);
  const run = () => backend(world, repository, service, url, request, response);
  if (service !== 'git-receive-pack' || token === null) return run();
  return pushOneByOne(world, repository, token.user, run);
}

// Pushes to one repository go one after another, so that the refs before and after tell what each one did.
async function pushOneByOne(
  world: World,
  repository: Repository,
  pusher: User,
  run: () => Promise<number>,
): Promise<number> {
  const previous = pushes.get(repository) ?? Promise.resolve();
  let done: () => void = () => {};
  pushes.set(repository, new Promise((resolve) => (done = resolve)));
  await previous;
  try {
    const before = await branchesAndTags(repository);
    const settle = async () => {
      const after = await branchesAndTags(repository);
      for (const ref of new Set([...before.keys(), ...after.keys()]))
        await repository.refChanged(ref, before.get(ref) ?? null, after.get(ref) ?? null, pusher);
    };
    const status = await run();
    world.background('push', settle);
    return status;
  } finally {
    done();
  }
}

async function branchesAndTags(repository: Repository): Promise<Map<string, string>> {
  const all = await repository.git.refs('refs');
  return new Map([...all].filter(([ref]) => /^refs\/(heads|tags)\//.test(ref)));
}

function basicPassword(header: string | undefined): string | null {
  const match = /^basic\s+(\S+)$/i.exec(header ?? '');
  if (match === null) return null;
  return Buffer.from(match[1] ?? '', 'base64')
    .toString()
    .split(':')
    .slice(1)
    .join(':');
}

/** Answers as `git http-backend` does, without that process around the one that answers. */
async function uploadPack(
  repository: Repository,
  service: string,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<number> {
  response.setHeader('cache-control', 'no-cache, max-age=0, must-revalidate');
  const { directory } = repository.git;
  const asked = service === 'info/refs' ? 'advertisement' : 'result';
  response.setHeader('content-type', `application/x-git-upload-pack-${asked}`);
  if (service === 'info/refs') {
    const known =
      advertised.get(repository) ?? buffer(startUploadPack(directory, ['--advertise-refs']).stdout);
    advertised.set(repository, known);
    const bytes = await known;
    // git could not start: ask again
    if (bytes.length === 0) advertised.delete(repository);
    response.end(bytes);
    return 200;
  }
  const child = startUploadPack(directory, []);
  child.stdin.on('error', () => {});
  const zipped = /^(?:x-)?gzip$/.test(request.headers['content-encoding'] ?? '');
  if (zipped) pipeline(request, createGunzip(), child.stdin).catch(() => {});
  else request.pipe(child.stdin);
  response.on('close', () => child.kill());
  // without back pressure: who goes away in the middle must not keep it from ending
  child.stdout.on('data', (chunk: Buffer) => response.write(chunk));
  await new Promise((resolve) => child.on('close', resolve).on('error', resolve));
  response.end();
  return 200;
}

function startUploadPack(directory: string, options: readonly string[]) {
  const child = spawn('git', ['upload-pack', '--stateless-rpc', ...options, directory], {
    env: {
      PATH: process.env['PATH'] ?? '/usr/bin:/bin',
      HOME: '/nonexistent',
      GIT_CONFIG_NOSYSTEM: '1',
      GIT_PROTOCOL: 'version=2',
    },
    stdio: ['pipe', 'pipe', 'ignore'],
  });
  child.on('error', () => child.stdout.destroy());
  return child;
}

async function backend(
  world: World,
  repository: Repository,
  service: string,
  url: URL,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<number> {
  const header = (name: string) => String(request.headers[name] ?? '');
  const child = spawn('git', ['http-backend'], {
    env: {
      PATH: process.env['PATH'] ?? '/usr/bin:/bin',
      HOME: '/nonexistent',
      GIT_CONFIG_NOSYSTEM: '1',
      GIT_HTTP_EXPORT_ALL: '1',
      GIT_PROJECT_ROOT: world.root,
      PATH_INFO: `/${repository.id}.git/${service}`,
      REQUEST_METHOD: request.method ?? 'GET',
      QUERY_STRING: url.search.slice(1),
      CONTENT_TYPE: header('content-type'),
      HTTP_CONTENT_ENCODING: header('content-encoding'),
      GIT_PROTOCOL: header('git-protocol'),
      REMOTE_ADDR: '127.0.0.1',
      REMOTE_USER: 'sandbox',
      ...(request.headers['content-length'] === undefined
        ? {}
        : { CONTENT_LENGTH: header('content-length') }),
    },
    stdio: ['pipe', 'pipe', 'ignore'],
  });
  child.stdin.on('error', () => {});
  request.pipe(child.stdin);
  response.on('close', () => child.kill());
  let head = Buffer.alloc(0);
  let status = 0;
  child.stdout.on('data', (chunk: Buffer) => {
    if (status !== 0) return void response.write(chunk);
    head = Buffer.concat([head, chunk]);
    const end = head.indexOf('\r\n\r\n');
    if (end < 0) return;
    status = 200;
    for (const line of head.subarray(0, end).toString().split('\r\n')) {
      const [name = '', value = ''] = line.split(/:\s*(.*)/s);
      if (name.toLowerCase() === 'status') status = Number.parseInt(value, 10);
      else response.setHeader(name, value);
    }
    response.writeHead(status);
    response.write(head.subarray(end + 4));
  });
  await new Promise((resolve) => child.on('close', resolve).on('error', resolve));
  if (status === 0) response.writeHead(500);
  // Ended by the caller's next tick, after what a push changed has been registered for idle().
  setImmediate(() => response.end());
  return status === 0 ? 500 : status;
}
