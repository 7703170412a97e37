/** The HTTP server: the webhook edge in front, everything else by Hono. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { getRequestListener } from '@hono/node-server';
import type { Hono } from 'hono';
import { Fault } from '../errors.ts';
import { WEBHOOK_PATH } from './webhook.ts';

/** A server that listens; until `open` it answers 503 to all but /healthz. */
export interface HttpServer {
  /** `http://host:port` as it listens. */
  readonly url: string;
  /** Begins serving. */
  open(handlers: Handlers): void;
  /** Takes no new connection, waits for requests under way at most `graceMs`, then cuts them. */
  close(graceMs: number): Promise<void>;
}

/** What is served. */
export interface Handlers {
  readonly webhook: (request: IncomingMessage, response: ServerResponse) => void;
  readonly app: Hono;
}

/** Listens at once, so that a port of 0 is known and a start that takes time can be watched. */
export async function listen(host: string, port: number): Promise<HttpServer> {
  let handlers: Handlers | null = null;
  let listener: ReturnType<typeof getRequestListener> | null = null;
  let closing = false;
  const server = createServer((request, response) => {
    // a client that keeps its connection would hold the end up for the whole grace
    if (closing) response.setHeader('connection', 'close');
    response.once('close', () => {
      if (closing) setImmediate(() => server.closeIdleConnections());
    });
    const path = request.url?.split('?', 1)[0];
    if (handlers === null || listener === null) {
      const alive = path === '/healthz';
      response.writeHead(alive ? 200 : 503, { 'content-type': 'application/json' });
      response.end(alive ? '{"ok":true}' : '{"error":{"code":"stopping","message":"starting: try again"}}');
      return;
    }
    if (path === WEBHOOK_PATH) handlers.webhook(request, response);
    else void listener(request, response);
  });
  // slow headers hold no connection; bodies have their own limits at their routes
  server.headersTimeout = 10_000;
  server.requestTimeout = 120_000;
  server.keepAliveTimeout = 65_000;
  await new Promise<void>((done, failed) => {
    const fail = (error: NodeJS.ErrnoException) => failed(refused(host, port, error));
    server.once('error', fail);
    server.listen(port, host, () => {
      server.off('error', fail);
      done();
    });
  });
  return {
    url: urlOf(server, host),
    open(given) {
      listener = getRequestListener(given.app.fetch, { overrideGlobalObjects: false });
      handlers = given;
    },
    close: (graceMs) =>
      new Promise((done) => {
        closing = true;
        const cut = setTimeout(() => server.closeAllConnections(), graceMs);
        server.close(() => {
          clearTimeout(cut);
          done();
        });
        server.closeIdleConnections();
      }),
  };
}

function urlOf(server: Server, host: string): string {
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  const shown = host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host;
  return `http://${shown.includes(':') ? `[${shown}]` : shown}:${port}`;
}

/** A place that cannot be listened on is a setting to change: no stack helps with that. */
function refused(host: string, port: number, error: NodeJS.ErrnoException): Error {
  const why: Record<string, string> = {
    EADDRINUSE: 'another process listens there',
    EACCES: 'this user may not',
    EADDRNOTAVAIL: 'this machine has no such address',
    ENOTFOUND: 'no such host is known',
  };
  const known = why[error.code ?? ''];
  if (known === undefined) return error;
  return new Fault('config_value', `cannot listen on ${host}:${port}: ${known}; set another PORT or HOST`);
}
