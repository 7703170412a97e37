/**
 * What waits, is leased, was dispatched and is out of service, in the repositories that a visitor may
 * write to (OPS-8).
 *
 * Reads: tickets, leases, runners, dispatches, pools, providers, repositories. Writes: nothing. Calls:
 * GitHub's permissions. May fail with: what Postgres does.
 */
import { listBusyRepositories } from '../../db/store/browse.ts';
import type { Repository } from '../../db/store/installation.ts';
import {
  countQueue,
  type DispatchLine,
  type LeaseLine,
  listLiveDispatches,
  listLiveLeases,
  listPools,
  listProviderSlots,
  listResidents,
  type QueueLine,
  type ResidentLine,
  type ServiceLine,
} from '../../db/store/queue.ts';
import { LIMITS } from '../domain/limits.ts';
import { plain } from '../domain/neutralise.ts';
import { encodePath, showPath } from '../domain/path.ts';
import { Fault, Refusal } from '../errors.ts';
import type { Deps } from './deps.ts';
import { reaches, readRight } from './read-right.ts';
import type { Visitor } from './read-visit.ts';

/** The queue of one repository. */
export interface RepositoryQueue {
  readonly repository: string;
  /** Its address on GitHub. */
  readonly address: string;
  readonly lines: readonly QueueLine[];
  readonly leases: readonly (Omit<LeaseLine, 'path'> & { readonly path: string })[];
  readonly dispatches: readonly DispatchLine[];
  readonly pools: readonly ServiceLine[];
  /** Resident pools that its policy names. */
  readonly residents: readonly ResidentLine[];
}

/** What a visitor sees of the queue. */
export interface QueueView {
  /** Of repositories the visitor may write to, those with something in them first. */
  readonly repositories: readonly RepositoryQueue[];
  /** Providers of the installations of those repositories, by account. */
  readonly providers: readonly (ServiceLine & { readonly account: string })[];
  /** Whether there may be more than is shown. */
  readonly cut: boolean;
  readonly unanswered: boolean;
  readonly now: Date;
}

const MOST_REPOSITORIES = 40;
const MOST_LINES = 200;

/** The queue, for the visitor. */
export async function readQueue(deps: Deps, visitor: Visitor): Promise<QueueView> {
  const { db } = deps.database;
  const busy = await listBusyRepositories(db, visitor.installations, MOST_REPOSITORIES);
  let unanswered = false;
  const mine = (
    await Promise.all(
      busy.map(async (repository) => {
        try {
          return reaches(await readRight(deps, visitor, repository), 'write') ? [repository] : [];
        } catch (error) {
          const waits = error instanceof Refusal && error.code === 'rate_limited';
          if (!waits && !(error instanceof Fault)) throw error;
          unanswered = true;
          return [];
        }
      }),
    )
  ).flat();
  const ids = mine.map((repository) => repository.id);
  const [lines, leases, dispatches, pools, residents, providers] = await Promise.all([
    countQueue(db, ids),
    listLiveLeases(db, ids, MOST_LINES),
    listLiveDispatches(db, ids, MOST_LINES),
    listPools(db, ids),
    listResidents(db, ids, LIMITS.runnerFreshMs.default),
    listProviderSlots(db, [...new Set(mine.map((repository) => repository.installationId))]),
  ]);
  const accounts = new Map(mine.map((repository) => [repository.installationId, repository.owner]));
  return {
    repositories: mine.map((repository) => ({
      repository: nameOf(repository),
      address: `${deps.settings.serverUrl}/${nameOf(repository)}`,
      lines: lines.filter((line) => line.repositoryId === repository.id),
      leases: leases
        .filter((line) => line.repositoryId === repository.id)
        .map((line) => ({ ...line, path: plain(showPath(encodePath(line.path))) })),
      dispatches: dispatches.filter((line) => line.repositoryId === repository.id),
      pools: pools.filter((line) => line.of === repository.id),
      residents: residents.filter((line) => line.repositoryId === repository.id),
    })),
    providers: providers.map((line) => ({ ...line, account: accounts.get(line.of) ?? '' })),
    cut:
      busy.length === MOST_REPOSITORIES || leases.length === MOST_LINES || dispatches.length === MOST_LINES,
    unanswered,
    now: visitor.now,
  };
}

function nameOf(repository: Repository): string {
  return `${repository.owner}/${repository.name}`;
}
