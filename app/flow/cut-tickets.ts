/**
 * From the changed paths of a run's present head to tickets (TKT-1…TKT-3, TKT-5, POOL-3).
 *
 * Reads: run, its files, blocks and findings, policy, tickets, providers; config blobs by git, outside the transaction.
 * Writes: ticket, lease (recalls), provider, slot, `provider_down`; rows `ticket.ended` where nobody can review.
 * Calls: git, only where a reviewer names config files. Queues: dispatch, decide-gate.
 * May fail with: `run_missing`, `git_unavailable` (retryable).
 */

import { listBlocks, type StoredBlock } from '../../db/store/block.ts';
import { listFiles, type StoredFile } from '../../db/store/file.ts';
import { listOpenFindings, type StoredFinding } from '../../db/store/finding.ts';
import { findRepository } from '../../db/store/installation.ts';
import { listActiveLeaseStates, recallLease } from '../../db/store/lease.ts';
import { loadPolicy } from '../../db/store/policy.ts';
import { ensureProviders } from '../../db/store/provider.ts';
import { findRun, type Run } from '../../db/store/run.ts';
import {
  dropTickets,
  endUnleased,
  listActiveTickets,
  listOverTickets,
  type NewTicket,
  putTickets,
} from '../../db/store/ticket.ts';
import { type KnownTicket, planCut, type Rerun, turnOf, type WantedReview } from '../domain/cut.ts';
import { LIMITS } from '../domain/limits.ts';
import { encodePath, pathKey } from '../domain/path.ts';
import { type Policy, parsePolicy } from '../domain/policy.ts';
import { COMMAND } from '../domain/provider.ts';
import type { TicketReviewer } from '../domain/review.ts';
import { routeFile } from '../domain/routing.ts';
import { ticketId } from '../domain/ticket.ts';
import { configPaths, reviewersOf } from '../domain/ticket-spec.ts';
import { Fault } from '../errors.ts';
import { PROMPT_VERSION } from '../protocol/runner.ts';
import { type RunUnit, withRun } from './append-rows.ts';
import { cloneUrl } from './clone-url.ts';
import type { Deps } from './deps.ts';
import { pointTicketsOf } from './point-tickets.ts';

/** What a run's tickets are cut for; `rerun` opens the next round of what is over. */
export interface CutInput {
  readonly run: string;
  readonly rerun?: Rerun;
}
/** What came of it. */
export interface CutOutcome {
  readonly kind: 'cut' | 'waits' | 'no_policy';
  readonly opened: number;
  readonly dropped: number;
}

interface Snapshot {
  readonly hash: string;
  readonly policy: Policy | null;
  readonly config: ReadonlyMap<string, string | null>;
}

interface Wanted extends WantedReview {
  readonly file: StoredFile;
  readonly level: 'L1' | 'L2' | 'L3';
}

const ATTEMPTS = 3;

/** Cuts the tickets of a run; running it again changes nothing unless something else changed. */
export async function cutTickets(deps: Deps, input: CutInput): Promise<CutOutcome> {
  for (let n = 1; ; n++) {
    const run = await findRun(deps.database.db, input.run);
    if (run === null) throw new Fault('run_missing', `there is no run ${input.run}`);
    if (run.policyHash === null) return { kind: 'no_policy', opened: 0, dropped: 0 };
    const snapshot = await readSnapshot(deps, run, run.policyHash);
    const outcome = await withRun(deps, input.run, (unit) => cut(deps, unit, snapshot, input.rerun ?? null));
    if (outcome !== 'moved') {
      deps.log.info({ run: input.run, ...outcome }, 'cut-tickets');
      return outcome;
    }
    // the policy changed between reading it and locking the run: once more under the new one
    if (n >= ATTEMPTS) throw new Fault('git_unavailable', 'the policy keeps changing', { retryable: true });
  }
}

async function readSnapshot(deps: Deps, run: Run, hash: string): Promise<Snapshot> {
  // one re-read: a missing or damaged snapshot is no other policy (RUN-8)
  const bytes = (await loadPolicy(deps.database.db, hash)) ?? (await loadPolicy(deps.database.db, hash));
  const reading = bytes === null ? null : parsePolicy(bytes);
  if (reading === null || !reading.ok) return { hash, policy: null, config: new Map() };
  const config = new Map<string, string | null>();
  const paths = configPaths(reading.policy);
  if (paths.length > 0 && run.base !== null) {
    const repository = await findRepository(deps.database.db, run.repositoryId);
    if (repository === null) throw new Fault('run_missing', 'the repository of the run is not known');
    const github = await deps.github.installation(run.installationId);
    const token = await github.readToken(repository);
    const url = cloneUrl(deps.settings, repository);
    const entries = await deps.git.readEntries(repository, url, token, run.base, paths);
    for (const path of paths) config.set(path, entries.get(pathKey(path))?.oid ?? null);
  }
  return { hash, policy: reading.policy, config };
}

