import { join } from 'node:path';
import { type FileChanges, GitRepository, type Signature } from './git/repository.ts';
import { changeRepositories } from './installations.ts';
import { MergeQueue, type QueueRule } from './merge-queue.ts';
import type { App, Role, User } from './model.ts';
import { Pull } from './pull.ts';
import { userJson } from './render/accounts.ts';
import { actorCommitter, pushPayload } from './render/pushes.ts';
import { requestSuites } from './rest/suites.ts';
import type { World } from './world.ts';

/** What a new repository holds. */
export interface RepositoryOptions {
  readonly owner: User;
  readonly name?: string;
  readonly files?: FileChanges;
  readonly message?: string;
  readonly defaultBranch?: string;
  readonly private?: boolean;
  /** Object ids of 40 or 64 hex digits (facts/github.md §0); default sha1. */
  readonly hash?: 'sha1' | 'sha256';
  readonly collaborators?: Iterable<readonly [User, Role]>;
}

/** What `commit` needs: `files` change the tree of the branch's tip; trailers go below the message. */
export interface CommitOptions {
  /** Default: the default branch. Made from `from` (or the default branch) when it does not exist. */
  readonly branch?: string;
  readonly from?: string;
  readonly message?: string;
  readonly trailers?: Readonly<Record<string, string | readonly string[]>>;
  readonly files?: FileChanges;
  readonly renames?: Readonly<Record<string, string>>;
  /** A user of this GitHub, or any name and address; default: the repository's owner. */
  readonly author?: User | Signature;
  /** Who made the commit of it; default: the author. GitHub's own pages commit as `web-flow`. */
  readonly committer?: User | Signature;
  /** Who pushed it; default: the author if a user, else the owner. */
  readonly pusher?: User;
  /** Parents instead of the branch's tip: a force push when the tip is not among them. [] starts a new history. */
  readonly parents?: readonly string[];
  readonly date?: Date;
}

/** What `openPull` needs. */
export interface PullOptions {
  /** The branch with the changes, in `fork` or in this repository. */
  readonly head: string;
  readonly fork?: Repository;
  readonly base?: string;
  readonly user?: User;
  readonly title?: string;
  readonly body?: string | null;
  readonly draft?: boolean;
}

/** A rule that a branch requires a check, optionally only from one app (facts/github.md §3). */
export interface RequiredCheck {
  readonly rulesetId: number;
  readonly branch: string;
  readonly context: string;
  readonly integrationId: number | null;
}

/** A repository with its bare git directory; methods do what people do on github.com and send the webhooks of it. */
export class Repository {
  readonly world: World;
  readonly id: number;
  name: string;
  owner: User;
  readonly private: boolean;
  readonly defaultBranch: string;
  readonly git: GitRepository;
  readonly forkOf: Repository | null;
  readonly collaborators = new Map<number, Role>();
  readonly pulls: Pull[] = [];
  readonly requiredChecks: RequiredCheck[] = [];
  /** Merge queues by branch. */
  readonly queues = new Map<string, MergeQueue>();
  /** Actions secrets and variables of this repository: what `${{ secrets.X }}` and `${{ vars.X }}` give. */
  readonly secrets: Record<string, string> = {};
  readonly variables: Record<string, string> = {};
  /** How long a fork's push takes to reach this repository's pull ref (case 7); 'manual' waits for pull.propagate(). */
  propagation: number | 'manual' = 0;
  /** Names it had; GitHub redirects from them. */
  readonly formerNames: string[] = [];
  deleted = false;
  readonly createdAt: string;
  pushedAt: string;
  #nextNumber = 1;
  #writing: Promise<unknown> = Promise.resolve();

  constructor(
    world: World,
    init: { owner: User; name: string; private: boolean; defaultBranch: string; forkOf: Repository | null },
  ) {
    this.world = world;
    this.id = world.id('repository');
    this.owner = init.owner;
    this.name = init.name;
    this.private = init.private;
    this.defaultBranch = init.defaultBranch;
    this.forkOf = init.forkOf;
    this.git = new GitRepository(join(world.root, `${this.id}.git`));
    this.createdAt = world.stamp();
    this.pushedAt = this.createdAt;
    world.repositories.push(this);
  }

  /** owner/name. */
  get fullName(): string {
    return `${this.owner.login}/${this.name}`;
  }

  /** What people clone. */
  get cloneUrl(): string {
    return `${this.world.url}/${this.fullName}.git`;
  }

  /** The next number of an issue or pull request. */
  nextNumber(): number {
    return this.#nextNumber++;
  }

  /** What a person may do here; the owner is admin, the public reads. */
  roleOf(user: User): Role {
    const given = this.collaborates(user);
    return given === 'none' && !this.private ? 'read' : given;
  }

  /** What a person was given, beyond what everybody may do in a public repository. */
  collaborates(user: User): Role {
    return user === this.owner ? 'admin' : (this.collaborators.get(user.id) ?? 'none');
  }

  /** Gives a person a role, as in the settings page. */
  setCollaborator(user: User, role: Role): void {
    this.collaborators.set(user.id, role);
  }

  /** The tip of a branch; throws when there is none. */
  async tip(branch = this.defaultBranch): Promise<string> {
    const id = await this.git.commitId(`refs/heads/${branch}`);
    if (id === null) throw new Error(`${this.fullName} has no branch ${branch}`);
    return id;
  }

