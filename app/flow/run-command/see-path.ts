/** What git tells of the paths that claims name (OWN-5, OWN-7): who touched them last, what lies there; in no transaction. */
import { findFile } from '../../../db/store/file.ts';
import type { Repository } from '../../../db/store/installation.ts';
import type { Run } from '../../../db/store/run.ts';
import type { Command } from '../../domain/command/arguments.ts';
import { decodePath } from '../../domain/path.ts';
import { Fault } from '../../errors.ts';
import { cloneUrl } from '../clone-url.ts';
import type { Deps } from '../deps.ts';
import { lastTouches } from './last-touch.ts';

/** Paths of claims as the head has them, by path key. */
export interface PathSight {
  /** The block whose commit changed each path last; absent where git did not tell: the person is then asked to name one. */
  readonly touched: ReadonlyMap<string, string>;
  /** Modes of what lies at the paths that the head does not change, and at the folders above; null where git did not tell. */
  readonly modes: ReadonlyMap<string, string> | null;
  /** The head that was looked at. */
  readonly head: string | null;
}

type Claim = Extract<Command, { name: 'claim' }>;

/** Looks at the paths of claims, only as far as these claims need it. */
export async function seePaths(
  deps: Deps,
  run: Run,
  repository: Repository,
  claims: readonly Claim[],
): Promise<PathSight> {
  const unnamed: string[] = [];
  const untouched: string[] = [];
  for (const { path, block, whole } of claims) {
    const named = [...(whole === null ? [] : [whole]), path];
    const found = await Promise.all(named.map((one) => findFile(deps.database.db, run.id, decodePath(one))));
    const changed = named.find((_, i) => found[i] !== null);
    if (changed === undefined) untouched.push(path);
    else if (block === null || changed === whole) unnamed.push(changed);
  }
  return {
    touched: await lastTouches(deps, run, repository, unnamed),
    modes: await modesOf(deps, run, repository, untouched),
    head: run.head,
  };
}

async function modesOf(
  deps: Deps,
  run: Run,
  repository: Repository,
  paths: readonly string[],
): Promise<ReadonlyMap<string, string> | null> {
  if (paths.length === 0 || run.head === null) return null;
  try {
    const github = await deps.github.installation(run.installationId);
    const entries = await deps.git.readEntries(
      repository,
      cloneUrl(deps.settings, repository),
      await github.readToken(repository),
      run.head,
      [...new Set(paths.flatMap((path) => [path, ...parentsOf(path)]))],
    );
    return new Map([...entries].map(([key, { mode }]) => [key, mode]));
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
    deps.log.warn({ code: error.code, run: run.id }, 'run-command-modes');
    return null;
  }
}

function parentsOf(path: string): string[] {
  const segments = path.split('/');
  return segments.slice(1).map((_, i) => segments.slice(0, i + 1).join('/'));
}
