/** The routes of the runner API with their schemas: what is parsed, and what the OpenAPI description is made of. */
import { createRoute, z } from '@hono/zod-openapi';
import * as login from '../protocol/login.ts';
import * as wire from '../protocol/runner.ts';

const param = z.string().regex(/^[A-Za-z0-9_-]{1,64}$/);
const json = <T extends z.ZodType>(schema: T) => ({ 'application/json': { schema } });
const body = <T extends z.ZodType>(schema: T) => ({ content: json(schema), required: true as const });
const answers = <T extends z.ZodType>(schema: T, description: string) => ({
  200: { description, content: json(schema) },
  default: { description: 'An error: its code is stable.', content: json(wire.errorResponse) },
});
const security = [{ login: [] }];

/** `POST /api/v1/login` */
export const loginRoute = createRoute({
  method: 'post',
  path: '/api/v1/login',
  summary:
    'Exchanges an OIDC token of a dispatched workflow run, or a pool token, for a login (AUT-1, AUT-2).',
  request: { body: body(login.loginRequest) },
  responses: answers(login.loginResponse, 'A login; its token is told once.'),
});
/** `POST /api/v1/logout` */
export const logoutRoute = createRoute({
  method: 'post',
  path: '/api/v1/logout',
  summary: 'The runner goes: its logins end, and it is no capacity of its pool any more (LSE-6).',
  security,
  request: { body: body(login.logoutRequest) },
  responses: answers(wire.emptyResponse, 'It is gone.'),
});
/** `GET /api/v1/ping` */
export const pingRoute = createRoute({
  method: 'get',
  path: '/api/v1/ping',
  summary: 'The protocol this server speaks, and the run the caller was dispatched for (LSE-7).',
  responses: answers(wire.pingResponse, 'The version of the protocol.'),
});
/** `POST /api/v1/leases` */
export const leaseRoute = createRoute({
  method: 'post',
  path: '/api/v1/leases',
  summary: 'Leases up to `max` tickets, waiting up to `wait_ms` for the first (LSE-1).',
  security,
  request: { body: body(wire.leaseRequest) },
  responses: answers(wire.leaseResponse, 'Leases; none means nothing now.'),
});
/** `POST /api/v1/leases/{id}/heartbeat` */
export const heartbeatRoute = createRoute({
  method: 'post',
  path: '/api/v1/leases/{id}/heartbeat',
  summary: 'Keeps a lease and the login alive (LSE-3).',
  security,
  request: { params: z.strictObject({ id: param }), body: body(wire.heartbeatRequest) },
  responses: answers(wire.heartbeatResponse, 'The lease goes on.'),
});
/** `POST /api/v1/leases/{id}/admit` */
export const admitRoute = createRoute({
  method: 'post',
  path: '/api/v1/leases/{id}/admit',
  summary: 'Asks to start one session of one reviewer (ADM-1).',
  security,
  request: { params: z.strictObject({ id: param }), body: body(wire.admitRequest) },
  responses: answers(wire.admitResponse, 'Whether it may start.'),
});
/** `POST /api/v1/leases/{id}/submit` */
export const submitRoute = createRoute({
  method: 'post',
  path: '/api/v1/leases/{id}/submit',
  summary: 'Submits what a ticket came to; idempotent by ticket, grant and result (LSE-4).',
  security,
  request: { params: z.strictObject({ id: param }), body: body(wire.submitRequest) },
  responses: answers(wire.submitResponse, 'The result is recorded.'),
});
/** `POST /api/v1/leases/{id}/return` */
export const returnRoute = createRoute({
  method: 'post',
  path: '/api/v1/leases/{id}/return',
  summary: 'Gives a ticket back to the front of its block (LSE-5).',
  security,
  request: { params: z.strictObject({ id: param }), body: body(wire.returnRequest) },
  responses: answers(wire.emptyResponse, 'It waits for another runner.'),
});
/** `POST /api/v1/sessions/{id}/end` */
export const sessionEndRoute = createRoute({
  method: 'post',
  path: '/api/v1/sessions/{id}/end',
  summary: 'A session is over: its slot is free and its usage known (ADM-1).',
  security,
  request: { params: z.strictObject({ id: param }), body: body(wire.sessionEndRequest) },
  responses: answers(wire.emptyResponse, 'Recorded.'),
});
