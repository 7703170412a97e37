import { NO_OBJECT, type Signature } from '../git/repository.ts';
import type { Json, User } from '../model.ts';
import type { Repository } from '../repository.ts';
import { commitsJson } from './commits.ts';

/** A person as git writes it. */
export function actorCommitter(author: User | Signature): Signature {
  return { name: author.name, email: author.email };
}

/** The `push` event's own fields; at most 2,048 commits are listed, as GitHub does. */
export async function pushPayload(
  repository: Repository,
  ref: string,
  before: string,
  after: string,
  pusher: User,
): Promise<Json> {
  const { git, world } = repository;
  const created = before === NO_OBJECT;
  const deleted = after === NO_OBJECT;
  const base = created ? await git.commitId(`refs/heads/${repository.defaultBranch}`) : before;
  const without = base === null || base === after ? [] : [base];
  const ids = deleted || (created && base === after) ? [] : await git.commitsBetween(without, after);
  const commits = (await commitsJson(repository, ids.slice(-2048))).map((commit) => pushCommit(commit));
  const last = deleted
    ? undefined
    : (await commitsJson(repository, [after])).map((commit) => pushCommit(commit))[0];
  return {
    ref,
    before,
    after,
    created,
    deleted,
    forced: !created && !deleted && !(await git.isAncestor(before, after)),
    base_ref: null,
    compare: `${world.url}/${repository.fullName}/compare/${before.slice(0, 12)}...${after.slice(0, 12)}`,
    commits,
    head_commit: last ?? null,
    pusher: { name: pusher.login, email: pusher.email },
  };
}

function pushCommit(commit: Json): Json {
  const inner = commit['commit'] as { message: string; tree: { sha: string }; author: Json; committer: Json };
  return {
    id: commit['sha'],
    tree_id: inner.tree.sha,
    distinct: true,
    message: inner.message,
    timestamp: inner.author['date'],
    url: commit['html_url'],
    author: inner.author,
    committer: inner.committer,
    added: [],
    removed: [],
    modified: [],
  };
}