async function cut(
  deps: Deps,
  unit: RunUnit,
  snapshot: Snapshot,
  rerun: Rerun | null,
): Promise<CutOutcome | 'moved'> {
  const { tx, run } = unit;
  if (run.policyHash !== snapshot.hash) return 'moved';
  const spends = run.status === 'open' && run.allowedRule !== null && run.head !== null;
  const asleep = run.draft && snapshot.policy?.review.drafts === 'off';
  if (!spends) return { kind: 'waits', opened: 0, dropped: 0 };
  const files = await listFiles(tx, run.id);
  const blocks = await listBlocks(tx, run.id);
  const wanted = asleep ? [] : wantedOf(files, await listOpenFindings(tx, run.id));
  const active = await listActiveTickets(tx, run.id);
  const leases = await listActiveLeaseStates(tx, run.id);
  const keys = [...new Set(wanted.map((one) => one.key))];
  const known: KnownTicket[] = [...active, ...(await listOverTickets(tx, run.id, keys))].map((ticket) => ({
    id: ticket.id,
    path: pathKey(encodePath(ticket.path)),
    block: ticket.blockId,
    key: ticket.key,
    round: ticket.round,
    state: ticket.state,
    end: ticket.verdict === 'cannot_review' ? 'cannot_review' : ticket.end,
    // only a lease without a session is recalled; the others are left to end (TKT-3)
    lease: ticket.leaseId !== null && leases.get(ticket.leaseId) === false ? ticket.leaseId : null,
    seq: ticket.seq,
  }));
  const plan = planCut(wanted, known, rerun);
  for (const state of ['superseded', 'cancelled'] as const) {
    for (const reason of ['new_content', 'left_the_change']) {
      const ids = plan.drop
        .filter((one) => one.state === state && one.reason === reason)
        .map((one) => one.id);
      await dropTickets(tx, ids, state, reason);
    }
  }
  for (const lease of plan.recall) await recallLease(tx, lease);
  await open(deps, unit, snapshot, blocks, plan.open);
  const waiting = await pointTicketsOf(unit, snapshot.policy);
  if (waiting > 0)
    unit.enqueue('dispatch', { repository: run.repositoryId }, { key: `dispatch:${run.repositoryId}` });
  if (plan.open.length > 0 || plan.drop.length > 0)
    unit.enqueue('decide-gate', { run: run.id }, { key: `decide-gate:${run.id}` });
  return { kind: 'cut', opened: plan.open.length, dropped: plan.drop.length };
}

function wantedOf(files: readonly StoredFile[], findings: readonly StoredFinding[]): Wanted[] {
  const found = new Map<string, StoredFinding[]>();
  for (const one of findings) {
    const path = pathKey(one.path);
    found.set(path, [...(found.get(path) ?? []), one]);
  }
  const foreignSeq = (path: string, key: string) => {
    const foreign = (found.get(path) ?? []).filter((one) => one.key !== key).map((one) => one.seq);
    return foreign.length === 0 ? null : Math.max(...foreign);
  };
  return files.flatMap((file) =>
    file.level === 'L0' || file.key === null
      ? []
      : [
          {
            path: pathKey(encodePath(file.path)),
            block: file.blockId,
            key: file.key,
            foreignSeq: foreignSeq(pathKey(encodePath(file.path)), file.key),
            file,
            level: file.level,
          },
        ],
  );
}

