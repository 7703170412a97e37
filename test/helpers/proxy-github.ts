/** A proxy before the sandbox that sees each request of the app, so that a test can end the app before GitHub has it or before the answer is heard. */
import { Agent, createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** One request on its way to GitHub. */
export interface GitHubRequest {
  readonly method: string;
  readonly path: string;
  /** It changes something there: REST, not a read, not a token. */
  readonly write: boolean;
}

/** `before`: GitHub never gets it; `after`: GitHub answers, and the app never hears it. `act` is called at that point. */
export interface RequestStrike {
  readonly when: 'before' | 'after';
  readonly act: () => void;
}

/** A running proxy. */
export interface GitHubProxy {
  /** Where it listens: the origin of GITHUB_API_URL and GITHUB_SERVER_URL. */
  readonly url: string;
  /** Asked for every request; undefined lets it pass. */
  watch: (request: GitHubRequest) => RequestStrike | undefined;
  close(): Promise<void>;
}

/** Starts a proxy on a free port before the sandbox at an origin. */
export async function startGitHubProxy(target: string): Promise<GitHubProxy> {
  const agent = new Agent({ keepAlive: true });
  const proxy = {
    url: '',
    watch: (_: GitHubRequest): RequestStrike | undefined => undefined,
    close: () =>
      new Promise<void>((done) => {
        agent.destroy();
        listener.closeAllConnections();
        listener.close(() => done());
      }),
  };
  const pass = (incoming: IncomingMessage, outgoing: ServerResponse) => {
    const { method = 'GET', url: path = '/' } = incoming;
    const rest = path.startsWith('/api/v3/');
    const write = rest && method !== 'GET' && method !== 'HEAD' && !path.endsWith('/access_tokens');
    const strike = proxy.watch({ method, path, write });
    if (strike?.when === 'before') {
      strike.act();
      return;
    }
    const { host: _, ...headers } = incoming.headers;
    const there = request(new URL(path, target), { method, headers, agent }, (answer) => {
      if (strike === undefined) {
        outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
        answer.pipe(outgoing);
        return;
      }
      answer.resume().once('end', () => strike.act());
    });
    there.on('error', () => outgoing.destroy());
    // an app that died takes its request with it, as its own connection would have
    outgoing.on('close', () => {
      if (!outgoing.writableFinished && strike === undefined) there.destroy();
    });
    incoming.pipe(there);
  };
  const listener = createServer(pass);
  listener.keepAliveTimeout = 60_000;
  await new Promise<void>((done) => listener.listen(0, '127.0.0.1', done));
  proxy.url = `http://127.0.0.1:${(listener.address() as AddressInfo).port}`;
  return proxy;
}
