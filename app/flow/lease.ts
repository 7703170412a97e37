/**
 * Leases tickets to a runner (LSE-1) and tells it all a ticket needs (RUN-8, RND-1).
 *
 * Reads: ticket, policy, repository, findings and their texts. Writes: lease, ticket, slot; an end
 * where a ticket cannot be told (`bad_ticket`, `config-snapshot`). Calls: nothing.
 * May fail with: `expired` when the login ended meanwhile.
 */

import { listOpenFindings } from '../../db/store/finding.ts';
import { findRepository, type Repository } from '../../db/store/installation.ts';
import { findLease, type Granted, takeLeases } from '../../db/store/lease.ts';
import { loadPolicy } from '../../db/store/policy.ts';
import { type Login, touchRunner } from '../../db/store/runner.ts';
import { readTexts } from '../../db/store/text.ts';
import { findTicket, type Ticket } from '../../db/store/ticket.ts';
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
import { secretHash } from './login.ts';

/** A lease with its secret, told once. */
export interface GivenLease {
  readonly id: string;
  readonly token: string;
  readonly grant: number;
  readonly expiresAt: Date;
  readonly session: string | null;
  readonly ticket: LeasedTicket;
}
/** What a lease request got; `done`: nothing of this repository is left to wait for. */
export interface LeaseOutcome {
  readonly leases: readonly GivenLease[];
  readonly done: boolean;
}

/** Leases up to `max` tickets now; it never waits. */
export async function lease(
  deps: Deps,
  input: { readonly login: Login; readonly max: number },
): Promise<LeaseOutcome> {
  const { identity, runnerId } = input.login;
  const max = Math.min(Math.max(1, input.max), LIMITS.leaseBatch.max);
  const secrets = Array.from({ length: max }, () => ({ id: deps.ids.next(), token: deps.ids.secret() }));
  const granted = await takeLeases(deps.database.db, {
    runnerId,
    installationId: identity.installation,
    repositoryId: identity.repository,
    runId: null,
    ids: secrets.map((one) => one.id),
    tokenHashes: secrets.map((one) => secretHash(one.token)),
    sessionIds: secrets.map(() => deps.ids.next()),
    ttlMs: LIMITS.leaseMs.default,
  });
  if (granted.length === 0) {
    await touchRunner(deps.database.db, runnerId);
    return { leases: [], done: !(await anyWaiting(deps.database.db, identity.repository)) };
  }
  const repository = await findRepository(deps.database.db, identity.repository);
  const leases: GivenLease[] = [];
  for (const one of granted) {
    const ticket = await findTicket(deps.database.db, one.ticketId);
    if (ticket === null || repository === null) continue;
    const fault = await faultOf(deps, ticket);
    if (fault !== null) {
      await refuseTicket(deps, one, fault);
      continue;
    }
    const token = secrets.find((secret) => secret.id === one.leaseId)?.token;
    if (token === undefined) continue;
    leases.push({
      id: one.leaseId,
      token,
      grant: one.grant,
      expiresAt: one.expiresAt,
      session: one.sessionId,
      ticket: await tell(deps, repository, ticket),
    });
  }
  deps.log.info({ runner: runnerId, repository: identity.repository, leases: leases.length }, 'lease');
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

async function tell(deps: Deps, repository: Repository, ticket: Ticket): Promise<LeasedTicket> {
  const { spec } = ticket;
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
    open.flatMap((one) => [one.title, one.body, one.quote]),
  );
  return open.map((one) => ({
    finding: one.number,
    fingerprint: one.fingerprint,
    severity: one.severity,
    title: (texts.get(one.title) ?? '').slice(0, 500),
    body: (texts.get(one.body) ?? '').slice(0, 4000),
    start_line: one.startLine,
    answer: null,
    quote: (texts.get(one.quote) ?? '').slice(0, 4000),
  }));
}
