/** Records who made what a head changes (GAT-6), so that who may answer for it is told by rows alone. */
import type { PeopleGroup } from '../../domain/ledger/row-fields.ts';
import type { RowData } from '../../domain/ledger/row-kinds.ts';
import { pathKey, type WirePath } from '../../domain/path.ts';
import { WEB_FLOW } from '../../domain/people/authors.ts';
import type { RunState } from '../../domain/run-state/state.ts';
import type { PullReading } from '../../github/port/git.ts';
import type { CommitAccounts } from '../../github/port/people.ts';
import type { GitHub, RepositoryAddress } from '../../github/port.ts';
import type { Append } from './record.ts';

/** Accounts by commit id. */
export type Accounts = ReadonlyMap<string, CommitAccounts>;

const ROW_BYTES = 28_000;
const MOST = { commits: 500, groups: 200, paths: 400, accounts: 200, heads: 100 } as const;

/** Asks GitHub for the accounts of a head's commits. */
export function askAccounts(
  github: GitHub,
  repository: RepositoryAddress,
  pull: string,
  reading: PullReading,
): Promise<Accounts> {
  const commits = reading.commits.filter((one) => one.changes.length > 0).map((one) => one.oid);
  const { mergeBase: base, head } = reading;
  if (commits.length === 0) return Promise.resolve(new Map());
  return github.listCommitAccounts(repository, { pull, base, head, commits });
}

/** Whether the rows say already who made this head. */
export function hasPeople(state: RunState, reading: PullReading): boolean {
  const { people } = state;
  return people?.complete === true && people.head === reading.head && people.mergeBase === reading.mergeBase;
}

/** Records it; true when anything was written. */
export function recordPeople(
  append: Append,
  state: RunState,
  reading: PullReading,
  accounts: Accounts,
): boolean {
  if (hasPeople(state, reading)) return false;
  const commits = reading.commits.map((one) => one.oid).filter((oid) => !state.arrivals.has(oid));
  const rows = [...pack(commits, groupsOf(state, reading, accounts))];
  rows.forEach((part, index) => {
    append('run.people', null, {
      head: reading.head,
      merge_base: reading.mergeBase,
      first: index === 0,
      last: index === rows.length - 1,
      ...part,
    });
  });
  return true;
}

interface Makers {
  readonly accounts: Set<string>;
  readonly heads: Set<string>;
  unattributed: boolean;
}

/**
 * Paths of the head by who made them. A merge of the base changes nothing of its own and does not count;
 * GitHub's `web-flow` commits what a person pressed, so it is no committer, and as an author it hides one.
 */
export function groupsOf(
  state: Pick<RunState, 'arrivals'>,
  reading: PullReading,
  accounts: Accounts,
): PeopleGroup[] {
  const makers = new Map<string, Makers>();
  const paths = new Map(reading.files.map((file) => [pathKey(file.path), file.path]));
  // a path that no commit changes has no known maker
  for (const key of paths.keys())
    makers.set(key, { accounts: new Set(), heads: new Set(), unattributed: false });
  for (const commit of reading.commits) {
    const { author = null, committer = null } = accounts.get(commit.oid) ?? {};
    const head = state.arrivals.get(commit.oid) ?? reading.head;
    for (const { path } of commit.changes) {
      const maker = makers.get(pathKey(path));
      if (maker === undefined) continue;
      maker.heads.add(head);
      if (author === null || author === WEB_FLOW || committer === null) maker.unattributed = true;
      for (const account of [author, committer])
        if (account !== null && account !== WEB_FLOW) maker.accounts.add(account);
    }
  }
  const alike = new Map<string, { maker: Makers; paths: WirePath[] }>();
  for (const [key, maker] of makers) {
    const path = paths.get(key);
    if (path === undefined) continue;
    const name = JSON.stringify([[...maker.accounts].sort(), [...maker.heads].sort(), maker.unattributed]);
    const known = alike.get(name);
    if (known === undefined) alike.set(name, { maker, paths: [path] });
    else known.paths.push(path);
  }
  // the largest group is said without its paths
  const sorted = [...alike.values()].sort((a, b) => b.paths.length - a.paths.length);
  return sorted.flatMap(({ maker, paths: own }, index) =>
    index === 0 ? [toGroup(maker, null)] : split(own).map((part) => toGroup(maker, part)),
  );
}

function toGroup(maker: Makers, paths: WirePath[] | null): PeopleGroup {
  const accounts = [...maker.accounts].sort();
  const heads = [...maker.heads].sort();
  const whole = accounts.length <= MOST.accounts && heads.length <= MOST.heads;
  return {
    accounts: accounts.slice(0, MOST.accounts),
    heads: heads.slice(0, MOST.heads),
    unattributed: maker.unattributed || maker.accounts.size === 0 || !whole,
    paths,
  };
}

function split(paths: readonly WirePath[]): WirePath[][] {
  const parts: WirePath[][] = [];
  let size = 0;
  for (const path of paths) {
    const bytes = Buffer.byteLength(JSON.stringify(path)) + 1;
    const last = parts.at(-1);
    if (last === undefined || last.length >= MOST.paths || size + bytes > ROW_BYTES / 4) {
      parts.push([path]);
      size = bytes;
    } else {
      last.push(path);
      size += bytes;
    }
  }
  return parts;
}

type Part = Pick<RowData<'run.people'>, 'commits' | 'groups'>;

function* pack(commits: readonly string[], groups: readonly PeopleGroup[]): Generator<Part> {
  let part: Part = { commits: [], groups: [] };
  let size = 0;
  for (const item of [...commits, ...groups]) {
    const bytes = Buffer.byteLength(JSON.stringify(item)) + 1;
    const full = part.commits.length >= MOST.commits || part.groups.length >= MOST.groups;
    if (size > 0 && (full || size + bytes > ROW_BYTES)) {
      yield part;
      part = { commits: [], groups: [] };
      size = 0;
    }
    if (typeof item === 'string') part.commits.push(item);
    else part.groups.push(item);
    size += bytes;
  }
  yield part;
}
