import type { Json } from '../model.ts';
import type { Pull } from '../pull.ts';
import { nodeId } from '../world.ts';
import { userJson } from './accounts.ts';
import { diffTotals } from './diffs.ts';
import { association, repositoryJson } from './repositories.ts';

/** A pull request as GitHub's `pull-request-simple` (lists). */
export function simplePullJson(pull: Pull): Json {
  const { repository, base, head } = pull;
  const { world, fullName } = repository;
  const api = `${world.apiUrl}/repos/${fullName}`;
  const html = `${world.url}/${fullName}/pull/${pull.number}`;
  const self = `${api}/pulls/${pull.number}`;
  const issue = `${api}/issues/${pull.number}`;
  const headRepository = head.repository;
  const links = {
    self,
    html,
    issue,
    comments: `${issue}/comments`,
    review_comments: `${self}/comments`,
    review_comment: `${api}/pulls/comments{/number}`,
    commits: `${self}/commits`,
    statuses: `${api}/statuses/${head.sha}`,
  };
  return {
    url: self,
    id: pull.id,
    node_id: nodeId('PR', pull.id),
    html_url: html,
    diff_url: `${html}.diff`,
    patch_url: `${html}.patch`,
    issue_url: issue,
    commits_url: links.commits,
    review_comments_url: links.review_comments,
    review_comment_url: links.review_comment,
    comments_url: links.comments,
    statuses_url: links.statuses,
    number: pull.number,
    state: pull.state,
    locked: false,
    active_lock_reason: null,
    title: pull.title,
    user: userJson(world, pull.user),
    body: pull.body,
    labels: [],
    milestone: null,
    created_at: pull.createdAt,
    updated_at: pull.updatedAt,
    closed_at: pull.closedAt,
    merged_at: pull.mergedAt,
    merge_commit_sha: pull.mergeCommit ?? pull.testMerge?.id ?? null,
    assignee: null,
    assignees: [],
    requested_reviewers: [],
    requested_teams: [],
    head: {
      label: `${head.owner.login}:${head.ref}`,
      ref: head.ref,
      sha: head.sha,
      user: userJson(world, head.owner),
      repo: headRepository === null ? null : repositoryJson(world, headRepository),
    },
    base: {
      label: `${repository.owner.login}:${base.ref}`,
      ref: base.ref,
      sha: base.sha,
      user: userJson(world, repository.owner),
      repo: repositoryJson(world, repository),
    },
    _links: Object.fromEntries(Object.entries(links).map(([name, href]) => [name, { href }])),
    author_association: association(repository, pull.user),
    auto_merge: null,
    draft: pull.draft,
  };
}

/** A pull request as GitHub's `pull-request` (a single one, and in webhooks). */
export async function pullJson(pull: Pull): Promise<Json> {
  const { repository } = pull;
  const { git, world } = repository;
  const tip = await pull.baseTip();
  const head = pull.reachedHead;
  const from = head === null ? null : await git.mergeBase(tip, head);
  const totals =
    head === null || from === null
      ? { files: 0, additions: 0, deletions: 0 }
      : await diffTotals(repository, from, head);
  const commits = head === null ? 0 : (await git.commitsBetween([tip], head)).length;
  const comments = world.comments.filter(
    (comment) => comment.repositoryId === repository.id && comment.number === pull.number && !comment.deleted,
  ).length;
  const mergeable = await mergeability(pull, tip);
  return {
    ...simplePullJson(pull),
    merged: pull.merged,
    mergeable,
    rebaseable: mergeable,
    mergeable_state: mergeable === null ? 'unknown' : mergeable ? 'clean' : 'dirty',
    merged_by: pull.mergedBy === null ? null : userJson(world, pull.mergedBy),
    comments,
    review_comments: 0,
    maintainer_can_modify: false,
    commits,
    additions: totals.additions,
    deletions: totals.deletions,
    changed_files: totals.files,
  };
}

// facts/github.md §5: `mergeable` is null until a background job has computed it; asking triggers the job, which also
// makes the test merge commit of refs/pull/N/merge (§3: nobody looks there for checks).
async function mergeability(pull: Pull, tip: string): Promise<boolean | null> {
  if (pull.state === 'closed' || pull.reachedHead !== pull.head.sha) return null;
  const { sha } = pull.head;
  const key = `${tip} ${sha}`;
  if (pull.mergeableFor !== key) {
    pull.mergeableFor = key;
    return null;
  }
  return (await testMerge(pull, tip)) !== null;
}

/** The test merge commit of base and head at refs/pull/N/merge, made anew once either moved; null where they conflict. */
export async function testMerge(pull: Pull, tip: string): Promise<string | null> {
  const { git } = pull.repository;
  const { sha } = pull.head;
  const key = `${tip} ${sha}`;
  const ref = `refs/pull/${pull.number}/merge`;
  const tree = await git.mergeTree(tip, sha);
  if (tree === null) {
    await git.setRef(ref, null).catch(() => {});
    pull.testMerge = null;
    return null;
  }
  if (pull.testMerge?.key !== key) {
    const author = { name: 'GitHub', email: 'noreply@github.com', date: new Date() };
    const message = `Merge ${sha} into ${tip}\n`;
    const parents = [tip, sha];
    const id = git.objects.writeCommit({ tree, parents, author, committer: author, message });
    await git.setRef(ref, id);
    pull.testMerge = { key, id };
  }
  return pull.testMerge.id;
}
