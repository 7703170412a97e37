/** `GET /runs/:id`, which every check run of ours links to (PUB-7): on to the pull request on GitHub. */
import { Hono } from 'hono';
import type { Deps } from '../flow/deps.ts';
import { readRunPlace } from '../flow/read-run-place.ts';

/** The route as a Hono app; an unknown run falls through to 404. */
export function runLink(deps: Deps): Hono {
  const app = new Hono();
  app.get('/runs/:id', async (c, next) => {
    const id = c.req.param('id');
    const place = /^[A-Za-z0-9_-]{1,64}$/.test(id) ? await readRunPlace(deps, id) : null;
    if (place === null) return next();
    c.header('referrer-policy', 'no-referrer');
    return c.redirect(place, 302);
  });
  return app;
}
