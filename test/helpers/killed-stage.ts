/**
 * A stage whose app is a process of its own, seen only from outside: the real `app/main.ts` on a
 * database and a sandbox GitHub, each behind a proxy that can end it at any statement or request.
 * A second server in this process is the replica whose sweeps a test calls; unless asked to, it runs no jobs.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { workflowFile } from '../../app/domain/workflow.ts';
import { verifyRun } from '../../app/flow/verify-run.ts';
import { type RunningServer, startServer } from '../../app/server.ts';
import { newKeys } from '../../app/signing/keys.ts';
import { findRunOfPull, type Run } from '../../db/store/run.ts';
import { type SandboxGitHub, startGitHub } from '../../sandbox/github.ts';
import type { App, CheckRun, User } from '../../sandbox/model.ts';
import type { Pull } from '../../sandbox/pull.ts';
import type { Repository } from '../../sandbox/repository.ts';
import { asOwner, type TestDatabase, testDatabase } from './database.ts';
import { startChild } from './process.ts';
import { type GitHubProxy, startGitHubProxy } from './proxy-github.ts';
import { faultFunction, type PostgresProxy, startPostgresProxy } from './proxy-postgres.ts';
import { inherit, markerPolicy } from './stage.ts';

/** Everything that runs for one file of fault tests. */
export interface KilledStage {
  readonly gh: SandboxGitHub;
  readonly app: App;
  readonly author: User;
  readonly database: TestDatabase;
  readonly postgres: PostgresProxy;
  readonly github: GitHubProxy;
  readonly replica: RunningServer;
  /** Where the app answers, through every restart. */
  readonly url: string;
  /** How often the app was started. */
  readonly starts: number;
  /** Lines the app printed since it was started last. */
  log(): readonly string[];
  /** kill -9 of the app, which is started again as soon as it is gone. */
  kill(): void;
  /** A repository with the marker policy and the workflow on main, the App installed. */
  repository(name: string): Promise<Repository>;
  /** A pull request of two commits and three files, one of which has a blocking finding. */
  open(repository: Repository): Promise<Pull>;
  run(pull: Pull): Promise<Run>;
  rows(pull: Pull): Promise<Awaited<ReturnType<typeof verifyRun>>['rows']>;
  gate(pull: Pull): CheckRun | null;
  query<T extends Record<string, unknown>>(text: string, values?: readonly unknown[]): Promise<T[]>;
  /**
   * Runs everything to its end: no job, delivery or workflow run is left and `done` holds. When
   * nothing moves by itself any more, time goes on and the sweeps run. Throws when the app ended by itself.
   */
  finish(done: () => boolean | Promise<boolean>, timeoutMs?: number): Promise<void>;
  close(): Promise<void>;
}

/** How far time goes on when nothing moves: past a lease and a retry, and in a few steps past a dispatch (OPS-10). */
const STEP_MS = 6 * 60_000;

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  const { port } = server.address() as AddressInfo;
  await new Promise((done) => server.close(done));
  return port;
}

const workflow = (serverUrl: string): string =>
  workflowFile({ serverUrl, ref: 'countersign-dev/countersign@v0', keys: [] }).replace(
    'with:\n',
    'with:\n          idle_ms: "200"\n',
  );

/** How a stage is built. */
export interface KilledStageOptions {
  /** The replica in this process works jobs as well: two servers on one database. */
  readonly replicaWorks?: boolean;
}

