/**
 * A small strict server that speaks the runner protocol: every request is parsed with the schemas of
 * app/protocol, every answer too, and what does not fit is a violation that fails the test. The real
 * server takes its place in the acceptance tests.
 */
import { createHash, randomBytes } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type * as z from 'zod';
import { ticketId } from '../../app/domain/ticket.ts';
import { loginRequest, loginResponse, logoutRequest } from '../../app/protocol/login.ts';
import * as wire from '../../app/protocol/runner.ts';

export type Call = {
  verb: string;
  id: string;
  body: Record<string, unknown>;
  auth: string | null;
  at: number;
};
/** What a knob answers: a status with a body, or nothing at all (the connection is cut). */
export type Knob = (
  call: Call,
) => { status: number; body: unknown; headers?: Record<string, string> } | 'cut' | null;

export type ProtocolServer = {
  url: string;
  env: Record<string, string>;
  calls: Call[];
  violations: string[];
  /** Ticket results that were accepted, by ticket id. */
  results: Map<string, wire.TicketResult>;
  returned: string[];
  logins: string[];
  protocol: string;
  heartbeatMs: number;
  leaseMs: number;
  /** Most leases that were open at once. */
  mostOpen: number;
  control: 'none' | 'pause' | 'recall' | 'stop';
  /** Looked at before the ordinary answer of every call. */
  knob: Knob;
  add: (ticket: wire.LeasedTicket) => void;
  of: (verb: string) => Call[];
  close: () => Promise<void>;
};

export const refuse = (status: number, code: string) => ({
  status,
  body: { error: { code, message: `refused: ${code}` } },
});

/** The redaction salt of every test ticket. */
export const SALT = 'a salt for tests';

/** A ticket whose id fits its content; give what matters. */
export function makeTicket(
  of: Partial<wire.LeasedTicket> &
    Pick<wire.LeasedTicket, 'path' | 'head' | 'merge_base' | 'blob' | 'reviewers' | 'repository'>,
): wire.LeasedTicket {
  const run = of.run ?? 'run-1';
  const block = of.block ?? { id: 'a-block', title: 'A block', brief: 'What it is for.' };
  const round = of.round ?? 0;
  const key = createHash('sha256')
    .update(JSON.stringify([of.path, of.blob, of.reviewers]))
    .digest('hex');
  return wire.leasedTicket.parse({
    id: ticketId({ run, block: block.id, key, round }),
    kind: 'review',
    key,
    round,
    run,
    pull: '1',
    from: null,
    mode: { base: of.blob.base === null ? null : '100644', head: of.blob.head === null ? null : '100644' },
    level: 'L2',
    block,
    fallbacks: [],
    lenses: ['correctness', 'security'],
    max_lines: 5000,
    timeout_ms: 20_000,
    policy: '0'.repeat(64),
    prompt_version: wire.PROMPT_VERSION,
    nonce: `n${randomBytes(8).toString('hex')}`,
    redaction_salt: SALT,
    earlier: [],
    ...of,
  });
}

