/** A server whose jobs a test runs itself, before a sandbox GitHub: deliveries come in by HTTP, work is done step by step. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Config } from '../../app/config.ts';
import type { Log } from '../../app/flow/deps.ts';
import { ORDER, type WorkDeps } from '../../app/flow/order.ts';
import { verifyRun } from '../../app/flow/verify-run.ts';
import { type RunningServer, startServer } from '../../app/server.ts';
import { workReady } from '../../app/worker.ts';
import { findRunOfPull, type Run } from '../../db/store/run.ts';
import { type SandboxGitHub, startGitHub } from '../../sandbox/github.ts';
import type { App, CheckRun, Installation, User } from '../../sandbox/model.ts';
import type { Pull } from '../../sandbox/pull.ts';
import type { Repository } from '../../sandbox/repository.ts';
import { type TestDatabase, testDatabase } from './database.ts';

/** The least policy that has a reviewer. */
export const POLICY = `version: 1
reviewers:
  lint:
    uses: command
    run: [lint, "{path}"]
    output: sarif
    paths: ["**"]
    trusted: true
`;
const WORKFLOW = 'on: workflow_dispatch\njobs: {}\n';

/** Everything that runs for one test file. */
export interface InboxStage {
  readonly gh: SandboxGitHub;
  readonly app: App;
  readonly alice: User;
  readonly server: RunningServer;
  readonly deps: WorkDeps;
  readonly database: TestDatabase;
  readonly config: Config;
  readonly logged: { readonly level: string; readonly event: string; readonly fields: object }[];
  /** A repository with policy (null: none) and workflow on main, the App installed. */
  repository(options?: {
    name?: string;
    owner?: User;
    policy?: string | null;
    files?: Record<string, string>;
  }): Promise<{ repository: Repository; installation: Installation }>;
  /** Opens a pull request of one changed file. */
  open(repository: Repository, branch: string, options?: { user?: User; draft?: boolean }): Promise<Pull>;
  /** Lets deliveries arrive and works jobs until nothing is left. */
  settle(): Promise<void>;
  /** Starts a further server on the same database, jobs not run by itself. */
  another(): Promise<RunningServer>;
  run(pull: Pull): Promise<Run | null>;
  /** Kinds of the verified rows of a pull request's run. */
  kinds(pull: Pull): Promise<string[]>;
  rows(pull: Pull): Promise<Awaited<ReturnType<typeof verifyRun>>['rows']>;
  gates(pull: Pull, sha?: string): CheckRun[];
  query<T extends Record<string, unknown>>(text: string): Promise<T[]>;
  close(): Promise<void>;
}

/** Starts a stage; `close` in `afterAll`. `through` puts something between the server and its database. */
export async function inboxStage(
  through: (url: string) => Promise<string> = async (url) => url,
): Promise<InboxStage> {
  const database = await testDatabase();
  const gh = await startGitHub();
  const folder = await mkdtemp(join(tmpdir(), 'cs-inbox-'));
  const app = gh.createApp({ slug: 'countersign' });
  const alice = gh.createUser('alice');
  const logged: InboxStage['logged'] = [];
  const note = (level: string) => (fields: object, event: string) => {
    logged.push({ level, event, fields });
  };
  const log: Log = { info: note('info'), warn: note('warn'), error: note('error') };
  const config: Config = {
    databaseUrl: await through(database.url),
    dataDir: folder,
    keys: null,
    inherit: (names) => Object.fromEntries(names.map((name) => [name, process.env[name] ?? ''])),
    logLevel: 'silent',
    host: '127.0.0.1',
    port: 0,
    publicUrl: null,
    appId: String(app.id),
    privateKey: app.privateKey,
    webhookSecrets: [app.webhookSecret],
    apiUrl: gh.apiUrl,
    serverUrl: gh.url,
    oidcIssuer: 'https://issuer.test',
    oidcAudience: null,
    signIn: null,
  };
  const servers: RunningServer[] = [];
  const start = async () => {
    const made = await startServer(config, { log, worker: false, graceMs: 2_000 });
    servers.push(made);
    return made;
  };
  const server = await start();
  gh.deliverTo(app, `${server.url}/api/github/webhooks`);
  const { deps } = server;
  const find = (pull: Pull) => {
    const installation = gh.world.installations.findLast(
      (one) =>
        !one.deleted && (one.repositoryIds?.has(pull.repository.id) ?? one.account === pull.repository.owner),
    );
    return findRunOfPull(deps.database.db, {
      installationId: String(installation?.id),
      repositoryId: String(pull.repository.id),
      pull: String(pull.number),
    });
  };
  const rowsOf: InboxStage['rows'] = async (pull) => {
    const run = await find(pull);
    if (run === null) return [];
    const { verdict, rows } = await verifyRun(deps, run, { full: true });
    if (verdict.kind !== 'intact') throw new Error(`the ledger is ${verdict.kind}`);
    return rows;
  };
  let serial = 0;

  return {
    gh,
    app,
    alice,
    server,
    deps,
    database,
    config,
    logged,
    async repository({ name, owner = alice, policy = POLICY, files = {} } = {}) {
      serial += 1;
      const repository = await gh.createRepository({
        owner,
        name: name ?? `sample-${serial}`,
        files: {
          'a.ts': 'export {};\n',
          ...(policy === null ? {} : { '.github/countersign.yml': policy }),
          '.github/workflows/countersign.yml': WORKFLOW,
          ...files,
        },
      });
      return { repository, installation: await gh.installApp(app, repository) };
    },
    async open(repository, branch, { user = alice, draft = false } = {}) {
      await repository.commit({ branch, message: `Change ${branch}`, files: { 'a.ts': `// ${branch}\n` } });
      return repository.openPull({ head: branch, user, draft });
    },
    async settle() {
      for (let turn = 0; turn < 20; turn++) {
        await gh.idle();
        await workReady(deps);
        await gh.idle();
        const { rows } = await deps.database.pool.query(
          `select 1 from graphile_worker.jobs where run_at <= now() and attempts < max_attempts
             and task_identifier = any ($1) limit 1`,
          [ORDER.filter((arrow) => arrow.run !== undefined).map((arrow) => arrow.name)],
        );
        if (rows.length === 0) return;
      }
      throw new Error('work never ends');
    },
    another: start,
    run: find,
    rows: rowsOf,
    kinds: async (pull) => (await rowsOf(pull)).map((row) => row.kind),
    gates: (pull, sha = pull.head.sha) =>
      gh.checkRuns(pull.repository, sha).filter((run) => run.name === 'countersign'),
    query: async (text) => (await deps.database.pool.query(text)).rows,
    async close() {
      for (const one of servers) await one.close();
      await gh.close();
      await rm(folder, { recursive: true, force: true });
      await database.drop();
    },
  };
}