  /** Commits to a branch and pushes it: its id. Webhooks and pull requests follow. */
  async commit(options: CommitOptions): Promise<string> {
    const branch = options.branch ?? this.defaultBranch;
    const ref = `refs/heads/${branch}`;
    const author = options.author ?? this.owner;
    const trailers = Object.entries(options.trailers ?? {}).flatMap(([key, value]) =>
      [value].flat().map((one) => `${key}: ${one}`),
    );
    const message = options.message ?? 'Change files';
    const { before, after } = await this.#oneByOne(async () => {
      const tip = await this.git.commitId(ref);
      const from = tip ?? (await this.git.commitId(options.from ?? `refs/heads/${this.defaultBranch}`));
      const id = await this.git.commit({
        ref,
        parents: options.parents ?? (from === null ? [] : [from]),
        message: trailers.length === 0 ? message : `${message}\n\n${trailers.join('\n')}\n`,
        author: actorCommitter(author),
        ...(options.committer === undefined ? {} : { committer: actorCommitter(options.committer) }),
        date: options.date ?? this.world.now(),
        files: options.files ?? {},
        renames: options.renames ?? {},
      });
      return { before: tip, after: id };
    });
    const pusher = options.pusher ?? this.world.users.find((user) => user === author) ?? this.owner;
    await this.refChanged(ref, before, after, pusher);
    return after;
  }

  /** Moves a branch to a commit that exists here, whatever it pointed to: a (force) push without new objects. */
  async setBranch(branch: string, id: string | null, pusher: User = this.owner): Promise<void> {
    const ref = `refs/heads/${branch}`;
    const before = await this.git.commitId(ref);
    await this.git.setRef(ref, id);
    await this.refChanged(ref, before, id, pusher);
  }

  /** What GitHub does once a ref has changed: push and check_suite events, pull requests move or close. */
  async refChanged(ref: string, before: string | null, after: string | null, pusher: User): Promise<void> {
    if (before === after) return;
    this.pushedAt = this.world.stamp();
    await this.world.emit({
      event: 'push',
      action: null,
      repository: this,
      sender: pusher,
      payload: () => pushPayload(this, ref, before, after, pusher),
    });
    if (!ref.startsWith('refs/heads/')) return;
    const branch = ref.slice('refs/heads/'.length);
    if (after !== null) await requestSuites(this.world, this, after, branch, before, pusher);
    for (const repository of this.world.repositories) {
      for (const pull of repository.pulls) {
        if (pull.state !== 'open' || pull.head.repository !== this || pull.head.ref !== branch) continue;
        if (after === null) await pull.close(pusher);
        else await pull.headMoved(after, pusher);
      }
    }
  }

  /** Opens a pull request and sends `pull_request.opened`. */
  async openPull(options: PullOptions): Promise<Pull> {
    const from = options.fork ?? this;
    const user = options.user ?? from.owner;
    const pull = new Pull(this, {
      user,
      title: options.title ?? `Changes of ${options.head}`,
      body: options.body ?? null,
      draft: options.draft ?? false,
      base: { ref: options.base ?? this.defaultBranch, sha: await this.tip(options.base) },
      head: { repository: from, ref: options.head, sha: await from.tip(options.head), owner: from.owner },
    });
    this.pulls.push(pull);
    await pull.propagateLater();
    await pull.announce('opened', user);
    return pull;
  }

  /** A fork of this repository under another account, with all branches. */
  async fork(owner: User, name = this.name): Promise<Repository> {
    const fork = new Repository(this.world, {
      owner,
      name,
      private: this.private,
      defaultBranch: this.defaultBranch,
      forkOf: this,
    });
    await fork.git.init(this.defaultBranch);
    await fork.git.run(['fetch', '--quiet', this.git.directory, '+refs/heads/*:refs/heads/*']);
    return fork;
  }

  /** Deletes the repository; pull requests from it keep their pull ref and lose head.repo (facts/github.md §15). */
  async delete(): Promise<void> {
    this.deleted = true;
    for (const repository of this.world.repositories)
      for (const pull of repository.pulls) if (pull.head.repository === this) pull.head.repository = null;
    await this.git.remove();
  }

  /** Renames the repository and sends `repository.renamed`; its id stays, the old name leads here until it is reused. */
  async rename(name: string): Promise<void> {
    const from = this.name;
    this.formerNames.push(this.fullName);
    this.name = name;
    await this.world.emit({
      event: 'repository',
      action: 'renamed',
      repository: this,
      sender: this.owner,
      payload: () => ({ changes: { repository: { name: { from } } } }),
    });
  }

  /** Moves the repository to another account: the old one's installations lose it; sends `repository.transferred`. */
  async transfer(to: User): Promise<void> {
    const from = this.owner;
    for (const installation of this.world.installationsOn(this))
      if (installation.repositoryIds !== null)
        await changeRepositories(this.world, installation, 'removed', [this]);
    this.formerNames.push(this.fullName);
    this.owner = to;
    await this.world.emit({
      event: 'repository',
      action: 'transferred',
      repository: this,
      sender: from,
      payload: () => ({ changes: { owner: { from: { user: userJson(this.world, from) } } } }),
    });
  }

  /** Requires a check on a branch by a ruleset, pinned to an app unless that is null. */
  requireCheck(context: string, app: App | null, branch = this.defaultBranch): void {
    const rulesetId = this.world.id('ruleset');
    this.requiredChecks.push({ rulesetId, branch, context, integrationId: app?.id ?? null });
  }

  /** Merges into a branch go through a queue from now on (facts/github.md §4). */
  useQueue(rule: Partial<QueueRule> = {}, branch = this.defaultBranch): MergeQueue {
    const queue = new MergeQueue(this, branch, rule);
    this.queues.set(branch, queue);
    return queue;
  }

  // Commits made at the same time follow each other, as pushes would after a rebase.
  #oneByOne<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#writing.then(work, work);
    this.#writing = done;
    return done;
  }
}
