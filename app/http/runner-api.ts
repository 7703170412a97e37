/**
 * The runner API (LSE-1…LSE-7, AUT-1): parse, authenticate, call one arrow, map its answer. Everything
 * a runner sends is parsed here, once, by the schemas of app/protocol.
 */
import { OpenAPIHono } from '@hono/zod-openapi';
import type { Context } from 'hono';
import { bodyLimit } from 'hono/body-limit';
import { Refusal } from '../errors.ts';
import { acceptResult } from '../flow/accept-result.ts';
import { admit } from '../flow/admit.ts';
import { authenticate } from '../flow/authenticate.ts';
import type { Deps } from '../flow/deps.ts';
import { endSession } from '../flow/end-session.ts';
import { giveBack } from '../flow/give-back.ts';
import { heartbeat } from '../flow/heartbeat.ts';
import { lease } from '../flow/lease.ts';
import { login } from '../flow/login.ts';
import { RUNNER_LIMITS } from '../flow/runner-limits.ts';
import { PROTOCOL_VERSION } from '../protocol/runner.ts';
import { answerError } from './answer-error.ts';
import type { Verifier } from './runner-auth.ts';
import * as routes from './runner-routes.ts';

/** What the API needs beside the arrows' effects. */
export interface RunnerApiOptions {
  readonly verify: Verifier;
  /** Aborted when the server stops: long polls answer at once. */
  readonly stopping: AbortSignal;
}

/** First and longest pause between two looks of a long poll, in ms. */
const POLL_MS = 100;
const POLL_MAX_MS = 1_000;

/** The API as a Hono app; errors are `{error: {code, message, accepted?}}`, bodies over their limit 413. */
export function runnerApi(deps: Deps, options: RunnerApiOptions): OpenAPIHono {
  const app = new OpenAPIHono({
    defaultHook: (result) => {
      if (result.success) return;
      const issue = result.error.issues[0];
      const at = issue?.path.map(String).join('.') ?? '';
      throw new Refusal('bad_request', `${at === '' ? 'the body' : at}: ${issue?.message ?? 'not valid'}`);
    },
  });
  app.onError((error, c) => {
    // what hono itself refuses: a body that is no JSON
    const known = 'getResponse' in error ? new Refusal('bad_request', 'the body is not JSON') : error;
    const { status, body, retryAfterS } = answerError(known);
    if (status >= 500)
      deps.log.error({ path: c.req.path, code: body.error.code, error: known.name }, 'runner-api');
    if (retryAfterS !== null) c.header('retry-after', String(retryAfterS));
    return c.json(body, status);
  });
  const limit = (maxSize: number) =>
    bodyLimit({
      maxSize,
      onError: () => {
        throw new Refusal(
          'too_large',
          `the body is larger than ${maxSize} bytes`,
          `at most ${maxSize} bytes`,
        );
      },
    });
  const small = limit(RUNNER_LIMITS.requestBytes);
  const large = limit(RUNNER_LIMITS.submitBytes);
  app.use('/api/v1/*', (c, next) => (c.req.path.endsWith('/submit') ? large(c, next) : small(c, next)));
  app.use('/api/v1/*', async (c, next) => {
    await next();
    c.header('cache-control', 'no-store');
  });
  mountLogin(app, deps, options);
  mountLeases(app, deps, options);
  app.openAPIRegistry.registerComponent('securitySchemes', 'login', { type: 'http', scheme: 'bearer' });
  app.doc31('/api/v1/openapi.json', {
    openapi: '3.1.0',
    info: { title: 'Countersign runner API', version: PROTOCOL_VERSION },
  });
  return app;
}

function bearer(c: Context): string | null {
  return /^Bearer ([A-Za-z0-9_-]{20,200})$/.exec(c.req.header('authorization') ?? '')?.[1] ?? null;
}

