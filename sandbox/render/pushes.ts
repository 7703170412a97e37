import type { Signature } from '../git/repository.ts';
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
  before: string | null,
  after: string | null,
  pusher: User,
): Promise<Json> {
  const { git, world } = repository;
  const nothing = '0'.repeat((before ?? after ?? '').length);
  const created = before === null;
  const base = before ?? (await git.commitId(`refs/heads/${repository.defaultBranch}`));
  const without = base === null || base === after ? [] : [base];
  const ids = after === null || (created && base === after) ? [] : await git.commitsBetween(without, after);
  const commits = (await commitsJson(repository, ids.slice(-2048))).map(pushCommit);
  const [last] = after === null ? [] : (await commitsJson(repository, [after])).map(pushCommit);
  return {
    ref,
    before: before ?? nothing,
    after: after ?? nothing,
    created,
    deleted: after === null,
    forced: before !== null && after !== null && !(await git.isAncestor(before, after)),
    base_ref: null,
    compare: `${world.url}/${repository.fullName}/compare/${(before ?? nothing).slice(0, 12)}...${(after ?? nothing).slice(0, 12)}`,
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
