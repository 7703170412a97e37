/**
 * The runs that a visitor may see, newest first (OPS-8).
 *
 * Reads: runs, gates, repositories. Writes: nothing. Calls: GitHub's permissions. May fail with: what
 * Postgres does; where GitHub does not answer, runs are left out and it is said.
 */
import { findRepositories, listNewestRuns, type RunLine } from '../../db/store/browse.ts';
import type { Repository } from '../../db/store/installation.ts';
import { plain } from '../domain/neutralise.ts';
import { Fault, Refusal } from '../errors.ts';
import type { Deps } from './deps.ts';
import { reaches, readRight } from './read-right.ts';
import type { Visitor } from './read-visit.ts';

/** A run in the list; texts are without controls. */
export interface ListedRun extends Omit<RunLine, 'mark' | 'repositoryId'> {
  readonly repository: string;
}

/** A page of the list. */
export interface RunList {
  readonly runs: readonly ListedRun[];
  /** Where the next page begins; null at the end. */
  readonly older: string | null;
  /** Some repositories could not be asked about: their runs are not in it. */
  readonly unanswered: boolean;
}

const PAGE = 30;
const BATCH = 100;
/** Runs looked at for one page: a visitor who may see few of them goes on with the link. */
const MOST_BATCHES = 10;

/** One page; `mark` is where it begins, as an earlier page gave it. */
export async function readRuns(deps: Deps, visitor: Visitor, mark: string | null): Promise<RunList> {
  const { db } = deps.database;
  const runs: ListedRun[] = [];
  const rights = new Map<string, Repository | null>();
  let unanswered = false;
  let from = mark !== null && /^\d{1,17}$/.test(mark) ? mark : null;
  for (let batch = 0; batch < MOST_BATCHES; batch++) {
    const lines = await listNewestRuns(db, visitor.installations, from, BATCH);
    const unknown = [...new Set(lines.map((line) => line.repositoryId))].filter((id) => !rights.has(id));
    const found = await findRepositories(db, unknown);
    const answers = await Promise.all(
      unknown.map(async (id) => [id, await visible(deps, visitor, found.get(id))] as const),
    );
    for (const [id, answer] of answers) {
      rights.set(id, answer === 'unanswered' ? null : answer);
      unanswered ||= answer === 'unanswered';
    }
    for (const line of lines) {
      from = line.mark;
      const repository = rights.get(line.repositoryId) ?? null;
      if (repository === null) continue;
      runs.push(listed(line, repository));
      if (runs.length === PAGE) return { runs, older: from, unanswered };
    }
    if (lines.length < BATCH) return { runs, older: null, unanswered };
  }
  return { runs, older: from, unanswered };
}

async function visible(
  deps: Deps,
  visitor: Visitor,
  repository: Repository | undefined,
): Promise<Repository | null | 'unanswered'> {
  if (repository === undefined) return null;
  try {
    return reaches(await readRight(deps, visitor, repository), 'read') ? repository : null;
  } catch (error) {
    if (error instanceof Fault || (error instanceof Refusal && error.code === 'rate_limited'))
      return 'unanswered';
    throw error;
  }
}

function listed({ mark: _, repositoryId: __, ...line }: RunLine, repository: Repository): ListedRun {
  return { ...line, title: plain(line.title), repository: `${repository.owner}/${repository.name}` };
}
