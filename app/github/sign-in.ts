/**
 * `GitHubSignIn` of port.ts: the web flow of a GitHub App's own OAuth client, with state and PKCE
 * (docs.github.com, "Generating a user access token"; S256 since 2025-07-14, unknown parameters are
 * ignored by servers before that). The user's token lives as long as one call of `identify`.
 */
import * as z from 'zod';
import { Fault, Refusal } from '../errors.ts';
import { idSchema } from './lossless.ts';
import { parse } from './octokit/client.ts';
import { transport } from './octokit/transport.ts';
import type { GitHubSignIn } from './port.ts';

/** How to reach GitHub, and as whom. */
export interface SignInOptions {
  readonly clientId: string;
  readonly clientSecret: string;
  readonly serverUrl: string;
  readonly apiUrl: string;
  /** Ends what is under way. */
  readonly stop: AbortSignal;
}

/** Installations asked for: ten pages. Somebody with more sees the runs of the first thousand in the list. */
const MOST_PAGES = 10;

// GitHub answers 200 with an error in the body
const tokenShape = z.union([
  z.object({ access_token: z.string().min(1).max(1000), token_type: z.string() }),
  z.object({ error: z.string() }),
]);
const userShape = z.object({ id: idSchema, login: z.string().min(1).max(100) });
const installationsShape = z.object({ installations: z.array(z.object({ id: idSchema, app_id: idSchema })) });

/** Signs people in as the App's client. */
export function createSignIn(options: SignInOptions): GitHubSignIn {
  const send = transport(options.stop);

  const ask = async (call: string, url: string, init: RequestInit): Promise<unknown> => {
    let answer: Response;
    try {
      answer = await send(url, {
        ...init,
        headers: { 'user-agent': 'countersign', accept: 'application/json', ...init.headers },
      });
    } catch (cause) {
      throw new Fault('github_unavailable', `${call}: no answer from GitHub`, { cause, retryable: true });
    }
    const body: unknown = await answer.json().catch(() => null);
    if (answer.ok) return body;
    if (answer.status === 401) throw notGood();
    if (answer.status === 404) throw unknownClient(call);
    throw new Fault('github_unavailable', `${call}: GitHub answered ${answer.status}`, { retryable: true });
  };

  const exchange = async (code: string, verifier: string, redirectUri: string): Promise<string> => {
    const body = new URLSearchParams({
      client_id: options.clientId,
      client_secret: options.clientSecret,
      code,
      redirect_uri: redirectUri,
      code_verifier: verifier,
    });
    const url = `${options.serverUrl}/login/oauth/access_token`;
    const told = parse(tokenShape, await ask('oauth/access_token', url, { method: 'POST', body }), 'oauth');
    if ('access_token' in told) return told.access_token;
    if (told.error === 'incorrect_client_credentials') throw unknownClient('oauth/access_token');
    throw notGood();
  };

  const installations = async (headers: Record<string, string>): Promise<string[]> => {
    const found: string[] = [];
    for (let page = 1; page <= MOST_PAGES; page++) {
      const call = 'apps/list-installations-for-authenticated-user';
      const url = `${options.apiUrl}/user/installations?per_page=100&page=${page}`;
      const list = parse(installationsShape, await ask(call, url, { headers }), call).installations;
      found.push(...list.map((one) => one.id));
      if (list.length < 100) break;
    }
    return found;
  };

  return {
    authorizeUrl({ state, challenge, redirectUri }) {
      const url = new URL(`${options.serverUrl}/login/oauth/authorize`);
      url.search = new URLSearchParams({
        client_id: options.clientId,
        redirect_uri: redirectUri,
        state,
        code_challenge: challenge,
        code_challenge_method: 'S256',
      }).toString();
      return url.href;
    },

    async identify({ code, verifier, redirectUri }) {
      const token = await exchange(code, verifier, redirectUri);
      const headers = { authorization: `Bearer ${token}`, 'x-github-api-version': '2022-11-28' };
      const call = 'users/get-authenticated';
      const user = parse(userShape, await ask(call, `${options.apiUrl}/user`, { headers }), call);
      return { ...user, installations: await installations(headers) };
    },
  };
}

function notGood(): Refusal {
  return new Refusal('unauthorized', 'the sign-in at GitHub is over or was used already', 'begin again');
}

function unknownClient(call: string): Fault {
  return new Fault('config_value', `${call}: GitHub does not know CLIENT_ID with this CLIENT_SECRET`);
}