/** Starts a stage with the app running; `close` in `afterAll`. */
export async function killedStage({ replicaWorks = false }: KilledStageOptions = {}): Promise<KilledStage> {
  const database = await testDatabase();
  await asOwner(database.url, (client) => client.query(faultFunction));
  const folder = await mkdtemp(join(tmpdir(), 'countersign-killed-'));
  const gh = await startGitHub();
  const postgres = await startPostgresProxy(database.url);
  const github = await startGitHubProxy(gh.url);
  const owner = gh.createUser('acme');
  const author = gh.createUser('alice');
  const app = gh.createApp({ slug: 'countersign' });
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const keys = JSON.stringify(newKeys('ledger.test'));
  const replica = await startServer(
    {
      databaseUrl: database.url,
      dataDir: join(folder, 'replica'),
      keys,
      inherit,
      logLevel: 'silent',
      host: '127.0.0.1',
      port: 0,
      publicUrl: url,
      appId: String(app.id),
      privateKey: app.privateKey,
      webhookSecrets: [app.webhookSecret],
      apiUrl: gh.apiUrl,
      serverUrl: gh.url,
      oidcIssuer: gh.oidc.issuer,
      oidcAudience: null,
      signIn: null,
    },
    replicaWorks ? { graceMs: 2_000 } : { worker: false },
  );
  gh.deliverTo(app, `${url}/api/github/webhooks`);

  /** A process that has loaded the app and waits for its word. */
  const prepare = () =>
    startChild('app', [], {
      PATH: process.env['PATH'],
      HOME: process.env['HOME'],
      DATABASE_URL: postgres.url,
      COUNTERSIGN_DATA_DIR: join(folder, 'app'),
      COUNTERSIGN_KEYS: keys,
      LOG_LEVEL: 'info',
      PORT: String(port),
      PUBLIC_URL: url,
      APP_ID: String(app.id),
      PRIVATE_KEY: app.privateKey,
      WEBHOOK_SECRET: app.webhookSecret,
      GITHUB_API_URL: gh.apiUrl.replace(gh.url, github.url),
      GITHUB_SERVER_URL: github.url,
      ACTIONS_OIDC_ISSUER: gh.oidc.issuer,
    });
  let spare = prepare();
  let child = spare;
  let starts = 0;
  let down = true;
  /** Resolves when the app listens again after its last kill. */
  let up: Promise<void> = Promise.resolve();
  let broken: Error | null = null;
  let closed = false;

  const start = async (): Promise<void> => {
    // a process that is killed while it starts is followed by the next
    while (down && !closed) {
      const started = spare;
      child = started;
      down = false;
      starts += 1;
      void started.ended.then((code) => {
        if (child === started && !down)
          broken = new Error(
            `the app ended by itself with ${code}:\n${started.errors()}${started.lines.slice(-20).join('\n')}`,
          );
      });
      started.process.stdin.write('go\n');
      try {
        while (!(await started.line()).includes('"listening"'));
      } catch (error) {
        if (!down) throw error;
      }
      if (!closed) spare = prepare();
    }
  };
  let starting = false;
  const revive = () => {
    if (starting) return;
    starting = true;
    up = start().finally(() => {
      starting = false;
    });
    up.catch((error: Error) => {
      broken ??= error;
    });
  };
  const running = async () => {
    await up;
    if (broken !== null) throw broken;
  };

  const busy = async () => {
    const found = await database.database.pool.query<{ n: string }>(
      'select count(*) as n from graphile_worker.jobs where attempts < max_attempts and (run_at <= now() or locked_at is not null)',
    );
    return Number(found.rows[0]?.n);
  };
  /** What is left to do, and what the app said last. */
  const told = async () => {
    const jobs = await database.database.pool.query(
      'select task_identifier, key, attempts, run_at, locked_at, locked_by, last_error from graphile_worker.jobs',
    );
    return [...jobs.rows.map((row) => JSON.stringify(row)), ...child.lines.slice(-20)].join('\n');
  };
  const settle = async (end: number) => {
    for (let quiet = 0; quiet < 3; ) {
      await running();
      await gh.idle(Math.max(1, end - Date.now()));
      quiet = !down && !starting && (await busy()) === 0 ? quiet + 1 : 0;
      if (Date.now() > end) throw new Error(`${await busy()} jobs are still to do:\n${await told()}`);
      await new Promise((done) => setTimeout(done, 15));
    }
  };

  const stage: KilledStage = {
    gh,
    app,
    author,
    database,
    postgres,
    github,
    replica,
    url,
    get starts() {
      return starts;
    },
    log: () => child.lines,
    kill() {
      if (down) return;
      down = true;
      const dead = child;
      dead.kill();
      void dead.ended.then(revive);
    },
    async repository(name) {
      const repository = await gh.createRepository({
        owner,
        name,
        collaborators: [[author, 'write']],
        files: {
          'README.md': '# sample\n',
          '.github/countersign.yml': markerPolicy(),
          '.github/workflows/countersign.yml': workflow(url),
        },
      });
      repository.requireCheck('countersign', app);
      await gh.installApp(app, repository);
      return repository;
    },
    async open(repository) {
      await repository.commit({
        branch: 'topic',
        author,
        message: 'Add a and b',
        files: { 'src/a.ts': 'export const a = 1; // BUG\n', 'src/b.ts': 'export const b = 2;\n' },
      });
      await repository.commit({
        branch: 'topic',
        author,
        message: 'Add c',
        files: { 'src/c.ts': 'export const c = 3; // NIT\n' },
      });
      return repository.openPull({ head: 'topic', user: author });
    },
    async run(pull) {
      const installation = gh.world.installations.find((one) => one.repositoryIds?.has(pull.repository.id));
      const run = await findRunOfPull(database.database.db, {
        installationId: String(installation?.id),
        repositoryId: String(pull.repository.id),
        pull: String(pull.number),
      });
      if (run === null) throw new Error('no run');
      return run;
    },
    async rows(pull) {
      const { verdict, rows } = await verifyRun(replica.deps, await stage.run(pull), { full: true });
      if (verdict.kind !== 'intact') throw new Error(`ledger: ${JSON.stringify(verdict)}`);
      return rows;
    },
    gate: (pull) => gh.governing(pull.repository, pull.head.sha, 'countersign', app),
    query: async <T extends Record<string, unknown>>(text: string, values: readonly unknown[] = []) =>
      (await database.database.pool.query<T>(text, [...values])).rows,
    async finish(done, timeoutMs = 120_000) {
      const end = Date.now() + timeoutMs;
      for (let step = 0; ; step++) {
        await settle(end);
        // a sweep of the app may have begun something since it was quiet
        if ((await done()) && gh.world.pending.size === 0 && (await busy()) === 0) return;
        if (Date.now() > end) throw new Error(`it does not come to its end:\n${await told()}`);
        // what failed waits for its next attempt, which the queue times by the machine's clock
        await database.database.pool.query(
          'update graphile_worker._private_jobs set run_at = now() where run_at > now() and locked_at is null',
        );
        if (step > 0) {
          await database.moveClock(STEP_MS);
          gh.advance(STEP_MS);
        }
        await replica.sweep();
      }
    },
    async close() {
      closed = true;
      down = true;
      for (const one of [child, spare]) one.kill();
      await Promise.all([child.ended, spare.ended]);
      await replica.close();
      await gh.close();
      await github.close();
      await postgres.close();
      await database.drop();
      await rm(folder, { recursive: true, force: true });
      if (gh.violations.length > 0) throw new Error(`the sandbox objects:\n${gh.violations.join('\n')}`);
    },
  };
  revive();
  await running();
  return stage;
}
