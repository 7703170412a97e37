import { type FileChanges, GitFailed } from './git/repository.ts';
import type { IssueComment, Json, Review, User } from './model.ts';
import { pullJson } from './render/pulls.ts';
import type { CommitOptions, Repository } from './repository.ts';
import { addComment } from './rest/comments.ts';
import { createReview, dismissReview, editReview, type ReviewInput } from './rest/review-acts.ts';

interface PullInit {
  readonly user: User;
  readonly title: string;
  readonly body: string | null;
  readonly draft: boolean;
  readonly base: { ref: string; sha: string };
  readonly head: { repository: Repository | null; ref: string; sha: string; owner: User };
}

/** A pull request; methods do what people do on its page and send the webhooks of it (facts/github.md §14, §15). */
export class Pull {
  readonly repository: Repository;
  readonly id: number;
  readonly number: number;
  user: User;
  title: string;
  body: string | null;
  draft: boolean;
  state: 'open' | 'closed' = 'open';
  merged = false;
  mergeCommit: string | null = null;
  mergedBy: User | null = null;
  readonly base: { ref: string; sha: string };
  readonly head: { repository: Repository | null; ref: string; sha: string; owner: User };
  /** The head that `refs/pull/N/head` of the base repository has reached; a fork's push takes a while (case 7). */
  reachedHead: string | null = null;
  /** Base and head for which a background job has computed `mergeable`; it is null before (facts/github.md §5). */
  mergeableFor: string | null = null;
  /** The event whose workflows wait for the head to be readable here. */
  #unstarted: { readonly action: string; readonly sender: User; readonly more: Json } | null = null;
  /** The commit of refs/pull/N/merge, and the base and head that it merges. */
  testMerge: { key: string; id: string } | null = null;
  readonly createdAt: string;
  updatedAt: string;
  closedAt: string | null = null;
  mergedAt: string | null = null;

  constructor(repository: Repository, init: PullInit) {
    this.repository = repository;
    this.id = repository.world.id('pull');
    this.number = repository.nextNumber();
    this.user = init.user;
    this.title = init.title;
    this.body = init.body;
    this.draft = init.draft;
    this.base = { ...init.base };
    this.head = { ...init.head };
    this.createdAt = repository.world.stamp();
    this.updatedAt = this.createdAt;
  }

  /** Commits to the head branch: the new head. */
  async push(options: Omit<CommitOptions, 'branch'> & { files: FileChanges }): Promise<string> {
    return this.#source().commit({ author: this.user, ...options, branch: this.head.ref });
  }

  /** Replaces the head: by a commit that exists, or by a new one on `parents` (default: the base's tip). */
  async forcePush(to: string | (Omit<CommitOptions, 'branch'> & { files?: FileChanges })): Promise<string> {
    const source = this.#source();
    if (typeof to === 'string') {
      await source.setBranch(this.head.ref, to, this.user);
      return to;
    }
    const parents = to.parents ?? [await this.baseTip()];
    return source.commit({ author: this.user, ...to, parents, branch: this.head.ref });
  }

  /** Comments in the conversation and sends `issue_comment.created`. */
  async comment(user: User, body: string): Promise<IssueComment> {
    return addComment(this, user, body, null);
  }

  /** Reviews a head (default: approves the present one) and sends `pull_request_review.submitted`. */
  async review(user: User, input: ReviewInput = {}): Promise<Review> {
    return createReview(this, user, { event: 'APPROVE', ...input });
  }

  /** Dismisses a review and sends `dismissed`. */
  async dismissReview(review: Review, by: User): Promise<void> {
    await dismissReview(this, review, by);
  }

  /** Changes a review's text and sends `edited`. */
  async editReview(review: Review, body: string, by: User = review.author): Promise<void> {
    await editReview(this, review, body, by);
  }

  /** Edits title, body or base and sends `pull_request.edited` with the changes. */
  async edit(user: User, to: { title?: string; body?: string; base?: string }): Promise<void> {
    const changes: Json = {};
    if (to.title !== undefined) changes['title'] = { from: this.title };
    if (to.body !== undefined) changes['body'] = { from: this.body ?? '' };
    if (to.base !== undefined)
      changes['base'] = { ref: { from: this.base.ref }, sha: { from: this.base.sha } };
    this.title = to.title ?? this.title;
    this.body = to.body ?? this.body;
    if (to.base !== undefined) {
      this.base.ref = to.base;
      this.base.sha = await this.repository.tip(to.base);
    }
    await this.announce('edited', user, { changes });
  }

  /** Closes without merging. */
  async close(user: User = this.user): Promise<void> {
    if (this.state === 'closed') return;
    this.state = 'closed';
    this.closedAt = this.repository.world.stamp();
    await this.announce('closed', user);
  }

