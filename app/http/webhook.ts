/**
 * The edge that deliveries arrive at (OPS-1): verified over the raw bytes, stored, answered; all work
 * is the queue's. It stands in front of Probot, whose own middleware answers after the handlers, takes
 * any size, knows one secret and none of our inbox (facts/github.md §20). Plain node http, since this
 * is the one route whose rate matters.
 */
import { isUtf8 } from 'node:buffer';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Log } from '../flow/deps.ts';
import { EDGE_LIMITS } from '../flow/edge-limits.ts';
import type { StoreDelivery } from '../flow/store-delivery.ts';
import { fitsEvent } from '../github/events/shape.ts';
import { scanBody } from './webhook/scan.ts';
import { checkSignature, type SignatureCheck } from './webhook/signature.ts';

/** Where GitHub sends deliveries. */
export const WEBHOOK_PATH = '/api/github/webhooks';
/** Largest body that is read: GitHub sends nothing above it (facts/github.md §11). */
export const MAX_BODY_BYTES = EDGE_LIMITS.deliveryBytes;
/** Most bytes of bodies in memory at a time; beyond it the answer is 503 and reconciliation asks again. */
const MAX_BUFFERED_BYTES = 256 * 1024 * 1024;
const SLOW_BODY_MS = 30_000;

/** What the edge needs. */
export interface WebhookOptions {
  /** One or two secrets (OPS-1). */
  readonly secrets: readonly string[];
  readonly store: StoreDelivery;
  readonly log: Log;
  /** Most bytes of bodies in memory at a time (default 256 MiB). */
  readonly maxBuffered?: number;
  /** Called with the status of each answer. */
  readonly count?: (status: number) => void;
}

/** A handler of POST WEBHOOK_PATH. Answers 202 stored, 200 ping, 400, 401, 405, 413, 415 or 503; never 500, and nothing is stored unless 202. */
export function webhook(
  options: WebhookOptions,
): (request: IncomingMessage, response: ServerResponse) => void {
  let buffered = 0;
  const most = options.maxBuffered ?? MAX_BUFFERED_BYTES;

  return (request, response) => {
    const answer = (status: number, body: string) => {
      options.count?.(status);
      if (response.headersSent || response.destroyed) return;
      response.writeHead(status, {
        'content-type': 'application/json',
        'content-length': Buffer.byteLength(body),
        // an unread body makes the connection useless for the next request
        ...(request.complete ? {} : { connection: 'close' }),
      });
      response.end(body);
    };
    const refuse = (status: number, code: string, message: string) =>
      answer(status, JSON.stringify({ error: { code, message } }));

    if (request.method !== 'POST') {
      response.setHeader('allow', 'POST');
      return refuse(405, 'bad_request', 'POST a delivery here');
    }
    if (!/^application\/json\s*(?:;|$)/i.test(request.headers['content-type'] ?? ''))
      return refuse(415, 'bad_request', 'deliveries are application/json');
    const declared = request.headers['content-length'];
    if (declared !== undefined && Number(declared) > MAX_BODY_BYTES) {
      discard(request, () => refuse(413, 'too_large', `at most ${MAX_BODY_BYTES} bytes`));
      return;
    }
    const busy = () => refuse(503, 'too_large', 'too much is arriving at once: try again');
    if (buffered + Number(declared ?? 0) > most) return busy();

    const check = checkSignature(options.secrets);
    read(request, check, (bytes) => {
      buffered += bytes;
      return buffered <= most;
    }).then(
      async (body) => {
        if (body === 'aborted') return;
        if (body === 'busy') return discard(request, busy);
        if (body === 'too_large')
          return discard(request, () => refuse(413, 'too_large', `at most ${MAX_BODY_BYTES} bytes`));
        try {
          await accept(request, body, check, options, answer, refuse);
        } finally {
          buffered -= body.length;
        }
      },
      () => refuse(400, 'bad_request', 'the body could not be read'),
    );
  };
}

