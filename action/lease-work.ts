/**
 * One lease from its grant to its end (ACT-5): heartbeats on a timer of their own, the work, then the
 * result until it is accepted or the lease has ended. A lease that is lost stops its work at once.
 */
import { randomUUID } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import type * as z from 'zod';
import { showPath } from '../app/domain/path.ts';
import { ticketId } from '../app/domain/ticket.ts';
import { Fault } from '../app/errors.ts';
import type { leaseResponse, TicketResult } from '../app/protocol/runner.ts';
import type { Client } from './client.ts';
import { startHeart } from './heart.ts';
import type { Inputs } from './inputs.ts';
import type { Log } from './log.ts';
import type { Objects } from './objects/store.ts';
import type { Allowance } from './resident/allowance.ts';
import type { Verifier } from './resident/verifier.ts';
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
  /** What may be used on this machine; absent in a job of the repository's own. */
  allowance?: Allowance;
  /** Runs verify commands beside the tickets; absent where there is no container runtime for them (VER-1). */
  verifier?: Verifier;
}>;

type Stop = 'stopping' | 'fenced' | 'recalled' | 'lost';

/** Hears of what came back with an accepted result: the leases that take this one's place. */
export type OnNext = (next: z.infer<typeof leaseResponse>) => void;

/** Works a lease to its end and asks for the next one with its result; never throws. */
export async function workLease(deps: WorkDeps, lease: Lease, onNext: OnNext): Promise<void> {
  const { client, log, tally } = deps;
  const { ticket } = lease;
  const from = performance.now();
  const title = `${ticket.block.id} ${showPath(ticket.path)} (${ticket.level}, round ${ticket.round})`;
  log.mask(lease.token);
  if (lease.read_token !== undefined) {
    log.mask(lease.read_token);
    deps.objects.allow(ticket.repository.clone_url, lease.read_token);
  }
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
  const heart = startHeart({
    lease,
    beat: () => client.heartbeat(lease),
    onControl: (control) => {
      if (control === 'stop') end('fenced');
      // too late once something was spent: the result is worth more than the slot (TKT-3)
      if (control === 'recall' && !sessions.admitted()) end('recalled');
      // a pause lets running work finish; what starts is refused at admission (CTL-2)
    },
    onLost: (why) => {
      log.line(`Lease lost: ${why}`);
      end('lost');
    },
  });
  const scratch = join(deps.scratch, `ticket-${ticket.id.slice(0, 16)}-${lease.grant}`);
  let outcome: string;
  let reviewed: Reviewed = { kind: 'given_up', why: 'stopping' };
  try {
    reviewed = isGenuine(lease)
      ? await reviewTicket({ ...deps, scratch }, ticket, sessions, ending.signal)
      : { kind: 'result', result: badTicket(lease) };
    if (reviewed.kind === 'result')
      outcome = await submit(deps, lease, reviewed.result, life, heart.leftMs, onNext);
    else outcome = await giveBack(deps, lease, life.stop ?? reviewed.why);
  } catch (error) {
    outcome = `failed: ${error instanceof Error ? error.message : 'unknown'}`;
  } finally {
    heart.stop();
    deps.signal.removeEventListener('abort', onStop);
    // after the submit: the next ticket is under way while this one's folder goes
    await rm(scratch, { recursive: true, force: true }).catch(() => undefined);
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

async function submit(
  deps: WorkDeps,
  lease: Lease,
  result: TicketResult,
  life: { stop: Stop | null },
  leftMs: () => number,
  onNext: OnNext,
): Promise<string> {
  let kept: string | null = null;
  const request = randomUUID();
  let again = false;
  for (let wait = 250; ; wait = Math.min(wait * 2, 5000)) {
    if (life.stop === 'lost') return `lost${kept === null ? '' : `, kept in ${kept}`}`;
    let why: string;
    try {
      // where there is room for a verify command both are asked for together: a stream of tickets would keep it waiting
      const apart = deps.signal.aborted || (deps.verifier?.room() ?? 0) > 0;
      const next = apart ? null : { max: 1, request, again };
      const answer = await deps.client.submit(lease, result, next);
      if (answer.ok) {
        if (answer.value.next !== undefined) onNext(answer.value.next);
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
      again = true;
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