async function open(
  deps: Deps,
  unit: RunUnit,
  snapshot: Snapshot,
  blocks: readonly StoredBlock[],
  items: readonly { readonly wanted: Wanted; readonly round: number; readonly held: boolean }[],
): Promise<void> {
  const { tx, run } = unit;
  const block = new Map(blocks.map((one) => [one.id, one]));
  const nth = new Map<string, number>();
  const tickets: NewTicket[] = [];
  const failed: { ticket: NewTicket; end: 'route_invalid' | 'config-snapshot'; detail: string }[] = [];
  for (const { wanted, round, held } of items) {
    const n = nth.get(wanted.block) ?? 0;
    nth.set(wanted.block, n + 1);
    const routed = route(snapshot.policy, wanted);
    const specs =
      snapshot.policy === null || 'end' in routed
        ? { reviewers: [] as TicketReviewer[], fallbacks: [] as TicketReviewer[], providers: [COMMAND] }
        : reviewersOf(snapshot.policy, routed.reviewers, snapshot.config);
    const ticket: NewTicket = {
      id: ticketId({ run: run.id, block: wanted.block, key: wanted.key, round }),
      runId: run.id,
      installationId: run.installationId,
      repositoryId: run.repositoryId,
      blockId: wanted.block,
      path: wanted.file.path,
      fromPath: wanted.file.fromPath,
      key: wanted.key,
      round,
      state: held ? 'held' : 'pending',
      level: wanted.level,
      policyHash: snapshot.hash,
      reviewers: specs.reviewers.map((one) => one.name),
      provider: specs.providers[0] ?? COMMAND,
      providers: specs.providers,
      parallel: snapshot.policy?.review.parallel ?? LIMITS.runParallel.default,
      turn: turnOf(n, block.get(wanted.block)?.position ?? 1023),
      spec: {
        kind: 'review',
        pull: run.pull,
        mode: { base: wanted.file.modeBase, head: wanted.file.modeHead },
        blob: { base: wanted.file.blobBase, head: wanted.file.blobHead },
        head: run.head ?? '',
        merge_base: run.mergeBase ?? '',
        block: briefOf(wanted.block, block.get(wanted.block)),
        reviewers: specs.reviewers,
        fallbacks: specs.fallbacks,
        lenses: [...(snapshot.policy?.review.lenses ?? [])],
        max_lines: snapshot.policy?.review.max_lines ?? 1,
        timeout_ms: 'end' in routed ? 0 : routed.timeoutMs,
        prompt_version: PROMPT_VERSION,
      },
    };
    tickets.push(ticket);
    if ('end' in routed) failed.push({ ticket, ...routed });
  }
  const providers = [...new Set(tickets.flatMap((one) => one.providers))];
  await ensureProviders(tx, run.installationId, providers, LIMITS.providerSlots.default);
  await putTickets(tx, tickets);
  for (const { ticket, end, detail } of failed) {
    const seq = unit.append('ticket.ended', {
      block: ticket.blockId,
      actor: { kind: 'app', id: deps.github.appId, via: 'schedule' },
      cause: { kind: 'schedule', id: 'cut-tickets', sha256: null },
      data: {
        ticket: ticket.id,
        key: ticket.key,
        path: encodePath(ticket.path),
        block: ticket.blockId,
        round: ticket.round,
        grant: 0,
        level: ticket.level,
        policy: ticket.policyHash,
        end,
        final: true,
        verdict: null,
        partial: false,
        detail: detail.slice(0, 200),
        runner: null,
        sessions: [],
        findings: [],
        brief: null,
        result: null,
        ms: 0,
      },
    });
    await endUnleased(tx, ticket.id, end, detail, seq);
  }
}

type Routed =
  | { readonly reviewers: readonly string[]; readonly timeoutMs: number }
  | { readonly end: 'route_invalid' | 'config-snapshot'; readonly detail: string };

function route(policy: Policy | null, wanted: Wanted): Routed {
  if (policy === null)
    return { end: 'config-snapshot', detail: 'the policy it was cut with is missing or damaged' };
  const { file } = wanted;
  const routing = routeFile(policy, {
    path: encodePath(file.path),
    from: file.fromPath === null ? null : encodePath(file.fromPath),
    kind: file.kind as Parameters<typeof routeFile>[1]['kind'],
    lines: file.lines,
    level: wanted.level,
    guarded: file.ownership === 'guarded',
    deleted: file.status === 'D',
  });
  if ('invalid' in routing) return { end: 'route_invalid', detail: routing.detail };
  if (routing.reviewers.length === 0) return { end: 'route_invalid', detail: 'nobody reads this path' };
  return routing;
}

function briefOf(id: string, block: StoredBlock | undefined): { id: string; title: string; brief: string } {
  const brief = block?.detail['brief'];
  return {
    id,
    title: (block?.title ?? id).slice(0, 1000),
    brief: (typeof brief === 'string' ? brief : '').slice(0, 20_000),
  };
}
