import type { Tx } from '../../../db/client.ts';
import {
  findEnrolment,
  findInstallation,
  findRepository,
  listEnrolments,
  type Repository,
  upsertInstallation,
  upsertRepository,
} from '../../../db/store/installation.ts';
import { addJob, addJobs } from '../../../db/store/job.ts';
import { productNow } from '../../../db/store/run.ts';
import type { EventRepository } from '../../domain/inbox-event.ts';
import { Fault } from '../../errors.ts';
import type { Deps } from '../deps.ts';
import { type EnrolOutcome, enrol } from '../enrol.ts';

/** How long a branch without a policy is taken to have none, where no push of it was seen. */
const ABSENT_MS = 10 * 60_000;

/**
 * Notes where a repository of a delivery is today, and that its installation is alive: the delivery
 * proves both. An older delivery may name an older address; the client asks by id before it writes.
 */
export async function notePlace(
  deps: Deps,
  installationId: string,
  told: EventRepository,
): Promise<Repository> {
  const { db } = deps.database;
  const known = await findRepository(db, told.id);
  const installation = await findInstallation(db, installationId);
  if (installation !== null && installation.status !== 'active')
    throw new Fault('installation_gone', `installation ${installationId} is ${installation.status}`);
  const place = {
    id: told.id,
    installationId,
    ownerId: told.ownerId,
    owner: told.owner,
    name: told.name,
    defaultBranch: told.defaultBranch,
    private: told.private,
  };
  const same =
    known !== null &&
    installation !== null &&
    known.status === 'active' &&
    Object.entries(place).every(([field, value]) => known[field as keyof Repository] === value);
  if (same) return known;
  return deps.database.transaction(async (tx) => {
    if (installation === null)
      await upsertInstallation(tx, { id: installationId, accountId: told.ownerId, accountLogin: told.owner });
    return keepPlace(tx, known, place);
  });
}

/**
 * Keeps where a repository is. With another default branch the workflow file is another one: the branches that
 * hold a policy are read again, and what was missing on the old one holds nobody up (RUN-9).
 */
export async function keepPlace(
  tx: Tx,
  before: Repository | null,
  place: Parameters<typeof upsertRepository>[1],
): Promise<Repository> {
  const kept = await upsertRepository(tx, place);
  if (before !== null && before.defaultBranch !== kept.defaultBranch)
    await addJobs(
      tx,
      (await listEnrolments(tx, kept.id))
        .filter((one) => one.state !== 'absent')
        .map(({ baseRef }) => ({
          task: 'enrol',
          payload: { repository: kept.id, baseRef },
          key: `enrol:${kept.id}:${baseRef}`,
        })),
    );
  return kept;
}

/** What is known of a base branch, and whether it was learnt just now. */
export interface KnownBranch extends EnrolOutcome {
  /** Other open pull requests of the repository may need a run: reconcile it, after this one has its own. */
  readonly news: boolean;
}

/** What is known of a base branch, read when it is not known (GAT-4). */
export async function knowBranch(deps: Deps, repository: Repository, baseRef: string): Promise<KnownBranch> {
  const { db } = deps.database;
  const known = await findEnrolment(db, repository.id, baseRef);
  if (known !== null) {
    const stale = known.state === 'absent' && (await isOlder(deps, known.checkedAt, ABSENT_MS));
    const required = known.error?.code === 'not_enrolled';
    if (!stale) return { enrolment: known, appeared: false, required, news: false };
  }
  const outcome = await enrol(deps, { repository: repository.id, baseRef });
  const enrolled = outcome.enrolment.state !== 'absent';
  return { ...outcome, news: outcome.appeared || (known === null && enrolled) };
}

/** Queues a comparison of a repository's open pull requests with its runs. */
export async function queueReconcile(deps: Deps, repositoryId: string): Promise<void> {
  await deps.database.transaction((tx) =>
    addJob(tx, 'reconcile', { repository: repositoryId }, { key: `reconcile:${repositoryId}`, priority: 20 }),
  );
}

async function isOlder(deps: Deps, moment: Date, ms: number): Promise<boolean> {
  return (await productNow(deps.database.db)).getTime() - moment.getTime() > ms;
}
