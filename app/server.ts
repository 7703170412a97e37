/** The composition root: everything that the server is, built in one place and taken down in reverse. Imported by main, the demo and tests. */
import { join } from 'node:path';
import { Hono } from 'hono';
import { listenTo } from '../db/listen.ts';
import type { Config } from './config.ts';
import { STUCK_ATTEMPTS } from './domain/check.ts';
import { LIMITS } from './domain/limits.ts';
import { policySchemaJson } from './domain/policy/schema.ts';
import type { Log } from './flow/deps.ts';
import type { WorkDeps } from './flow/order.ts';
import { readFigures } from './flow/read-figures.ts';
import { storeDelivery } from './flow/store-delivery.ts';
import { QUEUE_CHANNEL, wake } from './flow/wake.ts';
import { readEvent } from './github/events.ts';
import { GIT_INHERITED } from './github/git/command.ts';
import { requireGit } from './github/git/version.ts';
import { createGitReader } from './github/git.ts';
import { createGitHubApp } from './github/octokit.ts';
import type { GitHubSignIn } from './github/port.ts';
import { createSignIn } from './github/sign-in.ts';
import { createMetrics, healthRoutes } from './http/health.ts';
import { createJar } from './http/pages/cookie.ts';
import { pages } from './http/pages/pages.tsx';
import { createVisits } from './http/pages/visits.ts';
import { runLink } from './http/run-link.ts';
import { runnerApi } from './http/runner-api.ts';
import { createVerifier } from './http/runner-auth.ts';
import { listen } from './http/server.ts';
import { webhook } from './http/webhook.ts';
import { openFolder } from './server/folder.ts';
import { createIds } from './server/ids.ts';
import { createLog, silentLog } from './server/log.ts';
import { openSigner, openStore } from './server/store.ts';
import { VERSION } from './server/version.ts';
import { startWorker, sweep, type WorkerOptions } from './worker.ts';

/** What a caller may choose besides the configuration. */
export interface ServerOptions {
  /** Another log (default: JSON lines on standard output). */
  readonly log?: Log;
  /** How jobs are worked; false: not at all, by this process. */
  readonly worker?: Omit<WorkerOptions, 'observe'> | false;
  /** How long `close` waits for what is under way (default 25 s, below the 30 s of most platforms). */
  readonly graceMs?: number;
}

/** A running server. */
export interface RunningServer {
  /** Where it listens, `http://host:port`. */
  readonly url: string;
  readonly deps: WorkDeps;
  /** Runs every sweep once; answers the names of those that failed. */
  sweep(): Promise<readonly string[]>;
  /** Drains and stops everything; safe to call twice. */
  close(): Promise<void>;
}