export async function startProtocolServer(): Promise<ProtocolServer> {
  const pending: wire.LeasedTicket[] = [];
  const leases = new Map<
    string,
    { ticket: wire.LeasedTicket; token: string; grant: number; open: boolean }
  >();
  const waiting = new Set<() => void>();
  let granted = 0;
  let oidc = 0;
  const used = new Set<string>();

  const http = createServer((request, response) => {
    void handle(request, response).catch((error: unknown) => {
      state.violations.push(String(error));
      response.destroy();
    });
  });
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(http.address() as AddressInfo).port}`;

  const state: ProtocolServer = {
    url,
    env: {
      ACTIONS_ID_TOKEN_REQUEST_URL: `${url}/oidc?api-version=2.0`,
      ACTIONS_ID_TOKEN_REQUEST_TOKEN: 'request-token-of-the-job',
    },
    calls: [],
    violations: [],
    results: new Map(),
    returned: [],
    logins: [],
    protocol: wire.PROTOCOL_VERSION,
    heartbeatMs: 200,
    leaseMs: 5000,
    mostOpen: 0,
    control: 'none',
    knob: () => null,
    add(ticket) {
      pending.push(ticket);
      for (const wake of waiting) wake();
    },
    of: (verb) => state.calls.filter((call) => call.verb === verb),
    async close() {
      for (const wake of waiting) wake();
      http.closeAllConnections();
      await new Promise((resolve) => http.close(resolve));
    },
  };

  function give(max: number) {
    return pending.splice(0, max).map((ticket) => {
      const id = `lease-${++granted}`;
      const lease = {
        ticket,
        token: `lease-token-${randomBytes(12).toString('hex')}`,
        grant: granted,
        open: true,
      };
      leases.set(id, lease);
      state.mostOpen = Math.max(state.mostOpen, [...leases.values()].filter((one) => one.open).length);
      return {
        id,
        token: lease.token,
        grant: lease.grant,
        expires_at: new Date(Date.now() + state.leaseMs).toISOString(),
        heartbeat_ms: state.heartbeatMs,
        session: ticket.reviewers[0]?.uses === 'command' ? null : `own-${id}`,
        ticket,
      };
    });
  }

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const at = new URL(request.url ?? '/', url);
    const send = (status: number, body: unknown, headers: Record<string, string> = {}): void => {
      response.writeHead(status, { 'content-type': 'application/json', ...headers });
      response.end(JSON.stringify(body));
    };
    const answer = <T extends z.ZodType>(schema: T, body: z.input<T>): void => send(200, schema.parse(body));
    const auth = request.headers.authorization?.replace(/^Bearer /, '') ?? null;
    if (at.pathname === '/oidc') {
      if (auth !== 'request-token-of-the-job') return send(401, {});
      return send(200, { value: `oidc-${++oidc}-for-${at.searchParams.get('audience')}` });
    }
    const parts = at.pathname.split('/').slice(3);
    const verb = parts[2] ?? parts[0] ?? '';
    const raw = Buffer.concat(chunks).toString('utf8');
    const call: Call = {
      verb,
      id: parts[1] ?? '',
      body: raw === '' ? {} : JSON.parse(raw),
      auth,
      at: Date.now(),
    };
    state.calls.push(call);
    const turned = state.knob(call);
    if (turned === 'cut') return void request.socket.destroy();
    if (turned !== null) return send(turned.status, turned.body, turned.headers);
    const parse = <T extends z.ZodType>(schema: T): z.infer<T> => {
      const parsed = schema.safeParse(call.body);
      if (!parsed.success) throw new Error(`${verb}: ${parsed.error.message}`);
      return parsed.data;
    };

    if (verb === 'ping')
      return answer(wire.pingResponse, { protocol: state.protocol, server: 'test', run: null });
    if (verb === 'login') {
      const login = parse(loginRequest);
      if ('oidc' in login) {
        if (used.has(login.oidc)) throw new Error('an OIDC token was used twice');
        used.add(login.oidc);
      }
      const token = `login-token-${randomBytes(12).toString('hex')}`;
      state.logins.push(token);
      return answer(loginResponse, {
        token,
        expires_at: new Date(Date.now() + 600_000).toISOString(),
        runner: 'runner-1',
        session: 'session-of-login',
        run: null,
      });
    }
    if (auth !== state.logins.at(-1)) {
      const { status, body } = refuse(401, 'unauthorized');
      return send(status, body);
    }
    if (verb === 'logout') {
      parse(logoutRequest);
      return answer(wire.emptyResponse, {});
    }
    if (verb === 'leases') {
      const { max, wait_ms } = parse(wire.leaseRequest);
      if (pending.length === 0 && wait_ms > 0)
        await new Promise<void>((resolve) => {
          const wake = (): void => {
            clearTimeout(timer);
            waiting.delete(wake);
            resolve();
          };
          const timer = setTimeout(wake, wait_ms);
          waiting.add(wake);
          request.socket.once('close', wake);
        });
      if (request.socket.destroyed) return;
      const given = give(max);
      return answer(wire.leaseResponse, { leases: given, done: false });
    }
    if (parts[0] === 'sessions') {
      const ended = parse(wire.sessionEndRequest);
      if (![...leases.values()].some((l) => l.token === ended.token))
        throw new Error('a session without a lease');
      return answer(wire.emptyResponse, {});
    }
    const lease = leases.get(call.id);
    if (lease === undefined || lease.token !== call.body['token'] || lease.grant !== call.body['grant'])
      throw new Error(`${verb} of an unknown lease`);
    if (!lease.open) {
      const { status, body } = refuse(409, 'expired');
      return send(status, body);
    }
    if (verb === 'heartbeat') {
      parse(wire.heartbeatRequest);
      return answer(wire.heartbeatResponse, {
        expires_at: new Date(Date.now() + state.leaseMs).toISOString(),
        control: state.control,
        drain_until: null,
        login_expires_at: new Date(Date.now() + 600_000).toISOString(),
      });
    }
    if (verb === 'admit') {
      const { purpose } = parse(wire.admitRequest);
      const own = purpose === 'review' ? `own-${call.id}` : `session-${state.of('admit').length}`;
      return answer(wire.admitResponse, { outcome: 'admitted', session: own, retry_ms: null });
    }
    if (verb === 'submit') {
      const { result, lease_next } = parse(wire.submitRequest);
      lease.open = false;
      state.results.set(lease.ticket.id, result);
      return answer(wire.submitResponse, {
        accepted: true,
        late: false,
        repeated: false,
        ...(lease_next === undefined ? {} : { next: { leases: give(lease_next.max), done: false } }),
      });
    }
    if (verb === 'return') {
      parse(wire.returnRequest);
      lease.open = false;
      state.returned.push(lease.ticket.id);
      return answer(wire.emptyResponse, {});
    }
    throw new Error(`unknown route ${request.method} ${at.pathname}`);
  }
  return state;
}
