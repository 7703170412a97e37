import { type MergeMethod, mergeOnto } from './git/merges.ts';
import type { Json, User } from './model.ts';
import type { Pull } from './pull.ts';
import { simpleCommitJson } from './render/commits.ts';
import { actorCommitter } from './render/pushes.ts';
import type { Repository } from './repository.ts';
import { governingRun } from './rest/check-runs.ts';

/** The rule of a branch's merge queue as a ruleset has it (facts/github.md §4). */
export interface QueueRule {
  readonly method: MergeMethod;
  /** ALLGREEN: each commit must pass; HEADGREEN: only that of the last entry. */
  readonly grouping: 'ALLGREEN' | 'HEADGREEN';
  readonly timeoutMinutes: number;
}

/** Why an entry left the queue (facts/github.md §4). */
export type DequeueReason = 'MANUAL' | 'MERGE' | 'MERGE_CONFLICT' | 'CI_FAILURE' | 'CI_TIMEOUT';

/** The commit that was made of everything up to an entry. */
interface Group {
  readonly head: string;
  readonly branch: string;
  readonly base: string;
  readonly requestedAt: number;
}

/** A pull request in the queue; `group` is null until its commit was made. */
export interface QueueEntry {
  readonly pull: Pull;
  readonly head: string;
  readonly by: User;
  readonly enqueuedAt: string;
  group: Group | null;
}

const PASSED: ReadonlySet<string | null> = new Set(['success', 'neutral', 'skipped']);

/**
 * The merge queue of one branch (facts/github.md §4): each entry's commit is made by git on that of the entry before,
 * under `gh-readonly-queue/BRANCH/pr-N-BASE`; required checks are asked on it, and the branch moves to what passed.
 */
export class MergeQueue {
  readonly repository: Repository;
  readonly branch: string;
  readonly rulesetId: number;
  readonly rule: QueueRule;
  /** Front first. */
  readonly entries: QueueEntry[] = [];
  #tail: Promise<unknown> = Promise.resolve();

  constructor(repository: Repository, branch: string, rule: Partial<QueueRule>) {
    this.repository = repository;
    this.branch = branch;
    this.rule = { method: 'MERGE', grouping: 'ALLGREEN', timeoutMinutes: 60, ...rule };
    this.rulesetId = repository.world.id('ruleset');
  }

