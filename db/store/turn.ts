/** Turns of the queue (LSE-1, LSE-4): leases end and tickets are granted, set by set, by product time. */
import pg from 'pg';
import type { Reader } from '../client.ts';
import { arrayText, fly, momentOf } from '../flight.ts';

/** What becomes of a ticket when its lease ends. */
export interface Settlement {
  readonly leaseState: 'ended' | 'returned' | 'expired' | 'revoked' | 'superseded';
  readonly ticketState: 'pending' | 'ended' | 'superseded' | 'cancelled';
  readonly front: boolean;
  readonly notBeforeMs: number | null;
  readonly losses: number;
  readonly timeouts: number;
  readonly transients: number;
  readonly suspect: boolean;
  readonly end: string | null;
  readonly verdict: string | null;
  readonly partial: boolean;
  readonly result: string | null;
  readonly reason: string | null;
  readonly seq: number | null;
}

/** A lease as granted. */
export interface Granted {
  readonly leaseId: string;
  readonly ticketId: string;
  readonly grant: number;
  readonly expiresAt: Date;
  readonly sessionId: string | null;
}

/** A repository whose tickets are asked for. */
export interface QueuePlace {
  readonly installationId: string;
  readonly repositoryId: string;
}

/** What one runner asks for: at most as many tickets as there are names, used in order. */
export interface LeaseAsk {
  readonly runnerId: string;
  /** The runner's own name of this request, by which an answer that was lost is given back. */
  readonly request: string | null;
  readonly names: readonly { readonly id: string; readonly tokenHash: Buffer; readonly sessionId: string }[];
  /** Kinds of tickets that its pool serves; absent: all there are. */
  readonly kinds?: readonly string[];
}

/** What one statement does to the queue: ends first, then asks in their order. */
export interface QueueTurn {
  readonly ends: readonly (Settlement & { readonly leaseId: string })[];
  readonly place: QueuePlace;
  readonly asks: readonly LeaseAsk[];
  readonly ttlMs: number;
  /** The `heads` of a turn just before: nothing ready is looked for in front of them. Left out, all is looked at. */
  readonly floors?: Heads;
  /** The ask before found nothing: one look first whether there is anything, before all that a turn is made of (bench L8). */
  readonly doubtful?: boolean;
}

/** By provider, the tag of the first ready ticket that was seen, taken or not. */
export type Heads = ReadonlyMap<string, string>;

/** What a turn came to. */
export interface TurnOutcome {
  /** Leases that were live and ended; another was not live any more and nothing happened to it. */
  readonly ended: ReadonlySet<string>;
  /** What was granted, by the place of the ask. */
  readonly granted: readonly (readonly Granted[])[];
  /** Of the providers that were looked at before anything was granted; empty where an ask met nothing ready with a slot free. */
  readonly heads: Heads;
}

const TURN = `select asker, lease_id, ticket_id, grant_no, expires_at, session_id
  from queue_turn($1::json, $2, $3, $4::text[], $5::integer[], $6::text[], $7::text[], $8::bytea[], $9::text[],
    $10 * interval '1 millisecond', $11::text[], $12::bigint[])`;

/**
 * Leases without ends are answered before their commit is on disk. Nothing of them is in a ledger, and the log is
 * written in order: whatever rests on a lease (an admission, a result) is on disk only behind it. What a crash of the
 * server can take is a lease that nobody has acted on, whole, and its ticket waits again.
 */
const ASK = `${TURN} where set_config('synchronous_commit', 'off', true) = 'off'`;

/** A slot that is free, whatever for, or a command that is ready: without either there is nothing to lease. */
const ANYTHING = `select from slot s where s.installation_id = $1 and s.session_id is null
  union all select from ticket t
    where t.repository_id = $2 and t.provider = 'command' and t.state = 'pending' and t.lane is not null
  limit 1`;

/**
 * LSE-1, LSE-4: ends leases and grants tickets of one repository, in one statement and without waiting
 * for anybody. An end takes with it slots, sessions, ticket, the held ticket of the same cell, the lane.
 */
