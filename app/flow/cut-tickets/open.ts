/** New tickets of a run, with all that a runner is told of them (TKT-1, RUN-8), and the ends of those that nobody can review. */
import type { StoredBlock } from '../../../db/store/block.ts';
import type { StoredFile } from '../../../db/store/file.ts';
import { ensureProviders } from '../../../db/store/provider.ts';
import { settingsOf } from '../../../db/store/setting.ts';
import { type NewTicket, putTickets } from '../../../db/store/ticket.ts';
import { turnOf, type WantedReview } from '../../domain/cut.ts';
import { LIMITS } from '../../domain/limits.ts';
import { nearestOf } from '../../domain/near.ts';
import { encodePath, type WirePath } from '../../domain/path.ts';
import type { Policy } from '../../domain/policy.ts';
import { COMMAND } from '../../domain/provider.ts';
import type { TicketReviewer } from '../../domain/review.ts';
import { routeFile } from '../../domain/routing.ts';
import { slotsOf } from '../../domain/setting/key.ts';
import { ticketId } from '../../domain/ticket.ts';
import { reviewersOf } from '../../domain/ticket-spec.ts';
import { PROMPT_VERSION } from '../../protocol/runner.ts';
import type { RunUnit } from '../append-rows.ts';
import type { Deps } from '../deps.ts';
import { endUnread } from '../end-unread.ts';

/** The policy a run's tickets are cut with, and the blobs of what its reviewers are configured by. */
export interface Snapshot {
  readonly hash: string;
  readonly policy: Policy | null;
  readonly config: ReadonlyMap<string, string | null>;
}

/** A changed path that wants a review, as stored. */
export interface Wanted extends WantedReview {
  readonly file: StoredFile;
  readonly level: 'L1' | 'L2' | 'L3';
}

/** Adds tickets and ends at once those that nobody can review (TKT-5, RUN-8). */
export async function openTickets(
  deps: Deps,
  unit: RunUnit,
  snapshot: Snapshot,
  blocks: readonly StoredBlock[],
  files: readonly StoredFile[],
  items: readonly { readonly wanted: Wanted; readonly round: number; readonly held: boolean }[],
): Promise<void> {
  const { tx, run } = unit;
  const block = new Map(blocks.map((one) => [one.id, one]));
  const nth = new Map<string, number>();
  const nearOf = neighbours(files);
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
        clauses: clausesOf(block.get(wanted.block)),
        near: wanted.level === 'L1' ? [] : nearOf(wanted.file),
        max_lines: snapshot.policy?.review.max_lines ?? 1,
        timeout_ms: 'end' in routed ? 0 : routed.timeoutMs,
        prompt_version: PROMPT_VERSION,
      },
    };
    tickets.push(ticket);
    if ('end' in routed) failed.push({ ticket, ...routed });
  }
  const providers = [...new Set(tickets.flatMap((one) => one.providers))];
  const settings = await settingsOf(tx, run.installationId);
  await ensureProviders(tx, run.installationId, providers, (name) => slotsOf(settings, name));
  await putTickets(tx, tickets);
  for (const { ticket, end, detail } of failed) {
    await endUnread(deps, unit, ticket, { end, detail, by: 'cut-tickets' });
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

/** The clauses that the review key was made of (TKT-1), as the block's rows name them. */
function clausesOf(block: StoredBlock | undefined): string[] {
  const accept = block?.detail['accept'];
  return Array.isArray(accept) ? accept.filter((one) => typeof one === 'string') : [];
}

/** The nearest files of the block of each; what is gone from the head has no hunks to show. */
function neighbours(files: readonly StoredFile[]): (file: StoredFile) => WirePath[] {
  const byBlock = new Map<string, WirePath[]>();
  for (const file of files) {
    if (file.blobHead === null) continue;
    const list = byBlock.get(file.blockId);
    if (list === undefined) byBlock.set(file.blockId, [encodePath(file.path)]);
    else list.push(encodePath(file.path));
  }
  const nearest = new Map<string, ReturnType<typeof nearestOf>>();
  return ({ blockId, path }) => {
    const paths = byBlock.get(blockId) ?? [];
    const of = nearest.get(blockId) ?? nearestOf(paths, LIMITS.nearFiles.default);
    nearest.set(blockId, of);
    return of(encodePath(path));
  };
}

function briefOf(id: string, block: StoredBlock | undefined): { id: string; title: string; brief: string } {
  const brief = block?.detail['brief'];
  return {
    id,
    title: (block?.title ?? id).slice(0, 1000),
    brief: (typeof brief === 'string' ? brief : '').slice(0, 20_000),
  };
}
