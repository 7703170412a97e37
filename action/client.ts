/**
 * The runner's side of the protocol (app/protocol/runner.ts). Every answer is parsed; a refusal is
 * data with its code, a failure of the way there is a Fault that says trying again may help.
 */
import { randomUUID } from 'node:crypto';
import type * as z from 'zod';
import { Fault } from '../app/errors.ts';
import { loginResponse } from '../app/protocol/login.ts';
import * as wire from '../app/protocol/runner.ts';
import { answerText } from './answer-text.ts';
import type { Inputs } from './inputs.ts';
import type { Log } from './log.ts';
import { oidcToken } from './oidc.ts';
import { sleep } from './sleep.ts';
import { VERSION } from './version.ts';

/** What the server said: the parsed answer, or its refusal by code. */
export type Answer<T> =
  | Readonly<{ ok: true; value: T }>
  | Readonly<{ ok: false; status: number; code: string; message: string; retryAfterMs: number | null }>;

type Json = Record<string, unknown>;
type CallOptions = { timeoutMs?: number; signal?: AbortSignal };

/** A logged-in connection to the server; each call throws Fault `server_unavailable` when it did not get through. */
export type Client = Readonly<{
  /** Compares protocol versions (LSE-7); throws Fault `server_refused` when the major one differs. */
  greet: () => Promise<void>;
  lease: (
    request: z.input<typeof wire.leaseRequest>,
    signal: AbortSignal,
  ) => Promise<Answer<z.infer<typeof wire.leaseResponse>>>;
  heartbeat: (lease: LeaseRef) => Promise<Answer<z.infer<typeof wire.heartbeatResponse>>>;
  admit: (
    lease: LeaseRef,
    request: Omit<z.input<typeof wire.admitRequest>, 'token' | 'grant'>,
    signal: AbortSignal,
  ) => Promise<Answer<z.infer<typeof wire.admitResponse>>>;
  endSession: (
    lease: LeaseRef,
    session: string,
    request: Omit<z.input<typeof wire.sessionEndRequest>, 'token' | 'grant'>,
  ) => Promise<Answer<Json>>;
  /** `next`: also asks for the next tickets, where the server can (protocol 1.1). */
  submit: (
    lease: LeaseRef,
    result: wire.TicketResult,
    next: z.input<typeof wire.submitRequest>['lease_next'] | null,
  ) => Promise<Answer<z.infer<typeof wire.submitResponse>>>;
  giveBack: (lease: LeaseRef, reason: 'stopping' | 'fenced' | 'recalled') => Promise<Answer<Json>>;
  /** Any other request of a runner's; `body` brings what proves its right. */
  post: <T extends z.ZodType>(
    path: string,
    body: Json,
    schema: T,
    options?: CallOptions,
  ) => Promise<Answer<z.infer<T>>>;
  /** Says that this runner goes (protocol 1.2); nothing where it never logged in. */
  logOut: () => Promise<void>;
}>;

/** What proves the right to a leased ticket; the token is a credential and goes in bodies only. */
export type LeaseRef = Readonly<{ id: string; token: string; grant: number }>;

const CALL_TIMEOUT_MS = 20_000;
/** A refused login is not repeated; one that did not get through is, for so long. */
const LOGIN_PATIENCE_MS = 90_000;

