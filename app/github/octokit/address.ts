/**
 * Where a repository is today. Its id is its identity; owner and name may have been taken by another
 * since we learnt them (case 75), so that nothing is written under a name that was not seen with its
 * id within the last minute.
 */
import { Fault } from '../../errors.ts';
import type { RepositoryAddress, RepositoryInfo } from '../port.ts';
import { type Client, parse } from './client.ts';
import { Moved } from './errors.ts';
import { repositoryShape } from './shapes.ts';

const FRESH_MS = 60_000;

interface Place {
  readonly owner: string;
  readonly repo: string;
}

/** Runs calls at the present address of a repository. */
export interface Addresses {
  /** A read: at the address given, and once more at the right one when it has moved. */
  read<T>(repository: RepositoryAddress, fn: (place: Place) => Promise<T>): Promise<T>;
  /** A write: only at an address that was seen to be this repository's. */
  write<T>(repository: RepositoryAddress, fn: (place: Place) => Promise<T>): Promise<T>;
}

/** Addresses of one installation's repositories; `repositories` lists them all, by id the truth. */
export function createAddresses(client: Client, repositories: () => Promise<RepositoryInfo[]>): Addresses {
  const seen = new Map<string, { readonly place: Place; readonly at: number }>();

  const note = (id: string, place: Place) => {
    seen.set(id, { place, at: performance.now() });
    return place;
  };
  const fresh = (id: string): Place | null => {
    const known = seen.get(id);
    return known !== undefined && performance.now() - known.at < FRESH_MS ? known.place : null;
  };
  const find = async (id: string): Promise<Place> => {
    const found = (await repositories()).find((one) => one.id === id);
    if (found === undefined)
      throw new Fault('github_not_found', `repository ${id} is not in this installation any more`);
    return note(id, { owner: found.owner, repo: found.name });
  };
  const verify = async (repository: RepositoryAddress): Promise<Place> => {
    const known = fresh(repository.id);
    if (known !== null) return known;
    try {
      const place = { owner: repository.owner, repo: repository.name };
      const { data } = await client.read('GET /repos/{owner}/{repo}', { ...place });
      const info = parse(repositoryShape, data, 'repos/get');
      if (info.id === repository.id) return note(repository.id, { owner: info.owner, repo: info.name });
    } catch (error) {
      if (!isElsewhere(error)) throw error;
    }
    return find(repository.id);
  };

  return {
    async read(repository, fn) {
      try {
        return await fn(fresh(repository.id) ?? { owner: repository.owner, repo: repository.name });
      } catch (error) {
        if (!(error instanceof Moved)) throw error;
        return fn(await find(repository.id));
      }
    },
    async write(repository, fn) {
      const place = await verify(repository);
      try {
        return await fn(place);
      } catch (error) {
        // neither was carried out: the repository moved since it was seen
        if (!isElsewhere(error)) throw error;
        seen.delete(repository.id);
        const now = await find(repository.id);
        if (error instanceof Fault && now.owner === place.owner && now.repo === place.repo) throw error;
        return fn(now);
      }
    },
  };
}

function isElsewhere(error: unknown): boolean {
  return error instanceof Moved || (error instanceof Fault && error.code === 'github_not_found');
}
