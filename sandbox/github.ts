/**
 * A local GitHub over real bare git repositories: REST (every request and answer held against GitHub's description),
 * app authentication, signed webhooks, check runs, smart HTTP. Each behaviour cites its line in facts/github.md, so a
 * bug against the sandbox is a bug against GitHub.
 *
 *   const gh = await startGitHub();
 *   const alice = gh.createUser('alice');
 *   const app = gh.createApp();                                  // id, privateKey, webhookSecret: the product's settings
 *   gh.deliverTo(app, 'http://127.0.0.1:3000/api/github/webhooks');
 *   const repo = await gh.createRepository({ owner: alice, files: { 'a.ts': 'export {};\n' } });
 *   await gh.installApp(app, repo);
 *   await repo.commit({ branch: 'topic', message: 'Change', files: { 'a.ts': '…', [old]: null } });
 *   const pull = await repo.openPull({ head: 'topic', user: alice });
 *   await pull.push({ files: { 'b.ts': '…' } });                  // synchronize; forcePush, edit, close, merge, comment
 *   await gh.idle();                                             // deliveries answered, propagation and jobs ended
 *   await pull.review(bob, { event: 'REQUEST_CHANGES', body: 'No' }); await pull.dismissReview(review, bob);
 *   gh.checkRuns(repo, pull.head.sha); gh.mergeable(pull, 'countersign', app);
 *   gh.faults.add({ on: 'checks/create', times: 1, when: 'after', status: 502 });
 *   gh.webhooks.drop(({ event }) => event === 'push'); .double() .delay(ms) .hold().release('reversed')
 *   const queue = repo.useQueue({ method: 'SQUASH' }); await queue.enqueue(pull, alice);  // merge_group events by themselves
 *   repo.secrets['KEY'] = '…'; gh.actions.runs; gh.actions.disturb({ kind: 'never' }); gh.actions.lose(run); .cancel(run)
 *   gh.oauth.browser = alice;                                   // who signs in to pages; app.callbackUrls, app.clientSecret
 *   await gh.oidc.mint({ aud, run_id }, { alg, key });           // any token, also one to refuse
 *   gh.violations                                                // tests assert that it is empty
 *   await gh.close();
 *
 * The product is configured with gh.apiUrl (REST), gh.url (git and pages), gh.oidc.issuer.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import type { IncomingMessage, Server } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ACTIONS_APP } from './actions/records.ts';
import { Actions } from './actions/service.ts';
import { cleanOnExit } from './cleanup.ts';
import { Faults } from './http/faults.ts';
import { Limits, type RequestRecord } from './http/limits.ts';
import { API_PREFIX, startServer } from './http/server.ts';
import {
  type AppOptions,
  announceInstallation,
  changeRepositories,
  install,
  registerApp,
} from './installations.ts';
import type { App, CheckRun, Installation, IssueComment, Review, User } from './model.ts';
import { OAuth } from './oauth.ts';
import { OidcIssuer } from './oidc.ts';
import type { OperationId } from './operations.ts';
import type { Pull } from './pull.ts';
import { Repository, type RepositoryOptions } from './repository.ts';
import { announceCheck } from './rest/check-events.ts';
import { governingRun, markStale, rerequestCheck } from './rest/check-runs.ts';
import { deleteComment, editComment } from './rest/comments.ts';
import { restHandlers } from './rest/handlers.ts';
import { Webhooks } from './webhooks.ts';
import { type IdKind, World } from './world.ts';

/** Settings of a sandbox: where ids start, by kind; every kind starts above 2^31. */
export type GitHubOptions = { readonly firstIds?: Partial<Record<IdKind, number>> };

/** A running sandbox; see the top of this file. */
export class SandboxGitHub {
  readonly world: World;
  readonly webhooks: Webhooks;
  readonly faults = new Faults();
  readonly limits = new Limits();
  /** Every REST and git request with its status and time; benches count them. */
  readonly requests: RequestRecord[] = [];
  readonly oidc: OidcIssuer;
  readonly oauth: OAuth;
  readonly actions: Actions;
  #server: Server | null = null;
  #keep: () => void = () => {};

  constructor(world: World) {
    this.world = world;
    this.webhooks = new Webhooks(world);
    this.oidc = new OidcIssuer(world);
    this.oauth = new OAuth(world);
    this.actions = new Actions(world, this.oidc);
    world.emit = (emission) => this.webhooks.emit(emission);
  }