  /** Reopens; a head branch that moved meanwhile is its new head (facts/github.md §14, GK). */
  async reopen(user: User = this.user): Promise<void> {
    this.state = 'open';
    this.closedAt = null;
    const tip = await this.head.repository?.git.commitId(`refs/heads/${this.head.ref}`);
    if (tip !== undefined && tip !== null && tip !== this.head.sha) {
      this.head.sha = tip;
      await this.propagateLater();
    }
    await this.announce('reopened', user);
  }

  /** Converts to a draft. */
  async convertToDraft(user: User = this.user): Promise<void> {
    this.draft = true;
    await this.announce('converted_to_draft', user);
  }

  /** Marks a draft as ready for review. */
  async readyForReview(user: User = this.user): Promise<void> {
    this.draft = false;
    await this.announce('ready_for_review', user);
  }

  /** Merges with a merge commit or as one commit, and sends push and `pull_request.closed`; throws on a conflict. */
  async merge(user: User, method: 'merge' | 'squash' = 'merge'): Promise<string> {
    const { git } = this.repository;
    const base = await this.baseTip();
    const tree = await git.text(['merge-tree', '--write-tree', base, this.head.sha]);
    const parents = method === 'merge' ? ['-p', base, '-p', this.head.sha] : ['-p', base];
    const who = ['-c', `user.name=${user.name}`, '-c', `user.email=${user.email}`];
    const message = `Merge pull request #${this.number}\n\n${this.title}`;
    const id = await git.text([...who, 'commit-tree', tree, ...parents, '-m', message]);
    this.state = 'closed';
    this.merged = true;
    this.mergeCommit = id;
    this.mergedBy = user;
    this.mergedAt = this.repository.world.stamp();
    this.closedAt = this.mergedAt;
    this.base.sha = base;
    await this.repository.setBranch(this.base.ref, id, user);
    await this.announce('closed', user);
    return id;
  }

  /** The author deletes the account: GitHub shows `ghost` from then on. */
  becomeGhost(): void {
    const ghost = this.repository.world.userByLogin('ghost');
    if (ghost !== undefined) this.user = ghost;
  }

  /** The base branch's tip while open, what it was when closed. */
  async baseTip(): Promise<string> {
    if (this.state === 'closed') return this.base.sha;
    return (await this.repository.git.commitId(`refs/heads/${this.base.ref}`)) ?? this.base.sha;
  }

  /** The head branch has moved: sends `synchronize` (before, after), the pull ref follows. */
  async headMoved(after: string, sender: User): Promise<void> {
    const before = this.head.sha;
    this.head.sha = after;
    this.base.sha = await this.baseTip();
    await this.propagateLater();
    await this.announce('synchronize', sender, { before, after });
  }

  /** Brings the pull ref to the head: at once within one repository, after `propagation` from a fork. */
  async propagateLater(): Promise<void> {
    const { world, propagation } = this.repository;
    if (this.head.repository === this.repository || propagation === 0) return this.propagate();
    if (propagation === 'manual') return;
    world.background('propagation', async () => {
      await new Promise((resolve) => setTimeout(resolve, propagation));
      await this.propagate();
    });
  }

  /** Makes the head readable in the base repository now. */
  async propagate(): Promise<void> {
    const { git } = this.repository;
    const ref = `refs/pull/${this.number}/head`;
    const source = this.head.repository;
    const { sha } = this.head;
    try {
      if (source === null) return;
      if (source === this.repository) await git.setRef(ref, sha);
      else await git.fetchFrom(source.git, sha, ref);
    } catch (error) {
      // The sandbox may be closing, or the fork gone, while a push is still on its way.
      if (error instanceof GitFailed && source?.deleted === true) return;
      throw error;
    }
    this.reachedHead = sha;
    await this.#startWorkflows();
  }

  /** Sends a `pull_request` event. */
  async announce(action: string, sender: User, more: Json = {}): Promise<void> {
    this.updatedAt = this.repository.world.stamp();
    await this.repository.world.emit({
      event: 'pull_request',
      action,
      repository: this.repository,
      sender,
      payload: async () => ({ number: this.number, ...more, pull_request: await pullJson(this) }),
    });
    if (this.state !== 'open') return;
    this.#unstarted = { action, sender, more };
    await this.#startWorkflows();
  }

  // From a fork the head comes later, and so do its workflows.
  async #startWorkflows(): Promise<void> {
    const waiting = this.#unstarted;
    if (waiting === null || this.reachedHead !== this.head.sha) return;
    this.#unstarted = null;
    await this.repository.world.pullChanged(this, waiting.action, waiting.sender, waiting.more);
  }

  #source(): Repository {
    if (this.head.repository === null)
      throw new Error(`pull request ${this.number} has lost its head repository`);
    return this.head.repository;
  }
}
