/**
 * A run's status, and how the files of a block stand, for whoever may read its repository: a visitor,
 * or a runner's login of that repository (LSE-8).
 *
 * Reads: run, repository, ledger. Writes: nothing. Calls: the signer, GitHub's permission for a
 * visitor. May fail with: `not_found`, `rate_limited`, what GitHub does.
 */
import { findRepository } from '../../db/store/installation.ts';
import { readHead } from '../../db/store/ledger.ts';
import { type RunWatch, watchRun } from '../../db/store/notice.ts';
import { servesRepository } from '../../db/store/pool.ts';
import { findRun, productNow, type Run } from '../../db/store/run.ts';
import type { Login } from '../../db/store/runner.ts';
import { REASONS } from '../domain/gate/reason.ts';
import { plain } from '../domain/neutralise.ts';
import type { WirePath } from '../domain/path.ts';
import { type PathStanding, standings } from '../domain/run-state/coverage.ts';
import { presentHead } from '../domain/run-state/state.ts';
import { makeReport } from '../domain/summary/report.ts';
import { titleOf } from '../domain/summary/title.ts';
import { Refusal } from '../errors.ts';
import type { Deps } from './deps.ts';
import { judgeRun } from './judge-run.ts';
import { placesOf, publishedHead } from './publish-checks/want-gate.ts';
import { noSuchRun, readableRun } from './read-right.ts';
import type { Visitor } from './read-visit.ts';

/** Who asks. */
export type RunReader =
  | { readonly kind: 'visitor'; readonly visitor: Visitor }
  | { readonly kind: 'login'; readonly login: Login };

/** A run's status as the API answers it; names as on the wire. */
export interface RunStatus {
  readonly run: string;
  readonly repository: string;
  readonly pull: string | null;
  readonly status: string;
  readonly head: string;
  readonly conclusion: string;
  readonly title: string;
  readonly files: number;
  readonly counted: number;
  readonly unreviewed: number;
  readonly reasons: readonly {
    readonly code: string;
    readonly class: string;
    readonly what: string;
    readonly clears: string;
    readonly who: string;
    readonly count: number;
  }[];
  readonly blocks: readonly {
    readonly block: string;
    readonly verdict: string;
    readonly files: number;
    readonly counted: number;
  }[];
  /** The run head that it was verified up to; 0: the chain does not verify. */
  readonly seq: number;
}

/** How the files of a block stand; without a block, of the whole run. */
export interface BlockStatus {
  readonly block: string | null;
  readonly files: readonly { readonly file: WirePath; readonly status: PathStanding['standing'] }[];
  /** Nothing of it waits for the machine any more. */
  readonly done: boolean;
}

/** The status of a run. */
export async function readRunStatus(deps: Deps, reader: RunReader, id: string): Promise<RunStatus> {
  const run = await runFor(deps, reader, id);
  const repository = await findRepository(deps.database.db, run.repositoryId);
  if (repository === null) throw noSuchRun();
  const judged = await judgeRun(deps, deps.database.db, run, await productNow(deps.database.db));
  const { decision, state } = judged;
  const { run: page, repository: address } = placesOf(deps, run.id, repository);
  const report = makeReport(state, decision, new Map(), {
    published: publishedHead(deps, judged),
    places: { run: page, repository: address },
    shared: [],
  });
  return {
    run: run.id,
    repository: `${repository.owner}/${repository.name}`,
    pull: run.pull,
    status: run.status,
    head: run.toldHead,
    conclusion: decision.conclusion,
    title: titleOf(decision),
    ...decision.counts,
    reasons: decision.reasons.map(({ code, class: of, count }) => {
      const { what, clears, who } = REASONS[code];
      return { code, class: of, what, clears: plain(clears), who, count };
    }),
    blocks: report.blocks.map(({ id: block, verdict, files, counted }) => ({
      block,
      verdict,
      files,
      counted,
    })),
    seq: judged.verified?.seq ?? 0,
  };
}

/** How a block of a run stands. `not_found` names a block that the run does not have. */
export async function readBlockStatus(
  deps: Deps,
  reader: RunReader,
  id: string,
  block: string | null,
): Promise<BlockStatus> {
  const run = await runFor(deps, reader, id);
  const { db } = deps.database;
  const { state } = await judgeRun(deps, db, run, await productNow(db));
  const all = standings(state);
  const of = block === null ? all : all.filter((path) => path.block === block);
  // until git was read a block may still come; after that an unknown one never ends
  const read = presentHead(state)?.head === run.toldHead;
  if (block !== null && read && of.length === 0 && !state.blocks.has(block))
    throw new Refusal('not_found', 'the run has no such block', 'a block that its status names');
  const over = run.status === 'closed' || run.status === 'merged';
  return {
    block,
    files: of.map((path) => ({ file: path.file.path, status: path.standing })),
    done: over || (read && of.every((path) => path.standing !== 'pending')),
  };
}

/** Watches a run that the reader may read; `close` it. */
export async function watchReadableRun(deps: Deps, reader: RunReader, id: string): Promise<RunWatch> {
  const run = await runFor(deps, reader, id);
  return watchRun(deps.database, run.id);
}

/** The last row's number: what a status rests on has changed when this has. */
export async function readRunSeq(deps: Deps, id: string): Promise<number> {
  return (await readHead(deps.database.db, id))?.head.seq ?? 0;
}

async function runFor(deps: Deps, reader: RunReader, id: string): Promise<Run> {
  if (reader.kind === 'visitor') return (await readableRun(deps, reader.visitor, id)).run;
  const run = /^[A-Za-z0-9_-]{1,64}$/.test(id) ? await findRun(deps.database.db, id) : null;
  const { repository, pool } = reader.login.identity;
  const may =
    run !== null &&
    (repository === null
      ? await servesRepository(deps.database.db, pool, run.repositoryId)
      : run.repositoryId === repository);
  if (!may) throw noSuchRun();
  return run;
}