  /** Where git is served: the product's GITHUB_SERVER_URL. */
  get url(): string {
    return this.world.url;
  }

  /** Where REST is served: Octokit's baseUrl, the product's GITHUB_API_URL. */
  get apiUrl(): string {
    return this.world.apiUrl;
  }

  /** Answers that GitHub would not have given, and requests that it would partly ignore. */
  get violations(): readonly string[] {
    return this.world.violations;
  }

  /** Starts serving; `startGitHub` does it. */
  async listen(): Promise<void> {
    const { world, faults, limits, requests } = this;
    const handlers = restHandlers(this.webhooks, limits, this.actions);
    const other = async (request: IncomingMessage, url: URL) =>
      (await this.oauth.serve(request, url)) ?? this.oidc.serve(request, url);
    const { server, url } = await startServer({ world, handlers, faults, limits, requests, other });
    this.#server = server;
    this.#keep = cleanOnExit(world);
    world.url = url;
    world.apiUrl = `${url}${API_PREFIX}`;
  }

  /** Adds a person, or a bot when the login ends in `[bot]`. */
  createUser(login: string, id?: number): User {
    return this.world.addUser(login, login.endsWith('[bot]') ? 'Bot' : 'User', id);
  }

  /** Adds an organisation. */
  createOrganization(login: string): User {
    return this.world.addUser(login, 'Organization');
  }

  /** Registers an app with a fresh key and webhook secret. */
  createApp(options: AppOptions = {}): App {
    return registerApp(this.world, options);
  }

  /** Sets where an app's webhooks go, optionally with another secret; null sends none. */
  deliverTo(app: App, url: string | null, secret?: string): void {
    app.webhookUrl = url;
    app.webhookSecret = secret ?? app.webhookSecret;
  }

  /** Makes a repository with a first commit on its default branch. */
  async createRepository(options: RepositoryOptions): Promise<Repository> {
    const repository = new Repository(this.world, {
      owner: options.owner,
      name: options.name ?? 'sample',
      private: options.private ?? false,
      defaultBranch: options.defaultBranch ?? 'main',
      forkOf: null,
    });
    await repository.git.init(repository.defaultBranch, options.hash);
    for (const [user, role] of options.collaborators ?? []) repository.setCollaborator(user, role);
    const message = options.message ?? 'Start';
    await repository.commit({ message, files: options.files ?? { 'README.md': '# sample\n' }, parents: [] });
    return repository;
  }

  /** Installs an app on repositories of one owner, or on all of an account's; sends `installation.created`. */
  installApp(app: App, ...on: [User] | [Repository, ...Repository[]]): Promise<Installation> {
    const repositories = on.filter((one) => one instanceof Repository);
    return install(this.world, app, repositories[0]?.owner ?? (on[0] as User), repositories);
  }

  /** Adds repositories to an installation, or removes them. */
  changeRepositories(
    installation: Installation,
    action: 'added' | 'removed',
    ...repositories: Repository[]
  ): Promise<void> {
    return changeRepositories(this.world, installation, action, repositories);
  }

  /** Suspends an installation: no events, 403 for its tokens. */
  async suspend(installation: Installation): Promise<void> {
    installation.suspendedAt = this.world.stamp();
    installation.suspendedBy = installation.account;
    await announceInstallation(this.world, installation, 'suspend');
  }

  /** Ends a suspension. */
  async unsuspend(installation: Installation): Promise<void> {
    installation.suspendedAt = null;
    installation.suspendedBy = null;
    await announceInstallation(this.world, installation, 'unsuspend');
  }

  /** Uninstalls: the installation's tokens are no longer valid. */
  async uninstall(installation: Installation): Promise<void> {
    await announceInstallation(this.world, installation, 'deleted');
    installation.deleted = true;
  }

  /** Every check run of a commit in the order of creation. */
  checkRuns(repository: Repository, sha: string): CheckRun[] {
    return this.world.checkRuns.filter((run) => run.repositoryId === repository.id && run.headSha === sha);
  }

  /** The run that decides a required check of a name: the newest created (facts/github.md §1). */
  governing(repository: Repository, sha: string, name: string, app: App | null = null): CheckRun | null {
    return governingRun(this.world, repository, sha, name, app?.id ?? null);
  }

