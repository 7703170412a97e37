/**
 * Runs for programs (LSE-8): a run's status, and waiting until a block settles. For a visitor (the cookie of
 * the pages) or a runner's login, who may read the repository; everybody else gets 401 or 404.
 */
import { createRoute, type OpenAPIHono, z } from '@hono/zod-openapi';
import type { Context } from 'hono';
import { authenticate } from '../flow/authenticate.ts';
import type { Deps } from '../flow/deps.ts';
import {
  type RunReader,
  readBlockStatus,
  readRunSeq,
  readRunStatus,
  watchReadableRun,
} from '../flow/read-run-status.ts';
import type { Visitor } from '../flow/read-visit.ts';
import { runResponse, waitQuery, waitResponse } from '../protocol/run.ts';
import { errorResponse } from '../protocol/runner.ts';
import { bounded } from './answer-bound.ts';
import { bearer } from './runner-claim.ts';

/** What it needs beside the arrows' effects. */
export interface RunApiOptions {
  /** Aborted when the server stops: long polls answer at once. */
  readonly stopping: AbortSignal;
  /** Who the cookie of the pages stands for; absent: nobody. */
  readonly visitor?: ((c: Context) => Promise<Visitor | null>) | undefined;
}

/** How often a wait looks by itself: where notices are heard, and where they are not. */
const HEARD_MS = 5_000;
const UNHEARD_MS = 500;

const params = z.strictObject({ id: z.string().regex(/^[A-Za-z0-9_-]{1,64}$/) });
const json = <T extends z.ZodType>(schema: T) => ({ 'application/json': { schema } });
const answers = <T extends z.ZodType>(schema: T, description: string) => ({
  200: { description, content: json(schema) },
  default: { description: 'An error: its code is stable.', content: json(errorResponse) },
});
const security = [{ login: [] }, { visit: [] }];

/** `GET /api/v1/runs/{id}` */
const statusRoute = createRoute({
  method: 'get',
  path: '/api/v1/runs/{id}',
  summary: 'What the gate says of a run now (LSE-8).',
  security,
  request: { params },
  responses: answers(runResponse, 'The status of the run.'),
});
/** `GET /api/v1/runs/{id}/wait` */
const waitRoute = createRoute({
  method: 'get',
  path: '/api/v1/runs/{id}/wait',
  summary: 'Waits up to `max_ms` until nothing of a block waits for the machine (LSE-8).',
  security,
  request: { params, query: waitQuery },
  responses: answers(waitResponse, 'How the files of the block stand; `done` false: the time was up.'),
});

/** Adds the routes to the API and to its description. */
export function mountRuns(app: OpenAPIHono, deps: Deps, options: RunApiOptions): void {
  const readerOf = async (c: Context): Promise<RunReader> => {
    const token = bearer(c);
    const visitor = token === null ? await options.visitor?.(c) : null;
    if (visitor != null) return { kind: 'visitor', visitor };
    return { kind: 'login', login: await authenticate(deps, token) };
  };

  app.openapi(statusRoute, async (c) => {
    const status = await readRunStatus(deps, await readerOf(c), c.req.valid('param').id);
    return c.json(bounded(runResponse.parse(status)), 200);
  });

  app.openapi(waitRoute, async (c) => {
    const { id } = c.req.valid('param');
    const { block = null, max_ms } = c.req.valid('query');
    const until = performance.now() + max_ms;
    const gone = AbortSignal.any([options.stopping, c.req.raw.signal]);
    let status = await readBlockStatus(deps, await readerOf(c), id, block);
    if (status.done || max_ms === 0) return c.json(bounded(waitResponse.parse(status)), 200);
    const watch = await watchReadableRun(deps, await readerOf(c), id);
    try {
      // 0 is no row's number: what came before the watch began is looked at once more
      for (let seen = 0; !status.done; ) {
        const seq = await readRunSeq(deps, id);
        if (seq !== seen) {
          seen = seq;
          // asked anew each time: who may no longer read it hears no more of it
          status = await readBlockStatus(deps, await readerOf(c), id, block);
          if (status.done) break;
        }
        const left = until - performance.now();
        if (left <= 0 || gone.aborted) break;
        await watch.next(Math.min(left, watch.heard() ? HEARD_MS : UNHEARD_MS), gone);
      }
    } finally {
      await watch.close();
    }
    return c.json(bounded(waitResponse.parse(status)), 200);
  });
  app.openAPIRegistry.registerComponent('securitySchemes', 'visit', {
    type: 'apiKey',
    in: 'cookie',
    name: 'cs_visit',
    description: 'The cookie of a person who signed in to the pages (`__Host-cs_visit` over https).',
  });
}
