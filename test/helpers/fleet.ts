/**
 * A fleet: several processes of the real app on one database behind one address, the sandbox as GitHub,
 * whose jobs run the built Action as processes of their own. Anything of it can be killed at any time.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { workflowFile } from '../../app/domain/workflow.ts';
import { verifyRun } from '../../app/flow/verify-run.ts';
import { type RunningServer, startServer } from '../../app/server.ts';
import { newKeys } from '../../app/signing/keys.ts';
import type { WorkflowRun } from '../../sandbox/actions/run.ts';
import { type SandboxGitHub, startGitHub } from '../../sandbox/github.ts';
import type { App, User } from '../../sandbox/model.ts';
import type { Repository } from '../../sandbox/repository.ts';
import { type TestDatabase, testDatabase } from './database.ts';
import { type Child, startChild } from './process.ts';
import { inherit, markerPolicy } from './stage.ts';

/** Everything that runs. */
export interface Fleet {
  readonly gh: SandboxGitHub;
  readonly app: App;
  readonly author: User;
  readonly database: TestDatabase;
  /** A server in this process that runs no jobs: its arrows verify, its sweeps can be called. */
  readonly witness: RunningServer;
  /** Kills so far, of apps and of runners. */
  readonly kills: { apps: number; runners: number };
  /** kill -9 of one of the apps that are up, which is started again at once; the last one is left. False: it was. */
  killApp(n: number): boolean;
  /** Jobs of the Action that run now. */
  jobs(): readonly WorkflowRun[];
  /** kill -9 of a job with all it started; GitHub says so after `reportMs`. */
  killRunner(job: WorkflowRun, reportMs: number): void;
  repository(name: string, capacity: number): Promise<Repository>;
  query<T extends Record<string, unknown>>(text: string, values?: readonly unknown[]): Promise<T[]>;
  /** What an app that ended by itself said last, and violations of the sandbox. */
  troubles(): readonly string[];
  close(): Promise<void>;
}

/** How long a runner waits for more work: its job lives on through a pause in the pull requests. */
const IDLE_MS = 5_000;

