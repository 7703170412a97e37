import type { IssueComment, Json, Reaction } from '../model.ts';
import type { Pull } from '../pull.ts';
import { nodeId } from '../world.ts';
import { appJson, userJson } from './accounts.ts';
import { simplePullJson } from './pulls.ts';
import { association } from './repositories.ts';

/** A comment as GitHub's `issue-comment`. */
export function commentJson(pull: Pull, comment: IssueComment): Json {
  const { repository } = pull;
  const { world, fullName } = repository;
  const url = `${world.apiUrl}/repos/${fullName}/issues/comments/${comment.id}`;
  return {
    url,
    html_url: `${world.url}/${fullName}/pull/${pull.number}#issuecomment-${comment.id}`,
    issue_url: `${world.apiUrl}/repos/${fullName}/issues/${pull.number}`,
    id: comment.id,
    node_id: nodeId('IC', comment.id),
    user: userJson(world, comment.author),
    created_at: comment.createdAt,
    updated_at: comment.updatedAt,
    author_association: association(repository, comment.author),
    body: comment.body,
    reactions: rollup(`${url}/reactions`, comment.reactions),
    performed_via_github_app: comment.viaApp === null ? null : appJson(world, comment.viaApp),
  };
}

/** Counts of reactions, as every comment carries them. */
export function rollup(url: string, reactions: readonly Reaction[]): Json {
  const contents = ['+1', '-1', 'laugh', 'hooray', 'confused', 'heart', 'rocket', 'eyes'];
  const count = (content: string) => reactions.filter((reaction) => reaction.content === content).length;
  return {
    url,
    total_count: reactions.length,
    ...Object.fromEntries(contents.map((content) => [content, count(content)])),
  };
}

/** A reaction as GitHub's `reaction`. */
export function reactionJson(pull: Pull, reaction: Reaction): Json {
  return {
    id: reaction.id,
    node_id: nodeId('REA', reaction.id),
    user: userJson(pull.repository.world, reaction.user),
    content: reaction.content,
    created_at: reaction.createdAt,
  };
}

/** A pull request as the issue that `issue_comment` events carry. */
export function issueJson(pull: Pull): Json {
  const { repository } = pull;
  const { world, fullName } = repository;
  const url = `${world.apiUrl}/repos/${fullName}/issues/${pull.number}`;
  const simple = simplePullJson(pull);
  const picked = [
    'number title user labels state locked milestone assignee assignees created_at updated_at closed_at',
    'author_association active_lock_reason body draft html_url',
  ]
    .join(' ')
    .split(' ');
  return {
    ...Object.fromEntries(picked.map((name) => [name, simple[name] ?? null])),
    id: pull.id,
    node_id: nodeId('PR', pull.id),
    url,
    repository_url: `${world.apiUrl}/repos/${fullName}`,
    labels_url: `${url}/labels{/name}`,
    comments_url: `${url}/comments`,
    events_url: `${url}/events`,
    timeline_url: `${url}/timeline`,
    comments: world.comments.filter((c) => c.repositoryId === repository.id && c.number === pull.number)
      .length,
    performed_via_github_app: null,
    state_reason: null,
    reactions: rollup(`${url}/reactions`, []),
    pull_request: {
      url: simple['url'],
      html_url: simple['html_url'],
      diff_url: simple['diff_url'],
      patch_url: simple['patch_url'],
      merged_at: pull.mergedAt,
    },
  };
}