  /** Someone presses "Merge when ready": refused unless every required check passed on the pull request's own head. */
  async enqueue(pull: Pull, by: User): Promise<void> {
    return this.#inTurn(async () => {
      const open = pull.state === 'open' && !pull.draft && pull.base.ref === this.branch;
      if (!open || this.#stateOf(pull.head.sha) !== 'passed')
        throw new Error(`#${pull.number} is not ready to be queued`);
      const enqueuedAt = this.repository.world.stamp();
      this.entries.push({ pull, head: pull.head.sha, by, enqueuedAt, group: null });
      await pull.announce('enqueued', by);
      await this.#build();
    });
  }

  /** Someone takes a pull request out of the queue. */
  async dequeue(pull: Pull): Promise<void> {
    return this.#inTurn(() => this.#drop(pull, 'MANUAL'));
  }

  /** What GitHub does once a check on a group was concluded, or time has passed. */
  async settle(): Promise<void> {
    return this.#inTurn(() => this.#settle());
  }

  async #settle(): Promise<void> {
    for (;;) {
      const last = this.entries.at(-1);
      const asked = this.rule.grouping === 'ALLGREEN' ? [...this.entries] : last === undefined ? [] : [last];
      const failed = asked.find((entry) => this.#standing(entry) === 'failed');
      const late = asked.find((entry) => this.#isLate(entry));
      if (failed !== undefined) await this.#drop(failed.pull, 'CI_FAILURE');
      else if (late !== undefined) await this.#drop(late.pull, 'CI_TIMEOUT');
      else {
        const [front] = asked;
        if (front === undefined || this.#standing(front) !== 'passed') return;
        await this.#merge(front);
      }
    }
  }

  #standing(entry: QueueEntry): 'passed' | 'failed' | 'pending' {
    return entry.group === null ? 'pending' : this.#stateOf(entry.group.head);
  }

  #isLate(entry: QueueEntry): boolean {
    if (entry.group === null || this.#standing(entry) !== 'pending') return false;
    return (
      this.repository.world.now().getTime() > entry.group.requestedAt + this.rule.timeoutMinutes * 60_000
    );
  }

  #stateOf(sha: string): 'passed' | 'failed' | 'pending' {
    const required = this.repository.requiredChecks.filter((rule) => rule.branch === this.branch);
    const runs = required.map((rule) =>
      governingRun(this.repository.world, this.repository, sha, rule.context, rule.integrationId),
    );
    const concluded = runs.filter((run) => run?.status === 'completed');
    if (concluded.some((run) => !PASSED.has(run?.conclusion ?? null))) return 'failed';
    return concluded.length === runs.length ? 'passed' : 'pending';
  }

  /** Makes the commits that are missing, front first. */
  async #build(): Promise<void> {
    const { repository } = this;
    const { world, git } = repository;
    for (let i = 0; i < this.entries.length; i++) {
      const entry = this.entries[i];
      if (entry === undefined || entry.group !== null) continue;
      const { pull, head, by } = entry;
      const base = this.entries[i - 1]?.group?.head ?? (await repository.tip(this.branch));
      const message = `${pull.title} (#${pull.number})`;
      const { method } = this.rule;
      const author = actorCommitter(pull.user);
      const made = await mergeOnto(git, { base, head, method, message, author, date: world.now() });
      if (made === null) {
        await this.#drop(pull, 'MERGE_CONFLICT');
        return;
      }
      const branch = `gh-readonly-queue/${this.branch}/pr-${pull.number}-${base}`;
      entry.group = { head: made, branch, base, requestedAt: world.now().getTime() };
      await repository.setBranch(branch, made, by);
      await this.#announce('checks_requested', entry.group, by, {});
    }
  }

  /** Moves the branch to an entry's commit: all up to it are merged. */
  async #merge(upTo: QueueEntry): Promise<void> {
    const merged = this.entries.splice(0, this.entries.indexOf(upTo) + 1);
    const { repository, branch } = this;
    if (upTo.group === null) return;
    await repository.setBranch(branch, upTo.group.head, upTo.by);
    for (const { pull, group, by } of merged) {
      pull.state = 'closed';
      pull.merged = true;
      pull.mergedBy = by;
      pull.mergeCommit = group?.head ?? null;
      pull.mergedAt = repository.world.stamp();
      pull.closedAt = pull.mergedAt;
      await this.#destroy(group, by, 'merged');
      await pull.announce('dequeued', by, { reason: 'MERGE' });
      await pull.announce('closed', by);
    }
  }

  /** Takes an entry out; what stood behind it is made anew. */
  async #drop(pull: Pull, reason: DequeueReason): Promise<void> {
    const at = this.entries.findIndex((entry) => entry.pull === pull);
    const [entry, ...behind] = at < 0 ? [] : this.entries.splice(at);
    if (entry === undefined) return;
    await this.#destroy(entry.group, entry.by, 'dequeued');
    await pull.announce('dequeued', entry.by, { reason });
    for (const other of behind) {
      await this.#destroy(other.group, other.by, 'invalidated');
      other.group = null;
    }
    this.entries.push(...behind);
    await this.#build();
  }

  async #destroy(group: Group | null, by: User, reason: string): Promise<void> {
    if (group === null) return;
    await this.#announce('destroyed', group, by, { reason });
    await this.repository.setBranch(group.branch, null, by);
  }

  async #announce(action: string, group: Group, sender: User, more: Json): Promise<void> {
    const { repository, branch } = this;
    await repository.world.emit({
      event: 'merge_group',
      action,
      repository,
      sender,
      payload: async () => ({
        ...more,
        merge_group: {
          head_sha: group.head,
          head_ref: `refs/heads/${group.branch}`,
          base_sha: group.base,
          base_ref: `refs/heads/${branch}`,
          head_commit: await simpleCommitJson(repository, group.head),
        },
      }),
    });
  }

  // What people and checks do at the same time follows each other.
  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#tail.then(work, work);
    this.#tail = done.catch(() => {});
    return done;
  }
}