/** Starts a fleet of so many apps. */
export async function startFleet(apps: number): Promise<Fleet> {
  const database = await testDatabase();
  const folder = await mkdtemp(join(tmpdir(), 'countersign-fleet-'));
  const gh = await startGitHub();
  const owner = gh.createUser('acme');
  const author = gh.createUser('alice');
  const app = gh.createApp({ slug: 'countersign' });
  const ports: (number | null)[] = Array.from({ length: apps }, () => null);
  const front = await startFront(ports);
  const url = `http://127.0.0.1:${(front.address() as AddressInfo).port}`;
  const keys = JSON.stringify(newKeys('ledger.test'));
  const witness = await startServer(
    {
      databaseUrl: database.url,
      dataDir: join(folder, 'witness'),
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
    { worker: false },
  );
  gh.deliverTo(app, `${url}/api/github/webhooks`);

  const kills = { apps: 0, runners: 0 };
  const troubles: string[] = [];
  const children: (Child | null)[] = ports.map(() => null);
  const reports = new Set<NodeJS.Timeout>();
  let closed = false;

  const start = async (n: number): Promise<void> => {
    const child = startChild('app', [], {
      PATH: process.env['PATH'],
      HOME: process.env['HOME'],
      DATABASE_URL: database.url,
      COUNTERSIGN_DATA_DIR: join(folder, `app-${n}`),
      COUNTERSIGN_KEYS: keys,
      LOG_LEVEL: 'info',
      PORT: '0',
      PUBLIC_URL: url,
      APP_ID: String(app.id),
      PRIVATE_KEY: app.privateKey,
      WEBHOOK_SECRET: app.webhookSecret,
      GITHUB_API_URL: gh.apiUrl,
      GITHUB_SERVER_URL: gh.url,
      ACTIONS_OIDC_ISSUER: gh.oidc.issuer,
    });
    children[n] = child;
    child.process.stdin.write('go\n');
    void child.ended.then(async (code) => {
      ports[n] = null;
      if (closed) return;
      if (code !== 'SIGKILL')
        troubles.push(`app ${n} ended by itself with ${code}: ${child.errors()}${child.lines.slice(-5)}`);
      await start(n).catch((error: Error) => troubles.push(error.message));
    });
    for (;;) {
      const line = await child.line().catch(() => null);
      // killed while it started: the next one is on its way
      if (line === null) return;
      if (!line.includes('"listening"')) continue;
      ports[n] = Number(new URL((JSON.parse(line) as { url: string }).url).port);
      return;
    }
  };
  await Promise.all(ports.map((_, n) => start(n)));

  return {
    gh,
    app,
    author,
    database,
    witness,
    kills,
    killApp(n) {
      const up = ports.flatMap((port, i) => (port === null ? [] : [i]));
      const at = up[n % Math.max(1, up.length)];
      if (at === undefined || up.length < 2) return false;
      kills.apps++;
      children[at]?.kill();
      return true;
    },
    jobs: () => gh.actions.runs.filter((run) => run.status === 'in_progress' && !run.lost),
    killRunner(job, reportMs) {
      kills.runners++;
      gh.actions.lose(job);
      const timer = setTimeout(() => {
        reports.delete(timer);
        gh.world.background('report', () => gh.actions.reportLost(job));
      }, reportMs);
      reports.add(timer);
    },
    async repository(name, capacity) {
      const repository = await gh.createRepository({
        owner,
        name,
        collaborators: [[author, 'write']],
        files: {
          'README.md': '# sample\n',
          '.github/countersign.yml': markerPolicy(
            `pools:\n  - kind: workflow\n    capacity: ${capacity}\nreview:\n  parallel: 16\n`,
          ),
          '.github/workflows/countersign.yml': workflowFile({
            serverUrl: url,
            ref: 'countersign-dev/countersign@v0',
            keys: [],
          }).replace('with:\n', `with:\n          idle_ms: "${IDLE_MS}"\n          parallel: "2"\n`),
        },
      });
      repository.requireCheck('countersign', app);
      await gh.installApp(app, repository);
      return repository;
    },
    query: async <T extends Record<string, unknown>>(text: string, values: readonly unknown[] = []) =>
      (await database.database.pool.query<T>(text, [...values])).rows,
    troubles: () => [...troubles, ...gh.violations],
    async close() {
      closed = true;
      for (const timer of reports) clearTimeout(timer);
      for (const child of children) child?.kill();
      await Promise.all(children.map((child) => child?.ended));
      await witness.close();
      await gh.close();
      await new Promise<void>((done) => {
        front.close(() => done());
      });
      await database.drop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** One address before all: a connection goes to the next app that is up, as behind any balancer, and ends with it. */
async function startFront(ports: readonly (number | null)[]): Promise<Server> {
  let turn = 0;
  const front = createServer((from: Socket) => {
    from.on('error', () => {});
    const up = ports.filter((port) => port !== null);
    const port = up[turn++ % Math.max(1, up.length)];
    if (port === undefined) {
      from.destroy();
      return;
    }
    const to = connect(port, '127.0.0.1');
    to.on('error', () => from.destroy());
    to.on('close', () => from.destroy());
    from.on('close', () => to.destroy());
    from.pipe(to).pipe(from);
  });
  await new Promise<void>((done) => front.listen(0, '127.0.0.1', done));
  return front;
}

/** Every row of a run's chain, verified from the first to the last; throws unless it is whole. */
export async function rowsOf(fleet: Fleet, run: Parameters<typeof verifyRun>[1]) {
  const { verdict, rows } = await verifyRun(fleet.witness.deps, run, { full: true });
  if (verdict.kind !== 'intact') throw new Error(`ledger of ${run.id}: ${JSON.stringify(verdict)}`);
  return rows;
}
