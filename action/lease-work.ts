/**
 * One lease from its grant to its end (ACT-5): heartbeats on a timer of their own, the work, then the
 * result until it is accepted or the lease has ended. A lease that is lost stops its work at once.
 */
import type * as z from 'zod';
import { showPath } from '../app/domain/path.ts';
import { ticketId } from '../app/domain/ticket.ts';
import { Fault } from '../app/errors.ts';
import type { leaseResponse, TicketResult } from '../app/protocol/runner.ts';
import type { Client } from './client.ts';
import type { Inputs } from './inputs.ts';
import type { Log } from './log.ts';
import type { Objects } from './objects/store.ts';
import type { Results } from './results.ts';
import { type Reviewed, reviewTicket } from './review.ts';
import { openSessions } from './sessions.ts';
import { sleep } from './sleep.ts';
import type { Tally } from './summary.ts';

/** A lease as granted. */
export type Lease = z.infer<typeof leaseResponse>['leases'][number];

/** What working a lease needs. */
export type WorkDeps = Readonly<{
  client: Client;
  inputs: Inputs;
  objects: Objects;
  scratch: string;
  log: Log;
  tally: Tally;
  results: Results;
  signal: AbortSignal;
}>;

type Stop = 'stopping' | 'fenced' | 'recalled' | 'lost';

/** Works a lease to its end; never throws. */
export async function workLease(deps: WorkDeps, lease: Lease): Promise<void> {
  const { client, log, tally } = deps;
  const { ticket } = lease;
  const from = performance.now();
  const title = `${ticket.block.id} ${showPath(ticket.path)} (${ticket.level}, round ${ticket.round})`;
  log.mask(lease.token);
  log.line(`Leased ${title}`);
  const ending = new AbortController();
  const life = { stop: null as Stop | null };
  const end = (why: Stop): void => {
    life.stop ??= why;
    ending.abort();
  };
  const onStop = (): void => end('stopping');
  if (deps.signal.aborted) onStop();
  deps.signal.addEventListener('abort', onStop, { once: true });
  const sessions = openSessions({ client, lease, own: lease.session, log, signal: ending.signal });
  const heart = startHeart(deps, lease, () => sessions.admitted(), end);
  let outcome: string;
  let reviewed: Reviewed = { kind: 'given_up', why: 'stopping' };
  try {
    reviewed = isGenuine(lease)
      ? await reviewTicket(deps, ticket, sessions, ending.signal)
      : { kind: 'result', result: badTicket(lease) };
    if (reviewed.kind === 'result') outcome = await submit(deps, lease, reviewed.result, life, heart.leftMs);
    else outcome = await giveBack(deps, lease, life.stop ?? reviewed.why);
  } catch (error) {
    outcome = `failed: ${error instanceof Error ? error.message : 'unknown'}`;
  } finally {
    heart.stop();
    deps.signal.removeEventListener('abort', onStop);
  }
  const result = reviewed.kind === 'result' ? reviewed.result : null;
  tally.add({
    title,
    path: showPath(ticket.path),
    outcome,
    result,
    ms: Math.round(performance.now() - from),
  });
  log.group(`${title}: ${result?.verdict ?? result?.end ?? 'given back'}`, [
    `Outcome: ${outcome}`,
    ...(result === null || result.detail === null ? [] : [`Detail: ${result.detail}`]),
    ...(result?.sessions ?? []).map(
      (s) => `Session ${s.reviewer}: ${s.end}, ${s.ms} ms${s.detail === null ? '' : `, ${s.detail}`}`,
    ),
    ...(result?.findings ?? []).map(
      (f) => `${f.severity} ${f.lens} line ${f.start_line}${f.grounded ? '' : ' (ungrounded)'}: ${f.title}`,
    ),
    ...(result?.unplaced ?? []).map((said) => `unplaced: ${said}`),
  ]);
}

/** Whether the ticket's id is that of its content (TKT-1). */
function isGenuine({ ticket }: Lease): boolean {
  const { run, block, key, round } = ticket;
  return ticket.id === ticketId({ run, block: block.id, key, round });
}

