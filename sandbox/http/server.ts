import { randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { checkAnswer, checkBody, checkParameters, operationsByPath } from '../openapi.ts';
import type { OperationId } from '../operations.ts';
import type { Repository } from '../repository.ts';
import type { World } from '../world.ts';
import { authenticate } from './authenticate.ts';
import { type Answer, type Bearer, type Call, type Handler, Refused } from './call.ts';
import type { Faults } from './faults.ts';
import { isGitPath, serveGit } from './git-backend.ts';
import { GRAPHQL_PATH, serveQuery } from './graphql.ts';
import { createsContent, type Limits, type RequestRecord } from './limits.ts';
import { permit } from './permit.ts';

/** REST lives below this path, as on an own GitHub Enterprise host; git and pages at the root (facts/github.md §18). */
export const API_PREFIX = '/api/v3';

/** What the server is put together from. */
export interface ServerParts {
  readonly world: World;
  readonly handlers: Readonly<Record<OperationId, Handler>>;
  readonly faults: Faults;
  readonly limits: Limits;
  readonly requests: RequestRecord[];
  /** Paths outside REST and git (OIDC); undefined when the path is none of its own. */
  readonly other: (request: IncomingMessage, url: URL) => Promise<Answer | undefined>;
}

const NEWER = '2026-03-10';
const VERSIONS = ['2022-11-28', NEWER];
// facts/github.md §0: what 2026-03-10 took away.
const GONE: ReadonlySet<string> = new Set(['assignee', 'merge_commit_sha', 'rate']);

const routes = operationsByPath.map(([id, { method, path }]) => {
  const names = [...path.matchAll(/\{(\w+)\}/g)].map((found) => found[1] ?? '');
  // A path of files may come unescaped, or not at all; in other values a slash is %2F, except in a ref's name.
  const pattern = path
    .replace('/contents/{path}', '/contents(?:/(.*))?')
    .replace('/git/ref/{ref}', '/git/ref/(.+)')
    .replace(/\{\w+\}/g, '([^/]+)');
  return { id, method, names, pattern: new RegExp(`^${pattern}$`) };
});

/** Starts listening on a free port of 127.0.0.1. */
export async function startServer(parts: ServerParts): Promise<{ server: Server; url: string }> {
  const server = createServer((request, response) => {
    serve(parts, request, response).catch((error: unknown) => {
      // The caller died in the middle of its request; that is nobody's fault here.
      if (request.destroyed && !request.complete) return;
      parts.world.violations.push(
        `${request.method} ${request.url}: ${String((error as Error).stack ?? error)}`,
      );
      if (!response.headersSent) response.writeHead(500);
      response.end();
    });
  });
  server.keepAliveTimeout = 60_000;
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { server, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

async function serve(parts: ServerParts, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { world, faults } = parts;
  const url = new URL(request.url ?? '/', world.url);
  const method = request.method ?? 'GET';
  if (isGitPath(url.pathname)) {
    const started = performance.now();
    const { fault, delay } = faults.strike({ operation: 'git', method, path: url.pathname, body: undefined });
    if (delay > 0) await pause(delay);
    if (fault?.options.hangUp === true) return void request.socket.destroy();
    const refusal = fault?.options.status;
    const status = refusal === undefined ? await serveGit(world, request, response) : refusal;
    if (refusal !== undefined) response.writeHead(refusal).end(fault?.options.message ?? '');
    return record(parts, 'git', method, url, status, { kind: 'nobody' }, undefined, started);
  }
  if (url.pathname === GRAPHQL_PATH && method === 'POST') {
    const started = performance.now();
    const { answer, bearer, body } = await serveQuery(
      parts,
      request.headers.authorization,
      await read(request),
    );
    record(parts, 'graphql', method, url, answer.status, bearer, body, started);
    return send(response, answer, {});
  }
  if (!url.pathname.startsWith(API_PREFIX)) {
    const answer = await parts.other(request, url).catch(refusalOf);
    return send(response, answer ?? { status: 404, body: { message: 'Not Found' } }, {});
  }
  await rest(parts, request, response, url, method);
}

async function rest(
  parts: ServerParts,
  request: IncomingMessage,
  response: ServerResponse,
  url: URL,
  method: string,
): Promise<void> {
  const { world, faults, limits } = parts;
  const started = performance.now();
  const bytes = await read(request);
  const route = match(method, byName(world, url.pathname.slice(API_PREFIX.length) || '/'));
  if (route === null) {
    world.violations.push(`${method} ${url.pathname}: the sandbox serves no such operation`);
    return send(response, { status: 404, body: { message: 'Not Found' } }, {});
  }
  const { id } = route;
  const moved = world.repositoryByFormerName(route.values['owner'] ?? '', route.values['repo'] ?? '');
  if (moved !== undefined) return send(response, redirect(world, moved, url, method), {});
  let bearer: Bearer = { kind: 'nobody' };
  let headers: Record<string, string> = { 'x-github-request-id': randomUUID().toUpperCase() };
  let answer: Answer;
  let body: unknown;
  let dropped = false;
  try {
    bearer = authenticate(world, request.headers.authorization);
    headers = { ...headers, ...limits.take(world, bearer, id, method) };
    body = parseBody(bytes);
    const { fault, delay } = faults.strike({ operation: id, method, path: url.pathname, body });
    if (delay > 0) await pause(delay);
    const call = check(world, id, route.values, url, body, request, bearer);
    const { status, message, when, hangUp } = fault?.options ?? {};
    const instead = status !== undefined || hangUp === true;
    answer = instead && when !== 'after' ? { status: status ?? 500 } : await perform(parts, call);
    if (fault !== null && instead) {
      answer = { status: status ?? 500, body: { message: message ?? 'Server Error' } };
      headers = { ...headers, ...fault.options.headers };
      dropped = hangUp === true;
    }
  } catch (error) {
    answer = refusalOf(error);
    if (answer.status >= 500) world.violations.push(`${id}: ${String((error as Error).stack ?? error)}`);
  }
  record(parts, id, method, url, answer.status, bearer, body, started);
  if (dropped) return void request.socket.destroy();
  send(response, answer, headers);
}

/** Runs a handler and holds its answer against GitHub's description. */
async function perform(parts: ServerParts, call: Call): Promise<Answer> {
  const { world, handlers } = parts;
  const answer = await handlers[call.operation](call);
  if (answer.raw !== undefined) return answer;
  const faults = checkAnswer(call.operation, answer.status, answer.body);
  if (faults.length === 0)
    return call.version === NEWER ? { ...answer, body: newerShape(answer.body) } : answer;
  world.violations.push(...faults);
  return { status: 500, body: { message: 'The sandbox made an answer that GitHub would not', faults } };
}

function newerShape(body: unknown): unknown {
  if (Array.isArray(body)) return body.map(newerShape);
  if (typeof body !== 'object' || body === null) return body;
  return Object.fromEntries(Object.entries(body).filter(([name]) => !GONE.has(name)));
}

function check(
  world: World,
  id: OperationId,
  values: Readonly<Record<string, string>>,
  url: URL,
  body: unknown,
  request: IncomingMessage,
  bearer: Bearer,
): Call {
  const version = String(request.headers['x-github-api-version'] ?? VERSIONS[0]);
  if (!VERSIONS.includes(version)) throw new Refused(400, `"${version}" is not a supported version`);
  const repository = world.repositoryByName(values['owner'] ?? '', values['repo'] ?? '') ?? null;
  permit(id, bearer, repository);
  const path = checkParameters(id, 'path', values);
  // An id that is not a number names nothing.
  if (path.faults.length > 0) throw new Refused(404, 'Not Found');
  const query = checkParameters(id, 'query', Object.fromEntries(url.searchParams));
  const payload = checkBody(id, body);
  for (const name of [...query.unknown, ...payload.unknown])
    world.violations.push(`${id}: GitHub ignores the unknown field or parameter ${JSON.stringify(name)}`);
  const faults = [...query.faults, ...payload.faults];
  if (faults.length > 0) throw new Refused(422, `Invalid request.\n\n${faults.join('\n')}`);
  return {
    world,
    operation: id,
    path: path.values,
    query: query.values,
    body: (body ?? {}) as Record<string, unknown>,
    accept: request.headers.accept ?? '',
    version,
    url,
    bearer,
  };
}

function match(method: string, path: string): { id: OperationId; values: Record<string, string> } | null {
  for (const route of routes) {
    if (route.method !== method) continue;
    const found = route.pattern.exec(path);
    if (found === null) continue;
    const values = route.names.map((name, i) => [name, decodeURIComponent(found[i + 1] ?? '')] as const);
    return { id: route.id, values: Object.fromEntries(values) };
  }
  return null;
}

// A renamed or transferred repository: 301 for reads, 307 for writes, to where the id leads.
function redirect(world: World, repository: Repository, url: URL, method: string): Answer {
  const rest = url.pathname.slice(API_PREFIX.length).split('/').slice(4).join('/');
  const location = `${world.apiUrl}/repositories/${repository.id}${rest === '' ? '' : `/${rest}`}${url.search}`;
  const body = {
    message: 'Moved Permanently',
    url: location,
    documentation_url: 'https://docs.github.com/rest',
  };
  return { status: method === 'GET' ? 301 : 307, headers: { location }, body };
}

function byName(world: World, path: string): string {
  const [, id, rest = ''] = /^\/repositories\/(\d+)(\/.*)?$/.exec(path) ?? [];
  const repository = world.repositories.find((one) => !one.deleted && String(one.id) === id);
  return repository === undefined ? path : `/repos/${repository.fullName}${rest}`;
}

async function read(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

function parseBody(bytes: Buffer): unknown {
  if (bytes.length === 0) return undefined;
  try {
    return JSON.parse(bytes.toString());
  } catch {
    throw new Refused(400, 'Problems parsing JSON');
  }
}

function refusalOf(error: unknown): Answer {
  if (!(error instanceof Refused)) return { status: 500, body: { message: 'Server Error' } };
  return {
    status: error.status,
    headers: error.headers,
    body: {
      message: error.message,
      ...(error.errors === undefined ? {} : { errors: error.errors }),
      documentation_url: 'https://docs.github.com/rest',
      status: String(error.status),
    },
  };
}

function send(response: ServerResponse, answer: Answer, headers: Readonly<Record<string, string>>): void {
  if (response.destroyed) return;
  const bytes =
    answer.raw ?? (answer.body === undefined ? Buffer.alloc(0) : Buffer.from(JSON.stringify(answer.body)));
  const type = bytes.length === 0 ? {} : { 'content-type': 'application/json; charset=utf-8' };
  response.writeHead(answer.status, {
    server: 'github.com',
    ...type,
    'content-length': bytes.length,
    ...headers,
    ...answer.headers,
  });
  response.end(bytes);
}

function record(
  parts: ServerParts,
  operation: OperationId | 'git' | 'graphql',
  method: string,
  url: URL,
  status: number,
  bearer: Bearer,
  body: unknown,
  started: number,
): void {
  parts.requests.push({
    operation,
    method,
    path: url.pathname,
    status,
    installationId: bearer.kind === 'token' ? (bearer.token.installation?.id ?? null) : null,
    content: createsContent(operation, method),
    body,
    at: parts.world.now(),
    milliseconds: performance.now() - started,
  });
}

function pause(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}
