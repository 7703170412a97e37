/**
 * The runner API (LSE-1…LSE-7, AUT-1): parse, authenticate, call one arrow, map its answer. Everything
 * a runner sends is parsed here, once, by the schemas of app/protocol.
 */
import { OpenAPIHono } from '@hono/zod-openapi';
import { bodyLimit } from 'hono/body-limit';
import { Refusal } from '../errors.ts';
import { acceptResult } from '../flow/accept-result.ts';
import { admit } from '../flow/admit.ts';
import { authenticate } from '../flow/authenticate.ts';
import type { Deps } from '../flow/deps.ts';
import { EDGE_LIMITS } from '../flow/edge-limits.ts';
import { endSession } from '../flow/end-session.ts';
import { giveBack, takeBackUnheard } from '../flow/give-back.ts';
import { heartbeat } from '../flow/heartbeat.ts';
import type { LeaseOutcome } from '../flow/lease.ts';
import { leaseWork, takeBackWork } from '../flow/lease-receipts.ts';
import { login } from '../flow/login.ts';
import { loginPool } from '../flow/login-pool.ts';
import { logout } from '../flow/logout.ts';
import { poolPlace, untilWoken } from '../flow/wake.ts';
import { PROTOCOL_VERSION } from '../protocol/runner.ts';
import { answerError } from './answer-error.ts';
import { mountKill } from './kill-api.ts';
import { mountReceipts, receiptAnswers } from './receipt-api.ts';
import { createRefusalPace } from './refusal-pace.ts';
import { mountRuns, type RunApiOptions } from './run-api.ts';
import type { Verifier } from './runner-auth.ts';
import { bearer, claimOf } from './runner-claim.ts';
import * as routes from './runner-routes.ts';

/** What the API needs beside the arrows' effects. */
export interface RunnerApiOptions {
  readonly verify: Verifier;
  /** Aborted when the server stops: long polls answer at once. */
  readonly stopping: AbortSignal;
  /** Who the cookie of the pages stands for (LSE-8); absent: nobody. */
  readonly visitor?: RunApiOptions['visitor'];
}

/** Longest pause between two looks of a long poll, in ms: what wakes it comes sooner, and may be lost. */
const POLL_MS = 1_000;

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
  const small = limit(EDGE_LIMITS.requestBytes);
  const large = limit(EDGE_LIMITS.submitBytes);
  app.use('/api/v1/*', (c, next) => (c.req.path.endsWith('/submit') ? large(c, next) : small(c, next)));
  app.use('/api/v1/*', async (c, next) => {
    await next();
    c.header('cache-control', 'no-store');
  });
  mountLogin(app, deps, options);
  mountLeases(app, deps, options);
  mountReceipts(app, deps);
  mountRuns(app, deps, options);
  mountKill(app, deps);
  app.openAPIRegistry.registerComponent('securitySchemes', 'login', { type: 'http', scheme: 'bearer' });
  app.doc31('/api/v1/openapi.json', {
    openapi: '3.1.0',
    info: { title: 'Countersign runner API', version: PROTOCOL_VERSION },
  });
  return app;
}

function mountLogin(app: OpenAPIHono, deps: Deps, options: RunnerApiOptions): void {
  const refusals = createRefusalPace();
  app.openapi(routes.loginRoute, async (c) => {
    const request = c.req.valid('json');
    const done =
      'oidc' in request
        ? await login(deps, { ...request, claims: await options.verify(request.oidc) })
        : await refusals.pass(() => loginPool(deps, request));
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
  app.openapi(routes.logoutRoute, async (c) => {
    await logout(deps, await authenticate(deps, bearer(c)));
    return c.json({}, 200);
  });
  app.openapi(routes.pingRoute, async (c) => {
    const token = bearer(c);
    const run = token === null ? null : (await authenticate(deps, token)).identity.run;
    return c.json({ protocol: PROTOCOL_VERSION, server: deps.settings.version, run }, 200);
  });
}

function mountLeases(app: OpenAPIHono, deps: Deps, options: RunnerApiOptions): void {
  app.openapi(routes.leaseRoute, async (c) => {
    const { max, wait_ms, request, again, verify = 0 } = c.req.valid('json');
    const gone = AbortSignal.any([options.stopping, c.req.raw.signal]);
    const until = performance.now() + wait_ms;
    for (let first = true; ; first = false) {
      // asked anew each time: a login that ended meanwhile leases nothing
      const by = await authenticate(deps, bearer(c));
      const answered = new AbortController();
      // from before the look: what comes during it wakes too
      const woken = untilWoken(
        deps.database,
        by.identity.repository ?? poolPlace(by.identity.pool),
        Math.max(0, Math.min(POLL_MS, until - performance.now())),
        AbortSignal.any([gone, answered.signal]),
      );
      try {
        const outcome = await leaseWork(deps, {
          login: by,
          max,
          verify,
          request: request ?? null,
          again: first && again === true,
        });
        const found = outcome.leases.length > 0 || outcome.receipts.length > 0;
        if (found && c.req.raw.signal.aborted && request !== undefined) await takeBackWork(deps, by, request);
        if (found || performance.now() >= until || gone.aborted)
          return c.json(
            {
              ...leaseAnswer(outcome),
              ...(verify === 0 ? {} : { verify: receiptAnswers(outcome.receipts) }),
            },
            200,
          );
        await woken;
      } finally {
        answered.abort();
      }
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
    const next = request.lease_next;
    const done = await acceptResult(
      deps,
      claim,
      request.result,
      next === undefined
        ? null
        : { max: next.max, request: next.request ?? null, again: next.again === true },
    );
    if (
      done.next !== null &&
      done.next.leases.length > 0 &&
      c.req.raw.signal.aborted &&
      next?.request !== undefined
    )
      await takeBackUnheard(deps, claim.login, next.request);
    return c.json(
      {
        accepted: done.accepted,
        late: done.late,
        repeated: done.repeated,
        ...(done.next === null ? {} : { next: leaseAnswer(done.next) }),
      },
      200,
    );
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

function leaseAnswer(outcome: LeaseOutcome) {
  return {
    leases: outcome.leases.map((one) => ({
      id: one.id,
      token: one.token,
      grant: one.grant,
      expires_at: one.expiresAt.toISOString(),
      heartbeat_ms: EDGE_LIMITS.heartbeatMs,
      session: one.session,
      ticket: one.ticket,
      ...(one.access === null ? {} : { read_token: one.access }),
    })),
    done: outcome.done,
  };
}
