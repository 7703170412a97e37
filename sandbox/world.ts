import { randomBytes } from 'node:crypto';
import type { WorkflowRun } from './actions/run.ts';
import type {
  App,
  CheckRun,
  CheckSuite,
  Delivery,
  Installation,
  IssueComment,
  Json,
  Review,
  ReviewComment,
  Token,
  User,
} from './model.ts';
import type { Pull } from './pull.ts';
import type { Repository } from './repository.ts';

/**
 * Where ids start. GitHub's have outgrown 32 bits (comments, check runs, workflow runs); every kind starts above 2^31
 * here, so that a product that keeps any of them in an int32 fails in tests.
 */
export const FIRST_IDS = {
  user: 2_200_000_001,
  app: 2_300_000_001,
  installation: 2_400_000_001,
  repository: 2_500_000_001,
  pull: 2_600_000_001,
  comment: 4_900_000_001,
  review: 4_600_000_001,
  reviewComment: 4_700_000_001,
  reaction: 2_700_000_001,
  suite: 52_000_000_001,
  checkRun: 61_000_000_001,
  delivery: 180_000_000_001,
  workflow: 2_800_000_001,
  workflowRun: 31_700_000_003,
  hook: 2_900_000_001,
  ruleset: 3_100_000_001,
} as const;

/** Kinds of ids. */
export type IdKind = keyof typeof FIRST_IDS;

/** An event on its way to every app that is installed, permitted and subscribed. */
export interface Emission {
  readonly event: string;
  readonly action: string | null;
  readonly repository: Repository | null;
  readonly sender: User;
  /** Makes the payload without repository, sender, installation: these are added. */
  readonly payload: () => Promise<Json> | Json;
  /** Only this app gets it (check_run.rerequested, requested_action: facts/github.md §1). */
  readonly onlyApp?: App;
  /** Only this installation gets it, subscribed or not (installation events). */
  readonly onlyInstallation?: Installation;
}

/** Everything this GitHub knows, and the few services its parts share. Plain state: rules live with their endpoints. */
export class World {
  readonly root: string;
  url = '';
  apiUrl = '';
  readonly users: User[] = [];
  readonly apps: App[] = [];
  readonly installations: Installation[] = [];
  readonly repositories: Repository[] = [];
  readonly tokens = new Map<string, Token>();
  readonly suites: CheckSuite[] = [];
  readonly checkRuns: CheckRun[] = [];
  readonly comments: IssueComment[] = [];
  readonly reviews: Review[] = [];
  readonly reviewComments: ReviewComment[] = [];
  readonly deliveries: Delivery[] = [];
  readonly workflowRuns: WorkflowRun[] = [];
  /** Bugs of the sandbox, and requests that GitHub would accept while ignoring part of them. Tests want it empty. */
  readonly violations: string[] = [];
  closing = false;
  /** Work that `idle()` waits for: deliveries under way, propagation, jobs. */
  readonly pending = new Set<Promise<unknown>>();
  emit: (emission: Emission) => Promise<void> = async () => {};
  /** Starts the workflows of a pull request whose head is readable in its base repository. */
  pullChanged: (pull: Pull, action: string, sender: User, more: Json) => Promise<void> = async () => {};
  #next: Record<IdKind, number>;
  #offset = 0;

  constructor(root: string, firstIds: Partial<Record<IdKind, number>>) {
    this.root = root;
    this.#next = { ...FIRST_IDS, ...firstIds };
  }

  /** The next id of a kind. */
  id(kind: IdKind): number {
    const id = this.#next[kind];
    this.#next[kind] = id + 1;
    return id;
  }

  /** This GitHub's time. */
  now(): Date {
    return new Date(Date.now() + this.#offset);
  }

  /** This GitHub's time as its API writes it, to the second. */
  stamp(): string {
    return this.now()
      .toISOString()
      .replace(/\.\d+Z$/, 'Z');
  }

  /** Moves this GitHub's clock (stamps, delivery retention, rate windows); credentials keep the machine's. */
  advance(milliseconds: number): void {
    this.#offset += milliseconds;
  }

  /** Runs work in the background; a failure is a violation, `idle()` waits for it. */
  background(what: string, work: () => Promise<unknown>): void {
    const running = work()
      .catch((error: unknown) => {
        // Once it closes, processes are killed and folders go: what fails then says nothing.
        if (!this.closing) this.violations.push(`${what}: ${String(error)}`);
      })
      .finally(() => this.pending.delete(running));
    this.pending.add(running);
  }

  /** The account with a login, by GitHub's case-insensitive rule. */
  userByLogin(login: string): User | undefined {
    return this.users.find((user) => user.login.toLowerCase() === login.toLowerCase());
  }

  /** The account whose e-mail a commit carries: how GitHub maps commits to people. */
  userByEmail(email: string): User | undefined {
    return this.users.find((user) => user.email.toLowerCase() === email.toLowerCase());
  }

  /** A repository that still exists, by owner and name. */
  repositoryByName(owner: string, name: string): Repository | undefined {
    const full = `${owner}/${name}`.toLowerCase();
    return this.repositories.find((r) => !r.deleted && `${r.owner.login}/${r.name}`.toLowerCase() === full);
  }

  /** The repository that had a name before it was renamed or transferred, while nobody has taken that name. */
  repositoryByFormerName(owner: string, name: string): Repository | undefined {
    if (this.repositoryByName(owner, name) !== undefined) return undefined;
    const full = `${owner}/${name}`.toLowerCase();
    return this.repositories.find(
      (r) => !r.deleted && r.formerNames.some((one) => one.toLowerCase() === full),
    );
  }

  /** Installations of any app that cover a repository. */
  installationsOn(repository: Repository): Installation[] {
    return this.installations.filter((installation) => covers(installation, repository));
  }

  /** Adds an account. */
  addUser(login: string, type: User['type'], id?: number, email?: string): User {
    const user: User = {
      id: id ?? this.id('user'),
      login,
      name: login,
      email: email ?? `${login.replace(/[^A-Za-z0-9-]/g, '-')}@users.noreply.example.test`,
      type,
      token: `ghp_${randomBytes(27).toString('base64url').replace(/[-_]/g, 'A')}`,
      createdAt: this.stamp(),
    };
    this.users.push(user);
    this.tokens.set(user.token, {
      token: user.token,
      kind: 'user',
      installation: null,
      user,
      permissions: {},
      repositoryIds: null,
      expiresAt: Number.POSITIVE_INFINITY,
    });
    return user;
  }
}

/** Whether an installation covers a repository. */
export function covers(installation: Installation, repository: Repository): boolean {
  if (installation.deleted || installation.account.id !== repository.owner.id) return false;
  return installation.repositoryIds === null || installation.repositoryIds.has(repository.id);
}

/** GraphQL node id, opaque as GitHub's are. */
export function nodeId(kind: string, id: number | string): string {
  return `${kind}_${Buffer.from(`${kind}:${id}`).toString('base64url')}`;
}