export async function turnQueue(reader: Reader, turn: QueueTurn): Promise<TurnOutcome> {
  if (turn.doubtful === true && turn.ends.length === 0 && !(await anythingAt(reader, turn.place)))
    return { ended: new Set(), granted: turn.asks.map(() => []), heads: new Map() };
  const names = turn.asks.flatMap((ask) => ask.names);
  // a statement of the pool is a transaction of its own; in any other one there may be rows of a ledger (LED-5)
  const asks = turn.ends.length === 0 && reader.$client instanceof pg.Pool;
  const [answer] = await fly(reader.$client, [
    {
      name: asks ? 'turn-queue-ask' : 'turn-queue',
      text: asks ? ASK : TURN,
      values: [
        turn.ends.length === 0 ? null : JSON.stringify(turn.ends.map(endColumns)),
        turn.place.installationId,
        turn.place.repositoryId,
        arrayText(turn.asks.map((ask) => ask.runnerId)),
        arrayText(turn.asks.map((ask) => String(ask.names.length))),
        arrayText(turn.asks.map((ask) => ask.request)),
        arrayText(names.map((one) => one.id)),
        arrayText(names.map((one) => `\\x${one.tokenHash.toString('hex')}`)),
        arrayText(names.map((one) => one.sessionId)),
        String(turn.ttlMs),
        arrayText([...(turn.floors?.keys() ?? [])]),
        arrayText([...(turn.floors?.values() ?? [])]),
      ],
    },
  ]);
  const heads = new Map<string, string>();
  const ended = new Set<string>();
  const granted: Granted[][] = turn.asks.map(() => []);
  for (const [asker, id, of, grant, expiresAt, sessionId] of answer?.rows ?? []) {
    if (id == null) continue;
    if (Number(asker) === 0) ended.add(id);
    else if (of == null) continue;
    else if (Number(asker) < 0) heads.set(id, of);
    else
      granted[Number(asker) - 1]?.push({
        leaseId: id,
        ticketId: of,
        grant: Number(grant),
        expiresAt: momentOf(expiresAt ?? ''),
        sessionId: sessionId ?? null,
      });
  }
  return { ended, granted, heads };
}

async function anythingAt(reader: Reader, place: QueuePlace): Promise<boolean> {
  const [answer] = await fly(reader.$client, [
    { name: 'turn-anything', text: ANYTHING, values: [place.installationId, place.repositoryId] },
  ]);
  return (answer?.rows.length ?? 0) > 0;
}

/** What is null, false or 0 is left out: the server reads it as that, and half of what an end takes to read is its names. */
function endColumns({ leaseId, ...to }: Settlement & { readonly leaseId: string }) {
  return {
    id: leaseId,
    lease_state: to.leaseState,
    state: to.ticketState,
    front: to.front || undefined,
    not_before_ms: to.notBeforeMs ?? undefined,
    losses: to.losses || undefined,
    timeouts: to.timeouts || undefined,
    transients: to.transients || undefined,
    suspect: to.suspect || undefined,
    end_code: to.end ?? undefined,
    verdict: to.verdict ?? undefined,
    partial: to.partial || undefined,
    result: to.result ?? undefined,
    reason: to.reason ?? undefined,
    seq: to.seq ?? undefined,
  };
}

/** Grants tickets of one repository to one runner: a turn with one ask. */
export async function takeLeases(
  reader: Reader,
  ask: LeaseAsk & QueuePlace & Pick<QueueTurn, 'ttlMs' | 'doubtful'>,
): Promise<readonly Granted[]> {
  const { ttlMs, doubtful = false } = ask;
  const { granted } = await turnQueue(reader, { ends: [], place: ask, asks: [ask], ttlMs, doubtful });
  return granted[0] ?? [];
}

/** Ends one live lease: a turn with one end. `notBeforeMs` counts from now. False: it was not live any more. */
export async function settleLease(tx: Reader, leaseId: string, to: Settlement): Promise<boolean> {
  const { ended } = await turnQueue(tx, {
    ends: [{ ...to, leaseId }],
    place: { installationId: '0', repositoryId: '0' },
    asks: [],
    ttlMs: 0,
  });
  return ended.has(leaseId);
}
