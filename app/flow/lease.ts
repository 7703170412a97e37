/**
 * Leases tickets to a runner (LSE-1) and tells it all a ticket needs (RUN-8, RND-1).
 *
 * Reads: ticket, policy, repository, pool, findings and their texts. Writes: lease, ticket, slot; an end
 * where a ticket cannot be told (`bad_ticket`, `config-snapshot`). Calls: GitHub, for a resident runner: a
 * token that reads the one repository, before anything of it is leased.
 * May fail with: `expired` when the login ended meanwhile.
 */

import { listOpenFindings } from '../../db/store/finding.ts';
import { findRepository, type Repository } from '../../db/store/installation.ts';
import { findLease } from '../../db/store/lease.ts';
import { loadPolicy } from '../../db/store/policy.ts';
import { type Login, touchRunner } from '../../db/store/runner.ts';
import { readTexts } from '../../db/store/text.ts';
import { findTicket, type Ticket } from '../../db/store/ticket.ts';
import type { Granted, LeaseAsk } from '../../db/store/turn.ts';
import { anyWaiting } from '../../db/store/waiting.ts';
import { LIMITS } from '../domain/limits.ts';
import { encodePath } from '../domain/path.ts';
import type { EarlierFinding } from '../domain/review.ts';
import { ticketId } from '../domain/ticket.ts';
import { pointedAt } from '../domain/ticket-spec.ts';
import type { LeasedTicket } from '../protocol/runner.ts';
import { withRun } from './append-rows.ts';
import { cloneUrl } from './clone-url.ts';
import type { Deps } from './deps.ts';
import { endLease } from './end-lease.ts';
import { takeBackUnheard } from './give-back.ts';
import { leaseOfPool } from './lease/pool.ts';
import { secretHash } from './login.ts';
import { takeTurn } from './take-turn.ts';
import { wishSlots } from './wish-slots.ts';

/** A lease with its secret, told once. */
export interface GivenLease {
  readonly id: string;
  readonly token: string;
  readonly grant: number;
  readonly expiresAt: Date;
  readonly session: string | null;
  readonly ticket: LeasedTicket;
  /** A token that reads the ticket's repository and nothing else (AUT-4); null where the runner has its own. */
  readonly access: string | null;
}
/** What a lease request got; `done`: nothing of this repository is left to wait for. */
export interface LeaseOutcome {
  readonly leases: readonly GivenLease[];
  readonly done: boolean;
}

/** What a runner asks for. */
export interface LeaseRequest {
  readonly max: number;
  /** Its own name of this request; null from a runner that gives none. */
  readonly request: string | null;
  /** It was sent before and the answer was lost: what that one got goes back, without a lost grant. */
  readonly again: boolean;
}

/** An ask with the secrets of what it may bring. */
export interface Asked {
  readonly ask: LeaseAsk;
  readonly tokens: ReadonlyMap<string, string>;
}

/** What a runner gets of a repository that cannot work yet: it ends, and another one is started once it can (RUN-9). */
export const NOTHING: LeaseOutcome = { leases: [], done: true };

/** Leases up to `max` tickets now; it never waits. */
export async function lease(
  deps: Deps,
  input: LeaseRequest & { readonly login: Login },
): Promise<LeaseOutcome> {
  if (input.login.held === true) return NOTHING;
  const { installation, repository } = input.login.identity;
  if (installation === null || repository === null) return leaseOfPool(deps, input.login, input);
  const asked = await askFor(deps, input.login, input);
  const place = { installationId: installation, repositoryId: repository };
  const { granted } = await takeTurn<never>(deps, place, { of: null, ask: asked.ask });
  return tellLeases(deps, input.login, asked, granted, { repositoryId: repository, access: null });
}

/** Names and secrets for what a runner asks for; what an unheard answer had granted is given back first. */
export async function askFor(deps: Deps, login: Login, request: LeaseRequest): Promise<Asked> {
  if (request.again && request.request !== null) await takeBackUnheard(deps, login, request.request);
  const max = Math.min(Math.max(1, request.max), LIMITS.leaseBatch.max);
  const tokens = new Map<string, string>();
  const names = Array.from({ length: max }, () => {
    const id = deps.ids.next();
    const token = deps.ids.secret();
    tokens.set(id, token);
    return { id, tokenHash: secretHash(token), sessionId: deps.ids.next() };
  });
  const kinds = login.identity.serves ?? ['review'];
  return { ask: { runnerId: login.runnerId, request: request.request, names, kinds }, tokens };
}