  /** Whether branch protection with this check required, pinned to the app, lets the pull request merge (§3). */
  mergeable(pull: Pull, requiredCheck: string, app: App | null = null): boolean {
    const run = this.governing(pull.repository, pull.head.sha, requiredCheck, app);
    if (run === null || run.status !== 'completed') return false;
    return ['success', 'skipped', 'neutral'].includes(run.conclusion ?? '');
  }

  /** Comments of a pull request in order. */
  comments(pull: Pull): IssueComment[] {
    const { id } = pull.repository;
    return this.world.comments.filter((c) => c.repositoryId === id && c.number === pull.number && !c.deleted);
  }

  /** Reviews of a pull request in order. */
  reviews(pull: Pull): Review[] {
    const { id } = pull.repository;
    return this.world.reviews.filter((one) => one.repositoryId === id && one.number === pull.number);
  }

  /** Someone edits a comment. */
  editComment(pull: Pull, comment: IssueComment, body: string, by: User = comment.author): Promise<void> {
    return editComment(pull, comment, body, by);
  }

  /** Someone deletes a comment. */
  deleteComment(pull: Pull, comment: IssueComment, by: User = comment.author): Promise<void> {
    return deleteComment(pull, comment, by);
  }

  /** Someone presses "Re-run" on a check run; only its app hears of it (facts/github.md §1). */
  rerequest(repository: Repository, run: CheckRun, by: User): Promise<void> {
    return rerequestCheck(this.world, repository, run, by);
  }

  /** Someone presses a button of a check run. */
  async pressButton(repository: Repository, run: CheckRun, identifier: string, by: User): Promise<void> {
    if (!run.actions.some((action) => action.identifier === identifier))
      throw new Error(`check run ${run.id} has no button ${identifier}`);
    const more = { requested_action: { identifier } };
    await announceCheck(this.world, repository, run, 'requested_action', by, more);
  }

  /** How often an operation was called, or all that create content. */
  count(operation: OperationId | 'git' | 'graphql' | 'content'): number {
    return this.requests.filter((one) =>
      operation === 'content' ? one.content : one.operation === operation,
    ).length;
  }

  /** All tokens made so far are an hour old: 401 from now on. */
  expireTokens(): void {
    for (const token of this.world.tokens.values()) if (token.kind !== 'user') token.expiresAt = 0;
  }

  /** Moves this GitHub's clock: stamps, rate windows, deliveries, stale checks. Tokens keep the machine's clock. */
  advance(milliseconds: number): void {
    this.world.advance(milliseconds);
    markStale(this.world);
    for (const { queues } of this.world.repositories)
      for (const queue of queues.values()) this.world.background('merge queue', () => queue.settle());
  }

  /** Resolves when no delivery, propagation or job is under way; fails after `timeout` milliseconds (120,000). */
  async idle(timeout = 120_000): Promise<void> {
    const end = Date.now() + timeout;
    while (this.world.pending.size > 0) {
      if (Date.now() > end) throw new Error(`${this.world.pending.size} things are still under way`);
      await Promise.race([
        Promise.allSettled([...this.world.pending]),
        new Promise((resolve) => setTimeout(resolve, 100)),
      ]);
    }
  }

  /** Ends deliveries and jobs, closes the port and removes the repositories. */
  async close(): Promise<void> {
    this.world.closing = true;
    this.webhooks.stop();
    this.actions.stop();
    await this.idle().catch(() => {});
    const server = this.#server;
    server?.closeAllConnections();
    await new Promise<void>((resolve) => (server === null ? resolve() : server.close(() => resolve())));
    await rm(this.world.root, { recursive: true, force: true, maxRetries: 3 });
    this.#keep();
  }
}

/** Starts a sandbox on a free port of 127.0.0.1 with its repositories in a temporary folder; `close()` ends it. */
export async function startGitHub(options: GitHubOptions = {}): Promise<SandboxGitHub> {
  const root = await mkdtemp(join(tmpdir(), 'sandbox-github-'));
  const world = new World(root, options.firstIds ?? {});
  // What every GitHub has: deleted people's account, the committer of its own pages, the app that workflows act for.
  world.addUser('ghost', 'User', 10137);
  world.addUser('web-flow', 'User', 19864447, 'noreply@github.com');
  registerApp(world, ACTIONS_APP);
  const github = new SandboxGitHub(world);
  await github.listen();
  return github;
}
