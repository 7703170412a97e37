/**
 * The OAuth web flow of a GitHub App (docs.github.com, "Generating a user access token for a GitHub App"): the page a
 * browser is sent to, codes that work once for ten minutes, PKCE by S256 alone. `browser` is who is signed in to GitHub
 * in the browser; GitHub asks for consent once and then sends people straight back, and so does this one.
 */
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { Answer } from './http/call.ts';
import type { App, User } from './model.ts';
import type { World } from './world.ts';

const CODE_MS = 10 * 60_000;
const TOKEN_S = 8 * 3600;

interface Grant {
  readonly app: App;
  readonly user: User;
  readonly redirectUri: string;
  readonly challenge: string | null;
  readonly until: number;
}

/** The OAuth side of a sandbox. */
export class OAuth {
  readonly world: World;
  /** Who is signed in to GitHub in the browser; null: GitHub shows its login page. */
  browser: User | null = null;
  /** The person presses Cancel on the page of consent. */
  denies = false;
  readonly #grants = new Map<string, Grant>();

  constructor(world: World) {
    this.world = world;
  }

  /** Serves the flow's own paths; undefined for all others. */
  async serve(request: IncomingMessage, url: URL): Promise<Answer | undefined> {
    const at = `${request.method} ${url.pathname}`;
    if (at === 'GET /login/oauth/authorize') return this.#authorize(url.searchParams);
    if (at === 'POST /login/oauth/access_token') return this.#exchange(request);
    return undefined;
  }

  #authorize(query: URLSearchParams): Answer {
    const app = this.world.apps.find((one) => one.clientId === query.get('client_id'));
    const [first] = app?.callbackUrls ?? [];
    if (app === undefined || first === undefined) return { status: 404, body: { message: 'Not Found' } };
    const state = query.get('state');
    const back = (to: string, more: Record<string, string>): Answer => {
      const target = new URL(to);
      for (const [name, value] of Object.entries(more)) target.searchParams.set(name, value);
      if (state !== null) target.searchParams.set('state', state);
      return { status: 302, headers: { location: target.href } };
    };
    const redirectUri = query.get('redirect_uri') ?? first;
    // docs: "This must be an exact match to one of the URLs you provided as a Callback URL"
    if (!app.callbackUrls.includes(redirectUri))
      return back(first, {
        error: 'redirect_uri_mismatch',
        error_description: 'The redirect_uri MUST match the registered callback URL for this application.',
      });
    const challenge = query.get('code_challenge');
    if (challenge !== null || query.has('code_challenge_method')) {
      // docs: both or none, S256 alone, 43 characters
      if (query.get('code_challenge_method') !== 'S256' || !/^[\w-]{43}$/.test(challenge ?? ''))
        return back(redirectUri, { error: 'invalid_request' });
    }
    const user = this.browser;
    if (user === null) return loginPage();
    if (this.denies)
      return back(redirectUri, {
        error: 'access_denied',
        error_description: 'The user has denied your application access.',
      });
    const code = randomBytes(10).toString('hex');
    this.#grants.set(code, {
      app,
      user,
      redirectUri,
      challenge,
      until: this.world.now().getTime() + CODE_MS,
    });
    return back(redirectUri, { code });
  }

  async #exchange(request: IncomingMessage): Promise<Answer> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const form = new URLSearchParams(Buffer.concat(chunks).toString());
    const app = this.world.apps.find((one) => one.clientId === form.get('client_id'));
    if (app === undefined) return { status: 404, body: { error: 'Not Found' } };
    const fields = this.#fields(app, form);
    const json = /\bjson\b/.test(request.headers.accept ?? '');
    if (json) return { status: 200, body: numbered(fields) };
    return {
      status: 200,
      raw: Buffer.from(String(new URLSearchParams(fields))),
      headers: { 'content-type': 'application/x-www-form-urlencoded; charset=utf-8' },
    };
  }

  // docs, "Troubleshooting OAuth app access token request errors": 200 with an error in the body
  #fields(app: App, form: URLSearchParams): Record<string, string> {
    if (!equal(form.get('client_secret') ?? '', app.clientSecret))
      return {
        error: 'incorrect_client_credentials',
        error_description: 'The client_id and/or client_secret passed are incorrect.',
      };
    const bad = {
      error: 'bad_verification_code',
      error_description: 'The code passed is incorrect or expired.',
    };
    const code = form.get('code') ?? '';
    const grant = this.#grants.get(code);
    if (grant === undefined || grant.app !== app) return bad;
    this.#grants.delete(code);
    if (grant.until <= this.world.now().getTime()) return bad;
    if ((form.get('redirect_uri') ?? grant.redirectUri) !== grant.redirectUri)
      return {
        error: 'redirect_uri_mismatch',
        error_description: 'The redirect_uri MUST match the registered callback URL for this application.',
      };
    const proof = createHash('sha256')
      .update(form.get('code_verifier') ?? '')
      .digest('base64url');
    if (grant.challenge !== null && proof !== grant.challenge) return bad;
    const token = `ghu_${randomBytes(27).toString('base64url').replace(/[-_]/g, 'A')}`;
    this.world.tokens.set(token, {
      token,
      kind: 'user-to-server',
      installation: null,
      user: grant.user,
      permissions: {},
      repositoryIds: null,
      expiresAt: Date.now() + TOKEN_S * 1000,
    });
    return {
      access_token: token,
      expires_in: String(TOKEN_S),
      refresh_token: `ghr_${randomBytes(56).toString('base64url').replace(/[-_]/g, 'A')}`,
      refresh_token_expires_in: '15897600',
      scope: '',
      token_type: 'bearer',
    };
  }
}

/** In JSON the times are numbers. */
function numbered(fields: Record<string, string>): Record<string, string | number> {
  const entries = Object.entries(fields);
  return Object.fromEntries(entries.map(([k, v]) => [k, k.endsWith('expires_in') ? Number(v) : v]));
}

function loginPage(): Answer {
  const html = '<!doctype html><title>Sign in to GitHub</title><h1>Sign in to GitHub</h1>';
  return { status: 200, raw: Buffer.from(html), headers: { 'content-type': 'text/html; charset=utf-8' } };
}

function equal(a: string, b: string): boolean {
  return a.length === b.length && timingSafeEqual(Buffer.from(a), Buffer.from(b));
}