/** A client for the server of the inputs; it logs in when first needed and again once after a 401 (ACT-5). */
export function createClient(deps: {
  inputs: Inputs;
  log: Log;
  signal: AbortSignal;
  /** What the login shows of a resident runner to a server of that minor version; absent: the job's OIDC token. */
  credentials?: (minor: number) => Promise<Json>;
  /** Called when a login was refused for good. */
  onRefused?: (fault: Fault) => void;
}): Client {
  const { inputs, log } = deps;
  const credentials =
    deps.credentials ??
    // a fresh OIDC token for each exchange: its jti is spent even when the answer was lost (AUT-1)
    (async () => ({ oidc: await oidcToken(inputs.audience), nonce: inputs.nonce }));
  let login: Promise<string> | null = null;
  /** The server's minor version: an older one refuses fields that it does not know. */
  let minor = 0;

  async function send<T extends z.ZodType>(
    method: 'GET' | 'POST',
    path: string,
    body: Json | null,
    schema: T,
    token: string | null,
    options: CallOptions,
  ): Promise<Answer<z.infer<T>>> {
    const timeout = AbortSignal.timeout(options.timeoutMs ?? CALL_TIMEOUT_MS);
    const headers: Record<string, string> = { accept: 'application/json', 'x-request-id': randomUUID() };
    if (body !== null) headers['content-type'] = 'application/json';
    if (token !== null) headers['authorization'] = `Bearer ${token}`;
    let response: Response;
    let text: string;
    try {
      response = await fetch(`${inputs.server}${path}`, {
        method,
        headers,
        body: body === null ? null : JSON.stringify(body),
        redirect: 'error',
        signal: options.signal === undefined ? timeout : AbortSignal.any([timeout, options.signal]),
      });
      text = await answerText(response);
    } catch (error) {
      if (error instanceof Fault) throw error;
      throw new Fault('server_unavailable', `${method} ${path.split('?')[0]}: no answer`, {
        cause: error,
        retryable: true,
      });
    }
    return parseAnswer(response, text, schema, `${method} ${path.split('?')[0]}`);
  }

  async function logIn(): Promise<string> {
    const from = performance.now();
    for (let wait = 500; ; wait = Math.min(wait * 2, 10_000)) {
      try {
        const request = {
          protocol: wire.PROTOCOL_VERSION,
          ...(await credentials(minor)),
          version: VERSION,
          capacity: inputs.parallel,
          keys: [...inputs.keys],
        };
        const answer = await send('POST', '/api/v1/login', request, loginResponse, null, {
          signal: deps.signal,
        });
        if (answer.ok) {
          log.mask(answer.value.token);
          log.line(`Logged in as runner ${answer.value.runner}`);
          return answer.value.token;
        }
        const why = `Login refused: ${answer.code}: ${answer.message}`;
        if (answer.status === 429) throw new Fault('server_unavailable', why, { retryable: true });
        const fault = new Fault('server_refused', why);
        deps.onRefused?.(fault);
        throw fault;
      } catch (error) {
        const again = error instanceof Fault && error.retryable && !deps.signal.aborted;
        if (!again || performance.now() - from > LOGIN_PATIENCE_MS) throw error;
        log.line(`Login did not get through, trying again in ${wait} ms`);
        await sleep(wait, deps.signal);
      }
    }
  }

  function token(): Promise<string> {
    if (login === null) {
      const attempt = logIn();
      login = attempt;
      attempt.catch(() => {
        if (login === attempt) login = null;
      });
    }
    return login;
  }

  async function call<T extends z.ZodType>(
    path: string,
    body: Json,
    schema: T,
    options: CallOptions = {},
  ): Promise<Answer<z.infer<T>>> {
    const used = await token();
    const answer = await send('POST', path, body, schema, used, options);
    if (answer.ok || answer.status !== 401) return answer;
    // one new login (ACT-5), shared by all calls that saw the same 401
    if ((await login) === used) login = null;
    return send('POST', path, body, schema, await token(), options);
  }

  const of = (lease: LeaseRef): Json => ({ token: lease.token, grant: lease.grant });
  const at = (lease: LeaseRef, verb: string): string =>
    `/api/v1/leases/${encodeURIComponent(lease.id)}/${verb}`;

  return {
    async greet() {
      const answer = await send('GET', '/api/v1/ping', null, wire.pingResponse, null, {
        signal: deps.signal,
      });
      if (answer.ok && major(answer.value.protocol) !== major(wire.PROTOCOL_VERSION))
        throw new Fault(
          'server_refused',
          `The server speaks protocol ${answer.value.protocol}, this Action ${wire.PROTOCOL_VERSION}: use the Action's version that fits the server`,
        );
      if (answer.ok) minor = Number(answer.value.protocol.split('.')[1] ?? 0) || 0;
      if (deps.credentials !== undefined && minor < 2)
        throw new Fault(
          'server_refused',
          'The server speaks a protocol before 1.2 and knows no resident runners: update it',
        );
      if (!answer.ok && answer.status !== 401)
        throw new Fault('server_refused', `Ping refused: ${answer.code}: ${answer.message}`);
      const run = (answer.ok ? answer.value.run : null) ?? inputs.run;
      const server = answer.ok ? `, server ${answer.value.server}` : '';
      log.line(`Protocol ${wire.PROTOCOL_VERSION}${server}${run === null ? '' : `, started for run ${run}`}`);
      await token();
    },
    lease: ({ max, wait_ms, verify, ...named }, signal) =>
      call(
        '/api/v1/leases',
        {
          max,
          wait_ms,
          ...(minor >= 1 ? named : {}),
          ...(minor >= 3 && verify !== undefined ? { verify } : {}),
        },
        wire.leaseResponse,
        { timeoutMs: wait_ms + CALL_TIMEOUT_MS, signal },
      ),
    heartbeat: (lease) =>
      call(at(lease, 'heartbeat'), of(lease), wire.heartbeatResponse, { timeoutMs: 10_000 }),
    admit: (lease, request, signal) =>
      call(at(lease, 'admit'), { ...of(lease), ...request }, wire.admitResponse, {
        timeoutMs: 70_000,
        signal,
      }),
    endSession: (lease, session, request) =>
      call(
        `/api/v1/sessions/${encodeURIComponent(session)}/end`,
        { ...of(lease), ...request },
        wire.emptyResponse,
      ),
    submit: (lease, result, next) =>
      call(
        at(lease, 'submit'),
        { ...of(lease), result, ...(next == null || minor < 1 ? {} : { lease_next: next }) },
        wire.submitResponse,
      ),
    giveBack: (lease, reason) =>
      call(at(lease, 'return'), { ...of(lease), reason }, wire.emptyResponse, { timeoutMs: 3000 }),
    post: call,
    async logOut() {
      if (login === null || minor < 2) return;
      await send('POST', '/api/v1/logout', {}, wire.emptyResponse, await login, { timeoutMs: 2000 });
    },
  };
}

function major(version: string): string {
  return version.split('.')[0] ?? '';
}

/** Reads an answer: 2xx by its schema, another status as a refusal by code, 5xx and foreign bodies as a Fault. */
function parseAnswer<T extends z.ZodType>(
  response: Response,
  text: string,
  schema: T,
  what: string,
): Answer<z.infer<T>> {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    json = undefined;
  }
  if (response.ok) {
    const parsed = schema.safeParse(json);
    if (parsed.success) return { ok: true, value: parsed.data };
    throw new Fault('server_refused', `${what}: the answer is not what protocol 1 says`);
  }
  const error = wire.errorResponse.safeParse(json);
  if (response.status >= 500 || !error.success)
    throw new Fault('server_unavailable', `${what}: status ${response.status}`, {
      retryable: response.status >= 500 || response.status === 429 || response.status === 404,
    });
  const seconds = Number(response.headers.get('retry-after') ?? Number.NaN);
  return {
    ok: false,
    status: response.status,
    code: error.data.error.code,
    message: error.data.error.message,
    retryAfterMs: Number.isFinite(seconds) && seconds >= 0 ? seconds * 1000 : null,
  };
}