/** Tells a runner all that its granted tickets need; one that cannot be told ends here. */
export async function tellLeases(
  deps: Deps,
  login: Login,
  { ask, tokens }: Asked,
  granted: readonly Granted[],
  { repositoryId, access }: { readonly repositoryId: string; readonly access: string | null },
): Promise<LeaseOutcome> {
  const { runnerId } = login;
  if (granted.length === 0) {
    await touchRunner(deps.database.db, runnerId);
    const { installation } = login.identity;
    if (installation !== null)
      await wishSlots(deps, repositoryId, async () => [{ installationId: installation, repositoryId }]);
    // a resident runner has other places to look at
    const done = login.identity.repository !== null && !(await anyWaiting(deps.database.db, repositoryId));
    return { leases: [], done };
  }
  const repository = await findRepository(deps.database.db, repositoryId);
  const leases: GivenLease[] = [];
  for (const one of granted) {
    const ticket = await findTicket(deps.database.db, one.ticketId);
    if (ticket === null || repository === null) continue;
    const fault = await faultOf(deps, ticket);
    if (fault !== null) {
      await refuseTicket(deps, one, fault);
      continue;
    }
    const token = tokens.get(one.leaseId);
    if (token === undefined) continue;
    leases.push({
      id: one.leaseId,
      token,
      grant: one.grant,
      expiresAt: one.expiresAt,
      session: one.sessionId,
      // a runner that names its requests speaks 1.1; an older one takes no key it does not know
      ticket: await tell(deps, repository, ticket, ask.request !== null),
      access,
    });
  }
  deps.log.info({ runner: runnerId, repository: repositoryId, leases: leases.length }, 'lease');
  return { leases, done: false };
}

/** TKT-1: an id that is not that of its content; RUN-8: a snapshot that is missing or damaged, read twice. */
async function faultOf(deps: Deps, ticket: Ticket): Promise<'bad_ticket' | 'config-snapshot' | null> {
  const { runId: run, blockId: block, key, round } = ticket;
  if (ticketId({ run, block, key, round }) !== ticket.id) return 'bad_ticket';
  const bytes =
    (await loadPolicy(deps.database.db, ticket.policyHash)) ??
    (await loadPolicy(deps.database.db, ticket.policyHash));
  return bytes === null ? 'config-snapshot' : null;
}

async function refuseTicket(
  deps: Deps,
  granted: Granted,
  end: 'bad_ticket' | 'config-snapshot',
): Promise<void> {
  const found = await findLease(deps.database.db, granted.leaseId);
  if (found === null) return;
  await withRun(deps, found.runId, async (unit) => {
    const ticket = await findTicket(unit.tx, granted.ticketId);
    if (ticket === null || ticket.leaseId !== granted.leaseId) return;
    await endLease(unit, {
      lease: found,
      ticket,
      runner: null,
      actor: { kind: 'app', id: deps.github.appId, via: 'schedule' },
      cause: { kind: 'lease', id: found.id, sha256: null },
      leaseState: 'ended',
      end,
      verdict: null,
      partial: false,
      detail: null,
      retryAfterMs: null,
      alone: false,
      sessions: [],
      findings: [],
      brief: null,
      result: null,
      ms: 0,
    });
  });
}

async function tell(
  deps: Deps,
  repository: Repository,
  ticket: Ticket,
  salted: boolean,
): Promise<LeasedTicket> {
  const { spec } = ticket;
  const keys = deps.signer.redactionKeys(ticket.installationId, ticket.repositoryId);
  return {
    ...spec,
    id: ticket.id,
    key: ticket.key,
    round: ticket.round,
    run: ticket.runId,
    repository: {
      id: repository.id,
      owner: repository.owner,
      name: repository.name,
      clone_url: cloneUrl(deps.settings, repository),
    },
    path: encodePath(ticket.path),
    from: ticket.fromPath === null ? null : encodePath(ticket.fromPath),
    level: ticket.level,
    reviewers: pointedAt(spec, ticket.provider),
    policy: ticket.policyHash,
    nonce: deps.ids.secret(),
    ...(salted ? { redaction_salt: keys.salt } : {}),
    earlier: await earlierOf(deps, ticket),
  };
}

async function earlierOf(deps: Deps, ticket: Ticket): Promise<EarlierFinding[]> {
  const open = (await listOpenFindings(deps.database.db, ticket.runId, encodePath(ticket.path))).slice(
    0,
    100,
  );
  const texts = await readTexts(
    deps.database.db,
    open.flatMap((one) => [one.title, one.body, one.quote, ...(one.answer === null ? [] : [one.answer])]),
  );
  return open.map((one) => ({
    finding: one.number,
    fingerprint: one.fingerprint,
    severity: one.severity,
    title: (texts.get(one.title) ?? '').slice(0, 500),
    body: (texts.get(one.body) ?? '').slice(0, 4000),
    start_line: one.startLine,
    answer: one.answer === null ? null : (texts.get(one.answer) ?? '').slice(0, 4000),
    quote: (texts.get(one.quote) ?? '').slice(0, 4000),
  }));
}
