/**
 * What a runner asks for, two ways. `whole`: through the arrows that the edge calls. `lean`, for a day at full
 * size: the same queue turns, windows, rows, provider steps and jobs, without what a planner and a lease never
 * look at (the telling of tickets, sessions and budgets, findings).
 */

import { Refusal } from '../../app/errors.ts';
import { acceptResult } from '../../app/flow/accept-result.ts';
import { admit } from '../../app/flow/admit.ts';
import { writeEnd } from '../../app/flow/end-lease.ts';
import { type GivenLease, lease } from '../../app/flow/lease.ts';
import { secretHash } from '../../app/flow/login.ts';
import { takeTurn } from '../../app/flow/take-turn.ts';
import type { TicketResult } from '../../app/protocol/runner.ts';
import { type Lease, lockLease } from '../../db/store/lease.ts';
import { type Login, touchRunner } from '../../db/store/runner.ts';
import { findTicket, type Ticket } from '../../db/store/ticket.ts';
import type { Granted, LeaseAsk } from '../../db/store/turn.ts';
import { anyWaiting } from '../../db/store/waiting.ts';
import { DAY_POLICY_HASH } from './fill.ts';
import type { Work } from './trace.ts';
import type { World } from './world.ts';

/** A lease as a runner holds it. */
export interface Held {
  readonly id: string;
  readonly token: string;
  readonly grant: number;
  readonly ticket: string;
  /** Whose turn it is, and what the Action calls it; of a lean lease known once it is begun. */
  provider: string;
  reviewer: string;
  session: string;
  readonly blobs: TicketResult['blobs'];
}

/** What asking brings. */
export interface Brought {
  readonly held: readonly Held[];
  readonly done: boolean;
}

/** The ways a runner has. */
export interface Arrows {
  lease(by: Login, max: number): Promise<Brought>;
  /** Before anything is spent; false: it may not start. */
  begin(by: Login, held: Held): Promise<boolean>;
  /** Ends it, and brings as many new ones; throws `Refusal`. */
  end(by: Login, held: Held, end: TicketResult['end'], ms: number, next: number): Promise<Brought | null>;
}

/** How long a provider that is over its quota asks to be left alone. */
const RETRY_AFTER_MS = 30_000;

/** The arrows as the edge calls them. */
export function wholeArrows(world: World): Arrows {
  const { deps } = world;
  const heldOf = ({ id, token, grant, ticket, session }: GivenLease): Held => ({
    id,
    token,
    grant,
    ticket: ticket.id,
    provider: ticket.reviewers[0]?.uses ?? '',
    reviewer: ticket.reviewers[0]?.name ?? '',
    session: session ?? `${id}.1`,
    blobs: ticket.blob,
  });
  const claimOf = (by: Login, { id, token, grant }: Held) => ({ login: by, lease: id, token, grant });
  return {
    async lease(by, max) {
      const { leases, done } = await lease(deps, { login: by, max, request: null, again: false });
      return { held: leases.map(heldOf), done };
    },
    async begin(by, held) {
      if (held.provider === 'command') return true;
      const outcome = await admit(deps, claimOf(by, held), {
        reviewer: held.reviewer,
        purpose: 'review',
        promptTokens: 2_000,
      });
      if (outcome.outcome === 'admitted') held.session = outcome.session;
      return outcome.outcome === 'admitted';
    },
    async end(by, held, end, ms, next) {
      const ask = next === 0 ? null : { max: next, request: null, again: false };
      const done = await acceptResult(deps, claimOf(by, held), resultOf(held, end, ms), ask);
      return done.next === null ? null : { held: done.next.leases.map(heldOf), done: done.next.done };
    },
  };
}