async function accept(
  request: IncomingMessage,
  body: Buffer,
  check: SignatureCheck,
  options: WebhookOptions,
  answer: (status: number, body: string) => void,
  refuse: (status: number, code: string, message: string) => void,
): Promise<void> {
  // two headers of one name arrive joined by a comma, which no valid signature has
  if (!check.matches(single(request.headers['x-hub-signature-256'])))
    return refuse(401, 'bad_signature', 'the signature does not fit the body');
  const id = single(request.headers['x-github-delivery']);
  const event = single(request.headers['x-github-event']);
  if (
    id === undefined ||
    !/^[A-Za-z0-9-]{1,64}$/.test(id) ||
    event === undefined ||
    !/^[a-z_]{1,64}$/.test(event)
  )
    return refuse(400, 'bad_request', 'X-GitHub-Delivery and X-GitHub-Event are needed');
  if (!isUtf8(body)) return refuse(400, 'bad_request', 'the body is not UTF-8');
  const scan = scanBody(body);
  if (!scan.ok) return refuse(400, 'bad_request', `the body is refused: ${scan.reason}`);
  if (!fitsEvent(event, scan.keys)) return refuse(400, 'bad_request', 'the body is of another event');
  if (event === 'ping') return answer(200, '{"pong":true}');
  try {
    const stored = await options.store({ id, event, body });
    answer(202, stored.fresh ? '{"accepted":true}' : '{"accepted":true,"repeated":true}');
  } catch {
    options.log.error({ delivery: id }, 'store-delivery');
    refuse(503, 'bad_request', 'the delivery could not be stored: try again');
  }
}

/** Why a body was not read to its end. */
type Unread = 'too_large' | 'busy' | 'aborted';

/** Reads the body as it comes, feeding the MAC, and stops at the limit whatever the headers said. */
function read(
  request: IncomingMessage,
  check: SignatureCheck,
  hold: (bytes: number) => boolean,
): Promise<Buffer | Unread> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let length = 0;
    let settled = false;
    const settle = (outcome: Buffer | Unread) => {
      if (settled) return;
      settled = true;
      clearTimeout(slow);
      // what was held is given back by the caller, except when there is no body to hand over
      if (!Buffer.isBuffer(outcome)) {
        hold(-length);
        chunks.length = 0;
      }
      resolve(outcome);
    };
    const slow = setTimeout(() => {
      request.destroy();
      settle('aborted');
    }, SLOW_BODY_MS);
    request.on('data', (chunk: Buffer) => {
      if (settled) return;
      if (length + chunk.length > MAX_BODY_BYTES) {
        settle('too_large');
        return;
      }
      length += chunk.length;
      // what others declared and have not sent yet counts only now: many at once fit by their headers
      if (!hold(chunk.length)) {
        settle('busy');
        return;
      }
      check.update(chunk);
      chunks.push(chunk);
    });
    request.on('end', () => settle(chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks)));
    request.on('close', () => settle('aborted'));
    request.on('error', (error) => {
      if (settled) return;
      settle('aborted');
      reject(error);
    });
  });
}

/**
 * Lets go of a body that is not wanted before it is answered: a client that is still sending when the
 * connection closes sees a reset, not the answer. Nothing is kept, and what is far too long is cut.
 */
function discard(request: IncomingMessage, then: () => void): void {
  let left = 2 * MAX_BODY_BYTES;
  let told = false;
  const end = () => {
    if (told) return;
    told = true;
    clearTimeout(slow);
    then();
  };
  const slow = setTimeout(end, 5_000);
  request.on('data', (chunk: Buffer) => {
    left -= chunk.length;
    if (left < 0) end();
  });
  request.on('end', end);
  request.on('close', end);
  request.on('error', end);
  request.resume();
}

function single(header: string | string[] | undefined): string | undefined {
  return typeof header === 'string' ? header : undefined;
}