function badTicket(_: Lease): TicketResult {
  return {
    end: 'bad_ticket',
    detail: 'the id is not that of the ticket',
    retry_after_ms: null,
    blobs: { base: null, head: null },
    verdict: null,
    partial: false,
    sessions: [],
    findings: [],
    unplaced: [],
    brief_sha256: null,
    ms: 0,
  };
}

type Heart = { stop: () => void; leftMs: () => number };

/** Beats every `heartbeat_ms`, whatever the work does; a 409 ends the work, silence only when the lease must be over. */
function startHeart(deps: WorkDeps, lease: Lease, admitted: () => boolean, end: (why: Stop) => void): Heart {
  let endsAt = performance.now() + lifeOf(lease.expires_at, lease.heartbeat_ms);
  let busy = false;
  let stopped = false;
  const beat = async (): Promise<void> => {
    if (busy || stopped) return;
    busy = true;
    try {
      const answer = await deps.client.heartbeat(lease);
      if (stopped) return;
      if (answer.ok) {
        endsAt = performance.now() + lifeOf(answer.value.expires_at, lease.heartbeat_ms);
        if (answer.value.control === 'stop') end('fenced');
        // too late once something was spent: the result is worth more than the slot (TKT-3)
        if (answer.value.control === 'recall' && !admitted()) end('recalled');
        // a pause lets running work finish; what starts is refused at admission (CTL-2)
      } else if (answer.status === 409 || answer.status === 403 || answer.status === 404) {
        deps.log.line(`Lease lost: ${answer.code}`);
        end('lost');
      }
    } catch {
      if (!stopped && performance.now() > endsAt) {
        deps.log.line('Lease lost: no heartbeat got through in its time');
        end('lost');
      }
    } finally {
      busy = false;
    }
  };
  const timer = setInterval(() => void beat(), Math.min(Math.max(50, lease.heartbeat_ms), 60_000));
  return {
    stop() {
      stopped = true;
      clearInterval(timer);
    },
    leftMs: () => Math.max(0, endsAt - performance.now()),
  };
}

const LONGEST_LIFE_MS = 3_600_000;

/** How long a lease lives from now. Clocks differ: an expiry that makes no sense here counts as four heartbeats. */
function lifeOf(expiresAt: string, heartbeatMs: number): number {
  const left = Date.parse(expiresAt) - Date.now();
  return left > 0 && left <= LONGEST_LIFE_MS ? left : Math.max(4 * heartbeatMs, 10_000);
}

async function submit(
  deps: WorkDeps,
  lease: Lease,
  result: TicketResult,
  life: { stop: Stop | null },
  leftMs: () => number,
): Promise<string> {
  let kept: string | null = null;
  for (let wait = 250; ; wait = Math.min(wait * 2, 5000)) {
    if (life.stop === 'lost') return `lost${kept === null ? '' : `, kept in ${kept}`}`;
    let why: string;
    try {
      const answer = await deps.client.submit(lease, result);
      if (answer.ok) {
        if (kept !== null) await deps.results.forget(lease);
        return answer.value.late
          ? 'late: recorded, not counted'
          : answer.value.repeated
            ? 'accepted before'
            : 'accepted';
      }
      if (answer.status !== 429 && answer.status !== 401) return `refused: ${answer.code}`;
      why = answer.code;
      wait = answer.retryAfterMs ?? wait;
    } catch (error) {
      if (!(error instanceof Fault && error.retryable)) throw error;
      why = error.code;
    }
    if (kept === null) {
      kept = await deps.results.keep(lease, lease.ticket.id, result);
      deps.log.line(`Result not accepted yet (${why}), kept and tried again until the lease ends`);
    }
    if (leftMs() <= 0) return `not delivered (${why}), kept in ${kept}`;
    if (deps.signal.aborted && wait > 1000) return `stopped before delivery, kept in ${kept}`;
    await sleep(Math.min(wait, Math.max(1, leftMs())), new AbortController().signal);
  }
}

async function giveBack(deps: WorkDeps, lease: Lease, why: Stop): Promise<string> {
  if (why === 'lost') return 'lease lost';
  try {
    const answer = await deps.client.giveBack(lease, why);
    return answer.ok ? `given back (${why})` : `could not be given back: ${answer.code}`;
  } catch {
    return 'could not be given back: the lease will expire';
  }
}
