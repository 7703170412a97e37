/** The cookies of the pages: the visit, and a sign-in under way. HttpOnly, SameSite=Lax, Secure with the __Host- prefix wherever the server is reached by https. */
import { createHash, timingSafeEqual } from 'node:crypto';
import type { Context } from 'hono';
import { deleteCookie, getCookie, setCookie } from 'hono/cookie';

/** Names and options of one server's cookies. */
export interface Jar {
  /** The secret of the visit that the request brings. */
  visit(c: Context): string | null;
  setVisit(c: Context, secret: string): void;
  clearVisit(c: Context): void;
  /** What a sign-in under way has to bring back. */
  flow(c: Context): Flow | null;
  setFlow(c: Context, flow: Flow): void;
  clearFlow(c: Context): void;
}

/** A sign-in under way, in the browser that began it. */
export interface Flow {
  readonly state: string;
  readonly verifier: string;
  /** Where to go afterwards: a path of ours. */
  readonly next: string;
}

const SECRET = /^[A-Za-z0-9_-]{43}$/;

/** The cookies of a server that is reached under `publicUrl`; they hold at most as long as told, in ms. */
export function createJar(publicUrl: string, visitMs: number, flowMs: number): Jar {
  const secure = publicUrl.startsWith('https:');
  // the prefix makes a browser refuse one that a neighbouring host sets
  const prefix = secure ? '__Host-' : '';
  const [visit, flow] = [`${prefix}cs_visit`, `${prefix}cs_signin`];
  const options = { path: '/', httpOnly: true, secure, sameSite: 'Lax' } as const;
  const clear = (c: Context, name: string) => {
    deleteCookie(c, name, { path: '/', secure });
  };
  return {
    visit(c) {
      const secret = getCookie(c, visit) ?? '';
      return SECRET.test(secret) ? secret : null;
    },
    setVisit: (c, secret) => setCookie(c, visit, secret, { ...options, maxAge: Math.floor(visitMs / 1000) }),
    clearVisit: (c) => clear(c, visit),
    flow(c) {
      const [state = '', verifier = '', next = ''] = (getCookie(c, flow) ?? '').split('.', 3);
      if (!SECRET.test(state) || !SECRET.test(verifier)) return null;
      return { state, verifier, next: localPath(Buffer.from(next, 'base64url').toString('utf8')) };
    },
    setFlow(c, { state, verifier, next }) {
      const value = [state, verifier, Buffer.from(localPath(next)).toString('base64url')].join('.');
      setCookie(c, flow, value, { ...options, maxAge: Math.floor(flowMs / 1000) });
    },
    clearFlow: (c) => clear(c, flow),
  };
}

/**
 * A path of our own pages, or `/`: nothing that a browser could read as another host (`//host`, `/\host`,
 * a control that it drops).
 */
export function localPath(text: string): string {
  return /^\/(?:[A-Za-z0-9_-][A-Za-z0-9_/-]*)?(?:\?[A-Za-z0-9_=&.-]*)?$/.test(text) && text.length <= 300
    ? text
    : '/';
}

/** The token that a visitor's forms carry: only a page of ours can know it, since the visit's family never leaves the server. */
export function formToken(family: string): string {
  return createHash('sha256').update(`countersign form\n${family}`).digest('base64url');
}

/** Whether a form was sent by a page of ours to this visitor. */
export function isOwnForm(c: Context, family: string, token: unknown): boolean {
  // browsers that tell where a request comes from need not be asked twice
  const site = c.req.header('sec-fetch-site');
  if (site !== undefined && site !== 'same-origin') return false;
  const wanted = Buffer.from(formToken(family));
  const given = Buffer.from(typeof token === 'string' ? token : '');
  return given.length === wanted.length && timingSafeEqual(given, wanted);
}