/** Starts the server. What was begun is taken down again when a later step fails. */
export async function startServer(config: Config, options: ServerOptions = {}): Promise<RunningServer> {
  const log = options.log ?? createLog(config.logLevel);
  const graceMs = options.graceMs ?? 25_000;
  /** What takes in work, ended together and first; then what work stands on, last begun first ended. */
  const intake: (() => Promise<void>)[] = [];
  const ground: (() => Promise<void>)[] = [];
  /** Aborted when the drain begins: long polls answer. */
  const stopping = new AbortController();
  /** Aborted when it is over: what is under way towards GitHub ends. */
  const stop = new AbortController();
  let closing: Promise<void> | null = null;
  const close = () => {
    closing ??= (async () => {
      const end = (step: () => Promise<void>) =>
        step().catch((error: unknown) => log.error({ err: error }, 'close'));
      stopping.abort();
      await Promise.all(intake.map(end));
      stop.abort();
      for (const step of ground.reverse()) await end(step);
      log.info({}, 'stopped');
    })();
    return closing;
  };

  try {
    openFolder(config.dataDir);
    const http = await listen(config.host, config.port);
    intake.push(() => http.close(graceMs));
    const publicUrl = config.publicUrl ?? http.url;
    const store = await openStore(config, log);
    ground.push(store.close);
    const { database } = store;
    const queue = listenTo(database, QUEUE_CHANNEL, (repository) => wake(database, repository));
    ground.push(queue.close);
    const signer = await openSigner(config, database, originOf(config), log);
    const github = createGitHubApp({
      appId: config.appId,
      privateKey: config.privateKey,
      webhookSecret: config.webhookSecrets[0] ?? '',
      apiUrl: config.apiUrl,
      log: silentLog(),
      stop: stop.signal,
    });
    const environment = config.inherit(GIT_INHERITED);
    await requireGit(environment);
    const git = createGitReader({ directory: join(config.dataDir, 'git'), environment });
    const deps: WorkDeps = {
      database,
      signer,
      github,
      git,
      log,
      ids: createIds(),
      settings: { publicUrl, serverUrl: config.serverUrl, version: VERSION },
      readEvent,
    };

    const count = async (sql: string) => Number((await database.pool.query<{ n: string }>(sql)).rows[0]?.n);
    const metrics = createMetrics({
      jobs: () => count('select count(*) as n from graphile_worker.jobs where attempts < max_attempts'),
      deliveries: () => count(`select count(*) as n from delivery where state = 'stored'`),
      stuckChecks: () => count(`select count(*) as n from check_run where attempts >= ${STUCK_ATTEMPTS}`),
      figures: () => readFigures(deps),
    });
    const worker =
      options.worker === false
        ? null
        : await startWorker(deps, {
            ...options.worker,
            observe: (task, how, ms) => metrics.job(task, how, ms),
          });
    if (worker !== null) intake.push(() => worker.stop(graceMs));

    const ready = async () => {
      const answers = database.pool.query('select 1').then(
        () => true,
        () => false,
      );
      const late = new Promise<false>((done) => setTimeout(done, 2_000, false).unref());
      return [
        ...((await Promise.race([answers, late])) ? [] : ['database']),
        ...(worker === null || worker.running() ? [] : ['worker']),
        ...(closing === null ? [] : ['stopping']),
      ];
    };
    const app = new Hono();
    app.route('/', healthRoutes(metrics, ready));
    const verify = createVerifier({
      issuers: [config.oidcIssuer],
      audience: config.oidcAudience ?? publicUrl,
    });
    app.get('/policy.schema.json', (c) => c.json(policySchemaJson()));
    const pageDeps = { ...deps, signIn: signInOf(config, stop.signal) };
    const jar = createJar(publicUrl, LIMITS.visitMostMs.default, LIMITS.signInMs.default);
    const visits = createVisits(pageDeps, jar);
    app.route('/', pages(pageDeps, jar, visits));
    // without sign-in nothing is shown of a run, and its links lead to the pull request
    if (pageDeps.signIn === null) app.route('/', runLink(deps));
    app.route('/', runnerApi(deps, { verify, stopping: stopping.signal, visitor: visits.of }));
    app.notFound((c) => c.json({ error: { code: 'not_found', message: 'there is nothing here' } }, 404));
    app.onError((error, c) => {
      log.error({ err: error, path: c.req.path }, 'http');
      return c.json({ error: { code: 'bug', message: 'something went wrong on our side' } }, 500);
    });
    http.open({
      app,
      webhook: webhook({
        secrets: config.webhookSecrets,
        store: storeDelivery(database),
        log,
        count: metrics.delivery,
      }),
    });
    log.info({ url: http.url, publicUrl, version: VERSION }, 'listening');
    return { url: http.url, deps, sweep: () => sweep(deps), close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Signs people in where an OAuth client is configured. */
function signInOf(config: Config, stop: AbortSignal): GitHubSignIn | null {
  const { signIn, serverUrl, apiUrl } = config;
  return signIn === null ? null : createSignIn({ ...signIn, serverUrl, apiUrl, stop });
}

/** The log's name on a first start (LED-1); it is kept with the keys and never derived again. */
function originOf(config: Config): string {
  return config.publicUrl === null ? 'countersign.local' : new URL(config.publicUrl).host;
}