/** The queue alone. */
export function leanArrows(world: World): Arrows {
  const { deps } = world;
  const { db } = deps.database;
  const askOf = (by: Login, max: number): { ask: LeaseAsk; tokens: Map<string, string> } => {
    const tokens = new Map<string, string>();
    const names = Array.from({ length: max }, () => {
      const [id, token] = [deps.ids.next(), deps.ids.secret()];
      tokens.set(id, token);
      return { id, tokenHash: secretHash(token), sessionId: deps.ids.next() };
    });
    return { ask: { runnerId: by.runnerId, request: null, names, kinds: ['review'] }, tokens };
  };
  const heldOf = (granted: readonly Granted[], tokens: Map<string, string>): Held[] =>
    granted.map((one) => ({
      id: one.leaseId,
      token: tokens.get(one.leaseId) as string,
      grant: one.grant,
      ticket: one.ticketId,
      provider: '',
      reviewer: '',
      session: one.sessionId ?? `${one.leaseId}.1`,
      blobs: { base: null, head: null },
    }));
  const placeOf = (by: Login) => ({
    installationId: by.identity.installation as string,
    repositoryId: by.identity.repository as string,
  });
  return {
    async lease(by, max) {
      const { ask, tokens } = askOf(by, max);
      const { granted } = await takeTurn<never>(deps, placeOf(by), { of: null, ask });
      if (granted.length > 0) return { held: heldOf(granted, tokens), done: false };
      await touchRunner(db, by.runnerId);
      return { held: [], done: !(await anyWaiting(db, placeOf(by).repositoryId)) };
    },
    async begin(_, held) {
      const followed = world.followed(held.ticket);
      const { provider } = followed.arrival.files[followed.index] as Work;
      // admission is looked at only where an end may count against a provider, and pointed only where one was out
      if (!world.isTroubled(followed.arrival.tenant)) {
        held.provider = provider;
        return true;
      }
      const { rows } = await deps.database.pool.query<{ provider: string }>({
        name: 'day-begin',
        text: 'update lease set admitted = true where id = $1 returning provider',
        values: [held.id],
      });
      held.provider = rows[0]?.provider ?? provider;
      return true;
    },
    async end(by, held, end, ms, next) {
      const asked = next === 0 ? null : askOf(by, next);
      const { arrival, index } = world.followed(held.ticket);
      const plainLease = (of: Login, { id, grant, provider }: Held) =>
        ({ ...placeOf(of), id, grant, provider, admitted: true }) as unknown as Lease;
      const plainTicket = (id: string) =>
        ({
          ...arrival.files[index],
          id,
          key: id,
          path: Buffer.from(`src/file-${index}.ts`),
          blockId: 'changes',
          round: 0,
          level: 'L1',
          policyHash: DAY_POLICY_HASH,
          losses: 0,
          timeouts: 0,
          transients: 0,
          suspect: false,
        }) as unknown as Ticket;
      const proof = {
        id: held.id,
        runnerId: by.runnerId,
        tokenHash: secretHash(held.token),
        grant: held.grant,
      };
      const { value, granted } = await takeTurn(deps, placeOf(by), {
        of: {
          runId: world.runOf(held.ticket),
          leaseId: held.id,
          work: async (unit) => {
            // one that never came to harm is as it was queued: what the row says needs no reading
            const plain = end === 'reviewed' && !world.isTroubled(arrival.tenant);
            const [mine, ticket] = plain
              ? [plainLease(by, held), plainTicket(held.ticket)]
              : [await lockLease(unit.tx, proof), await findTicket(unit.tx, held.ticket)];
            if (mine === null || ticket === null) return { value: 'refused', end: null, serves: true };
            const { settlement } = await writeEnd(unit, {
              lease: mine,
              ticket,
              runner: null,
              actor: { kind: 'runner', id: by.runnerId, via: 'oidc' },
              cause: { kind: 'lease', id: mine.id, sha256: null },
              leaseState: 'ended',
              end,
              verdict: end === 'reviewed' ? 'approve' : null,
              partial: false,
              detail: null,
              retryAfterMs: end === 'rate_limited' ? RETRY_AFTER_MS : null,
              alone: false,
              sessions: [],
              findings: [],
              brief: null,
              result: null,
              ms,
            });
            return { value: 'ended', end: { ...settlement, leaseId: mine.id }, serves: true };
          },
        },
        ask: asked?.ask ?? null,
      });
      if (value === 'refused') throw new Refusal('expired', 'this lease does not hold');
      if (asked === null) return null;
      if (granted.length > 0) return { held: heldOf(granted, asked.tokens), done: false };
      await touchRunner(db, by.runnerId);
      return { held: [], done: !(await anyWaiting(db, placeOf(by).repositoryId)) };
    },
  };
}

function resultOf(held: Held, end: TicketResult['end'], ms: number): TicketResult {
  const reviewed = end === 'reviewed';
  return {
    end,
    detail: null,
    retry_after_ms: end === 'rate_limited' ? RETRY_AFTER_MS : null,
    blobs: held.blobs,
    verdict: reviewed ? 'approve' : null,
    partial: false,
    sessions: [
      {
        id: held.session,
        reviewer: held.reviewer,
        provider: held.provider as 'openai',
        model: null,
        end: reviewed ? 'complete' : end === 'timeout' ? 'timeout' : 'failed',
        detail: null,
        exit: null,
        tokens_in: 1_000,
        tokens_out: 100,
        cost_micro: 0,
        ms,
      },
    ],
    findings: [],
    unplaced: [],
    brief_sha256: null,
    ms,
  };
}
