/** The sessions of one leased ticket: each admitted by the server before it starts and ended with its usage (ADM-1). */
import { Fault } from '../app/errors.ts';
import type { Client, LeaseRef } from './client.ts';
import type { Log } from './log.ts';
import type { ReviewOutcome, SessionRecord, Sessions } from './reviewers/reviewer.ts';
import { sleep } from './sleep.ts';

/** Longest wait for a provider's slot before the ticket goes to wait on the server, where it holds nothing. */
const SLOT_PATIENCE_MS = 10 * 60_000;
/** More sessions than a result may list are not started: a ticket needs one or two. */
const MOST_SESSIONS = 16;

/** The book of a ticket's sessions. */
export type SessionBook = Sessions &
  Readonly<{
    records: () => readonly SessionRecord[];
    /** Whether anything was admitted: from then on a recall comes too late (TKT-3). */
    admitted: () => boolean;
  }>;

/** Opens the book for a lease; `own` is the session its slot already belongs to. */
export function openSessions(of: {
  client: Client;
  lease: LeaseRef;
  own: string | null;
  log: Log;
  signal: AbortSignal;
}): SessionBook {
  const { client, lease, signal } = of;
  const records: SessionRecord[] = [];
  let admitted = 0;
  return {
    records: () => records,
    admitted: () => admitted > 0,
    async admit({ reviewer, purpose, promptTokens }) {
      const refused = (outcome: ReviewOutcome) => ({ kind: 'refused', outcome }) as const;
      const unavailable = (
        end: 'budget' | 'worker_error' | 'rate_limited',
        detail: string,
        wait: number | null,
      ) =>
        refused({ kind: 'unavailable', reviewer, end, detail: `${reviewer}: ${detail}`, retryAfterMs: wait });
      if (records.length >= MOST_SESSIONS) return unavailable('worker_error', 'too many sessions', null);
      const from = performance.now();
      for (;;) {
        if (signal.aborted) return refused({ kind: 'given_up', why: 'stopping' });
        let wait = 1000;
        try {
          const answer = await client.admit(
            lease,
            { reviewer, purpose, prompt_tokens: promptTokens },
            signal,
          );
          if (!answer.ok) {
            if (answer.code === 'fenced') return refused({ kind: 'given_up', why: 'fenced' });
            if (answer.code === 'budget') return unavailable('budget', answer.message, null);
            if (answer.status === 409) return refused({ kind: 'given_up', why: 'lost' });
            if (answer.status !== 429) return unavailable('worker_error', `admit: ${answer.code}`, null);
            wait = answer.retryAfterMs ?? wait;
          } else if (answer.value.outcome === 'budget')
            return unavailable('budget', 'the budget is used up', null);
          else if (answer.value.outcome === 'admitted') {
            const session = answer.value.session ?? of.own;
            if (session === null) return unavailable('worker_error', 'admitted without a session', null);
            admitted++;
            return { kind: 'admitted', session };
          } else wait = answer.value.retry_ms ?? wait;
        } catch (error) {
          if (!(error instanceof Fault && error.retryable) || signal.aborted) {
            if (signal.aborted) return refused({ kind: 'given_up', why: 'stopping' });
            throw error;
          }
        }
        if (performance.now() - from > SLOT_PATIENCE_MS)
          return unavailable('rate_limited', 'no free slot of the provider', wait);
        await sleep(Math.min(Math.max(wait, 50), 30_000), signal);
      }
    },
    async ended(record) {
      records.push(record);
      const { id, end, detail, tokens_in, tokens_out, cost_micro, ms } = record;
      // the result brings the same figures: a lost message only keeps the slot until then
      await client
        .endSession(lease, id, {
          end,
          detail: detail?.slice(0, 500) ?? null,
          tokens_in,
          tokens_out,
          cost_micro,
          ms,
        })
        .catch(() => of.log.line(`The end of a session of ${record.reviewer} was not delivered`));
    },
    ran(record) {
      records.push({ ...record, id: `${lease.id.slice(0, 50)}.${records.length + 1}` });
    },
  };
}
