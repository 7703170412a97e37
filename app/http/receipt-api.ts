/** The part of the runner API that leases of receipts have (VER-1, LSE-3), with its routes. */
import { createRoute, type OpenAPIHono, z } from '@hono/zod-openapi';
import { acceptReceipt } from '../flow/accept-receipt.ts';
import type { Deps } from '../flow/deps.ts';
import { EDGE_LIMITS } from '../flow/edge-limits.ts';
import { giveBackReceipt } from '../flow/give-back-receipt.ts';
import { heartbeatReceipt } from '../flow/heartbeat-receipt.ts';
import type { GivenReceipt } from '../flow/lease-receipts.ts';
import { startReceipt } from '../flow/start-receipt.ts';
import { emptyResponse, errorResponse } from '../protocol/runner.ts';
import * as wire from '../protocol/verify.ts';
import { claimOf } from './runner-claim.ts';

const params = z.strictObject({ id: z.string().regex(/^[A-Za-z0-9_-]{1,64}$/) });

function route<V extends string, B extends z.ZodType, A extends z.ZodType>(of: {
  readonly verb: V;
  readonly summary: string;
  readonly body: B;
  readonly answer: A;
  readonly says: string;
}) {
  const json = <T extends z.ZodType>(schema: T) => ({ 'application/json': { schema } });
  return createRoute({
    method: 'post',
    path: `/api/v1/receipts/{id}/${of.verb}` as const,
    summary: of.summary,
    security: [{ login: [] }],
    request: { params, body: { content: json(of.body), required: true as const } },
    responses: {
      200: { description: of.says, content: json(of.answer) },
      default: { description: 'An error: its code is stable.', content: json(errorResponse) },
    },
  });
}

const startRoute = route({
  verb: 'start',
  summary: 'Asks to let the container of a leased verify command go; nothing is let go before (VER-2).',
  body: wire.receiptStartRequest,
  answer: emptyResponse,
  says: 'It may start.',
});
const heartbeatRoute = route({
  verb: 'heartbeat',
  summary: 'Keeps the lease of a verify command and the login alive (LSE-3).',
  body: wire.receiptHeartbeatRequest,
  answer: wire.receiptHeartbeatResponse,
  says: 'The lease goes on.',
});
const submitRoute = route({
  verb: 'submit',
  summary: 'Submits what a verify command came to; idempotent by receipt, grant and result (LSE-4).',
  body: wire.receiptSubmitRequest,
  answer: wire.receiptSubmitResponse,
  says: 'The result is recorded.',
});
const returnRoute = route({
  verb: 'return',
  summary: 'Gives a verify command back: it waits for another runner (LSE-5).',
  body: wire.receiptReturnRequest,
  answer: emptyResponse,
  says: 'It waits for another runner.',
});

/** Adds the routes to the API and to its description. */
export function mountReceipts(app: OpenAPIHono, deps: Deps): void {
  app.openapi(startRoute, async (c) => {
    await startReceipt(deps, await claimOf(c, deps, c.req.valid('param').id, c.req.valid('json')));
    return c.json({}, 200);
  });
  app.openapi(heartbeatRoute, async (c) => {
    const claim = await claimOf(c, deps, c.req.valid('param').id, c.req.valid('json'));
    const { expiresAt, control, loginExpiresAt } = await heartbeatReceipt(deps, claim);
    return c.json(
      {
        expires_at: expiresAt.toISOString(),
        control,
        login_expires_at: loginExpiresAt.toISOString(),
      },
      200,
    );
  });
  app.openapi(submitRoute, async (c) => {
    const request = c.req.valid('json');
    const claim = await claimOf(c, deps, c.req.valid('param').id, request);
    return c.json(await acceptReceipt(deps, claim, request.result), 200);
  });
  app.openapi(returnRoute, async (c) => {
    const request = c.req.valid('json');
    await giveBackReceipt(deps, await claimOf(c, deps, c.req.valid('param').id, request), request.reason);
    return c.json({}, 200);
  });
}

/** Leases of receipts as the answer to a lease request tells them. */
export function receiptAnswers(given: readonly GivenReceipt[]): wire.ReceiptLease[] {
  return given.map(({ id, token, grant, expiresAt, access, receipt }) => ({
    id,
    token,
    grant,
    expires_at: expiresAt.toISOString(),
    heartbeat_ms: EDGE_LIMITS.heartbeatMs,
    read_token: access,
    receipt,
  }));
}
