/** The visit of a request, read once a request. */
import type { Context } from 'hono';
import type { PageDeps } from '../../flow/deps.ts';
import { readVisit, type Visitor } from '../../flow/read-visit.ts';
import { formToken, type Jar } from './cookie.ts';
import type { Frame } from './layout.tsx';

/** Reads visits of requests. */
export interface Visits {
  /** Null: nobody is signed in. A GET may answer with a new secret. */
  of(c: Context): Promise<Visitor | null>;
  frame(visitor: Visitor | null): Frame;
}

/** Makes it; each request's visit is looked up once. */
export function createVisits(deps: PageDeps, jar: Jar): Visits {
  const known = new WeakMap<Request, Promise<Visitor | null>>();
  const look = async (c: Context): Promise<Visitor | null> => {
    const secret = jar.visit(c);
    if (secret === null) return null;
    const found = await readVisit(deps, secret, { renew: c.req.method === 'GET' });
    if (found === null) return null;
    if (found.renewed !== null) jar.setVisit(c, found.renewed);
    return found.visitor;
  };
  return {
    of(c) {
      const made = known.get(c.req.raw) ?? look(c);
      known.set(c.req.raw, made);
      return made;
    },
    frame: (visitor) => ({
      version: deps.settings.version,
      visitor: visitor === null ? null : { login: visitor.login, formToken: formToken(visitor.family) },
    }),
  };
}