function mountLogin(app: OpenAPIHono, deps: Deps, options: RunnerApiOptions): void {
  app.openapi(routes.loginRoute, async (c) => {
    const request = c.req.valid('json');
    const claims = await options.verify(request.oidc);
    const done = await login(deps, { ...request, claims });
    return c.json(
      {
        token: done.token,
        expires_at: done.expiresAt.toISOString(),
        runner: done.runner,
        session: done.login,
        run: done.run,
      },
      200,
    );
  });
  app.openapi(routes.pingRoute, async (c) => {
    const token = bearer(c);
    const run = token === null ? null : (await authenticate(deps, token)).identity.run;
    return c.json({ protocol: PROTOCOL_VERSION, server: deps.settings.version, run }, 200);
  });
}

function mountLeases(app: OpenAPIHono, deps: Deps, options: RunnerApiOptions): void {
  app.openapi(routes.leaseRoute, async (c) => {
    const { max, wait_ms } = c.req.valid('json');
    const gone = AbortSignal.any([options.stopping, c.req.raw.signal]);
    const until = performance.now() + wait_ms;
    for (let pause = POLL_MS; ; pause = Math.min(pause * 2, POLL_MAX_MS)) {
      // asked anew each time: a login that ended meanwhile leases nothing
      const outcome = await lease(deps, { login: await authenticate(deps, bearer(c)), max });
      const left = until - performance.now();
      if (outcome.leases.length > 0 || left <= 0 || gone.aborted) {
        return c.json(
          {
            leases: outcome.leases.map((one) => ({
              id: one.id,
              token: one.token,
              grant: one.grant,
              expires_at: one.expiresAt.toISOString(),
              heartbeat_ms: RUNNER_LIMITS.heartbeatMs,
              session: one.session,
              ticket: one.ticket,
            })),
            done: outcome.done,
          },
          200,
        );
      }
      await pausing(Math.min(pause, left), gone);
    }
  });
  app.openapi(routes.heartbeatRoute, async (c) => {
    const done = await heartbeat(deps, await claimOf(c, deps, c.req.valid('param').id, c.req.valid('json')));
    return c.json(
      {
        expires_at: done.expiresAt.toISOString(),
        control: done.control,
        drain_until: done.drainUntil?.toISOString() ?? null,
        login_expires_at: done.loginExpiresAt.toISOString(),
      },
      200,
    );
  });
  app.openapi(routes.admitRoute, async (c) => {
    const request = c.req.valid('json');
    const claim = await claimOf(c, deps, c.req.valid('param').id, request);
    const done = await admit(deps, claim, {
      reviewer: request.reviewer,
      purpose: request.purpose,
      promptTokens: request.prompt_tokens,
    });
    return done.outcome === 'admitted'
      ? c.json({ outcome: done.outcome, session: done.session, retry_ms: null }, 200)
      : c.json({ outcome: done.outcome, session: null, retry_ms: done.retryMs }, 200);
  });
  app.openapi(routes.submitRoute, async (c) => {
    const request = c.req.valid('json');
    const claim = await claimOf(c, deps, c.req.valid('param').id, request);
    return c.json(await acceptResult(deps, claim, request.result), 200);
  });
  app.openapi(routes.returnRoute, async (c) => {
    const request = c.req.valid('json');
    await giveBack(deps, await claimOf(c, deps, c.req.valid('param').id, request), request.reason);
    return c.json({}, 200);
  });
  app.openapi(routes.sessionEndRoute, async (c) => {
    const request = c.req.valid('json');
    const by = await authenticate(deps, bearer(c));
    await endSession(
      deps,
      { login: by, token: request.token, grant: request.grant },
      c.req.valid('param').id,
      {
        end: request.end,
        detail: request.detail,
        tokensIn: request.tokens_in,
        tokensOut: request.tokens_out,
        costMicro: request.cost_micro,
      },
    );
    return c.json({}, 200);
  });
}

async function claimOf(
  c: Context,
  deps: Deps,
  lease: string,
  body: { readonly token: string; readonly grant: number },
) {
  return { login: await authenticate(deps, bearer(c)), lease, token: body.token, grant: body.grant };
}

/** Waits, or less when the caller went away or the server stops. */
function pausing(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((done) => {
    const stop = () => {
      clearTimeout(timer);
      signal.removeEventListener('abort', stop);
      done();
    };
    const timer = setTimeout(stop, ms);
    if (signal.aborted) stop();
    else signal.addEventListener('abort', stop);
  });
}
