/** A person at the pages: a browser's cookies over real HTTP, without a browser. */
import type { SandboxGitHub } from '../../sandbox/github.ts';
import type { User } from '../../sandbox/model.ts';

/** An answer, read. */
export interface Seen {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** Where it leads, if anywhere. */
  readonly location: string | null;
}

/** A browser at one server. */
export class Visitor {
  readonly cookies = new Map<string, string>();
  readonly url: string;
  constructor(url: string) {
    this.url = url;
  }

  /** Asks once; redirects are told, not followed. */
  async get(path: string): Promise<Seen> {
    return this.#send(path, {});
  }

  /** Sends a form as a page of the server would. */
  async post(
    path: string,
    form: Record<string, string>,
    headers: Record<string, string> = {},
  ): Promise<Seen> {
    return this.#send(path, {
      method: 'POST',
      body: new URLSearchParams(form),
      headers: { 'sec-fetch-site': 'same-origin', ...headers },
    });
  }

  /** Signs in at the local GitHub as a person and goes on to `next`; the last answer. */
  async signIn(gh: SandboxGitHub, user: User, next = '/'): Promise<Seen> {
    return this.get((await this.enter(gh, user, next)).location ?? '/');
  }

  /** Signs in and looks at nothing yet: the answer to the return from GitHub. */
  async enter(gh: SandboxGitHub, user: User, next = '/'): Promise<Seen> {
    gh.oauth.browser = user;
    const start = await this.get(`/signin?next=${encodeURIComponent(next)}`);
    const back = await this.callback(start.location ?? '');
    return this.get(back);
  }

  /** Where GitHub sends the browser to, as a path of the server. */
  async callback(authorize: string): Promise<string> {
    const answer = await fetch(authorize, { redirect: 'manual' });
    await answer.body?.cancel();
    const to = new URL(answer.headers.get('location') ?? '');
    return to.pathname + to.search;
  }

  /** The token that the forms of a page carry. */
  static token(page: string): string {
    return /name="token" value="([^"]*)"/.exec(page)?.[1] ?? '';
  }

  async #send(path: string, init: RequestInit): Promise<Seen> {
    const cookie = [...this.cookies].map(([name, value]) => `${name}=${value}`).join('; ');
    const answer = await fetch(this.url + path, {
      ...init,
      redirect: 'manual',
      headers: { ...(init.headers as Record<string, string>), ...(cookie === '' ? {} : { cookie }) },
    });
    for (const line of answer.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
      if (value === '' || /max-age=0/i.test(line)) this.cookies.delete(name);
      else this.cookies.set(name, value);
    }
    const text = await answer.text();
    return { status: answer.status, headers: answer.headers, text, location: answer.headers.get('location') };
  }
}
