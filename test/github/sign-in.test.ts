import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createSignIn } from '../../app/github/sign-in.ts';
import { type SandboxGitHub, startGitHub } from '../../sandbox/github.ts';
import type { App, User } from '../../sandbox/model.ts';

let gh: SandboxGitHub;
let app: App;
let alice: User;
beforeAll(async () => {
  gh = await startGitHub();
  alice = gh.createUser('alice');
  app = gh.createApp();
  app.callbackUrls.push(CALLBACK);
});
afterAll(async () => {
  await gh.close();
  expect(gh.violations).toEqual([]);
});

const CALLBACK = 'https://countersign.example/signin/callback';
const verifier = 'v'.repeat(43);
const challenge = createHash('sha256').update(verifier).digest('base64url');
const signIn = (more: { clientSecret?: string; clientId?: string; serverUrl?: string } = {}) =>
  createSignIn({
    clientId: app.clientId,
    clientSecret: app.clientSecret,
    serverUrl: gh.url,
    apiUrl: gh.apiUrl,
    stop: new AbortController().signal,
    ...more,
  });

async function go(url: string): Promise<URLSearchParams> {
  const answer = await fetch(url, { redirect: 'manual' });
  await answer.body?.cancel();
  return new URL(answer.headers.get('location') ?? 'none:').searchParams;
}

async function code(redirectUri = CALLBACK): Promise<string> {
  gh.oauth.browser = alice;
  const query = await go(signIn().authorizeUrl({ state: 's1', challenge, redirectUri }));
  return query.get('code') ?? '';
}

describe('OPS-8: signing in at GitHub', () => {
  it('sends the browser with state and an S256 challenge, and gets both back for', async () => {
    gh.oauth.browser = alice;
    const url = new URL(signIn().authorizeUrl({ state: 's1', challenge, redirectUri: CALLBACK }));
    expect(url.origin + url.pathname).toBe(`${gh.url}/login/oauth/authorize`);
    expect(url.searchParams.has('client_secret')).toBe(false);
    const query = await go(url.href);
    expect(query.get('state')).toBe('s1');
    expect(query.get('code')).toMatch(/^\w+$/);
  });

  it('says who came, and which installations they were given a right in', async () => {
    const bob = gh.createUser('bob');
    const repository = await gh.createRepository({ owner: bob, collaborators: [[alice, 'read']] });
    const own = await gh.installApp(app, repository);
    const other = await gh.createRepository({ owner: gh.createUser('carol') });
    await gh.installApp(app, other);
    const who = await signIn().identify({ code: await code(), verifier, redirectUri: CALLBACK });
    expect(who).toEqual({ id: String(alice.id), login: 'alice', installations: [String(own.id)] });
  });

  it('a code works once, for ten minutes, and only with the verifier of its challenge', async () => {
    const refused = { code: 'unauthorized' };
    const once = { code: await code(), verifier, redirectUri: CALLBACK };
    await signIn().identify(once);
    await expect(signIn().identify(once)).rejects.toMatchObject(refused);
    const stolen = { code: await code(), verifier: 'w'.repeat(43), redirectUri: CALLBACK };
    await expect(signIn().identify(stolen)).rejects.toMatchObject(refused);
    const late = { code: await code(), verifier, redirectUri: CALLBACK };
    gh.advance(11 * 60_000);
    await expect(signIn().identify(late)).rejects.toMatchObject(refused);
    const made = { code: 'f'.repeat(20), verifier, redirectUri: CALLBACK };
    await expect(signIn().identify(made)).rejects.toMatchObject(refused);
  });

  it('another callback than the registered one gets no code', async () => {
    gh.oauth.browser = alice;
    const redirectUri = 'https://attacker.example/signin/callback';
    const answer = await fetch(signIn().authorizeUrl({ state: 's', challenge, redirectUri }), {
      redirect: 'manual',
    });
    await answer.body?.cancel();
    const to = new URL(answer.headers.get('location') ?? '');
    expect(to.origin).toBe('https://countersign.example');
    expect(to.searchParams.get('error')).toBe('redirect_uri_mismatch');
  });

  it('a wrong secret or id is our setting and names it, without its value', async () => {
    for (const more of [{ clientSecret: 'x'.repeat(40) }, { clientId: 'Iv23nobody' }]) {
      const failing = signIn(more).identify({ code: await code(), verifier, redirectUri: CALLBACK });
      await expect(failing).rejects.toMatchObject({ code: 'config_value', retryable: false });
      await failing.catch((error: Error) => expect(error.message).not.toContain('x'.repeat(40)));
    }
  });

  it('GitHub out of reach is a fault that may be tried again', async () => {
    const away = signIn({ serverUrl: 'http://127.0.0.1:1' });
    await expect(away.identify({ code: 'c', verifier, redirectUri: CALLBACK })).rejects.toMatchObject({
      code: 'github_unavailable',
      retryable: true,
    });
  });

  it('the token of a person does nothing else here, and an app’s token is no person', async () => {
    const form = new URLSearchParams({
      client_id: app.clientId,
      client_secret: app.clientSecret,
      code: await code(),
      code_verifier: verifier,
    });
    const answer = await fetch(`${gh.url}/login/oauth/access_token`, { method: 'POST', body: form });
    const token = new URLSearchParams(await answer.text()).get('access_token') ?? '';
    expect(token).toMatch(/^ghu_/);
    const ask = async (path: string, bearer: string) =>
      (await fetch(`${gh.apiUrl}${path}`, { headers: { authorization: `Bearer ${bearer}` } })).status;
    expect(await ask('/user', token)).toBe(200);
    expect(await ask('/repos/bob/sample/pulls', token)).toBe(403);
    expect(await ask('/user', 'ghu_nobody')).toBe(401);
  });
});
