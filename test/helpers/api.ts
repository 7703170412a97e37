/** The runner API served over HTTP for a test file, with a local issuer and everything a runner says. */
import { randomUUID } from 'node:crypto';
import type { AddressInfo } from 'node:net';
import { serve } from '@hono/node-server';
import { sql } from 'drizzle-orm';
import { expect } from 'vitest';
import type * as z from 'zod';
import { cutTickets } from '../../app/flow/cut-tickets.ts';
import type { Deps } from '../../app/flow/deps.ts';
import { secretHash } from '../../app/flow/login.ts';
import type { GitHub } from '../../app/github/port.ts';
import { runnerApi } from '../../app/http/runner-api.ts';
import { createVerifier } from '../../app/http/runner-auth.ts';
import type { leaseResponse, TicketResult } from '../../app/protocol/runner.ts';
import { addDispatch } from '../../db/store/dispatch.ts';
import { type TestDatabase, testDatabase } from './database.ts';
import { type TestIssuer, testIssuer } from './issuer.ts';
import {
  changedFile,
  INSTALLATION,
  OWNER,
  openQueueRun,
  queueDeps,
  REPOSITORY,
  seedRepository,
  setFiles,
} from './queue.ts';

/** A lease as the API gives it. */
export type Lease = z.infer<typeof leaseResponse>['leases'][number];
/** Any answer of the API; each test says what it expects of it. */
interface Answered {
  readonly leases: Lease[];
  readonly next: { readonly leases: Lease[]; readonly done: boolean };
  readonly token: string;
  readonly runner: string;
  readonly session: string;
  readonly outcome: string;
  readonly paths: Record<string, unknown>;
  readonly error: { readonly code: string };
}

/** The audience of tokens that count. */
export const AUDIENCE = 'https://countersign.test';
/** The test's own database, issuer and effects; set by `startApi`. */
export let db: TestDatabase;
export let issuer: TestIssuer;
export let deps: Deps;
let base: string;
let close: () => Promise<void>;

/** Serves the runner API over HTTP on a database of its own; call it in `beforeAll`. */
export async function startApi(): Promise<void> {
  db = await testDatabase();
  issuer = await testIssuer();
  deps = queueDeps(db.database);
  deps = {
    ...deps,
    github: { ...deps.github, slug: async () => 'countersign', installation: async () => github },
  };
  const verify = createVerifier({ issuers: [issuer.url], audience: AUDIENCE, cooldownMs: 60_000 });
  // each file's own: a worker loads this module once for all its files, and a server that stops ends every poll at once
  const stopping = new AbortController();
  const app = runnerApi(deps, { verify, stopping: stopping.signal });
  const server = serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' });
  await new Promise<void>((done) => server.once('listening', () => done()));
  base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  close = () =>
    new Promise((done) => {
      stopping.abort();
      server.close(() => done());
    });
  await seedRepository(db.database);
}

/** What GitHub says of a workflow run, or how it fails; a test may set it to another and must set it back. */
export const told: {
  run: Partial<WorkflowRunInfo> | null;
  failure: Error | null;
  /** The token that reads a repository. */
  readToken: GitHub['readToken'];
} = {
  run: {},
  failure: null,
  readToken: async () => 'ghs_test',
};
type WorkflowRunInfo = NonNullable<Awaited<ReturnType<GitHub['getWorkflowRun']>>>;
const github = {
  readToken: (repository: Parameters<GitHub['readToken']>[0]) => told.readToken(repository),
  getWorkflowRun: async (): Promise<WorkflowRunInfo | null> => {
    if (told.failure !== null) throw told.failure;
    if (told.run === null) return null;
    return {
      status: 'in_progress',
      conclusion: null,
      attempt: 1,
      title: 'countersign',
      event: 'workflow_dispatch',
      headSha: 'd'.repeat(40),
      headBranch: 'main',
      path: '.github/workflows/countersign.yml',
      actor: 'countersign[bot]',
      ...told.run,
    };
  },
} as unknown as GitHub;

/** Stops all of it; call it in `afterAll`. */
export async function stopApi(): Promise<void> {
  await close();
  await issuer.close();
  await db.drop();
}

/** Takes away what an earlier test queued; call it in `beforeEach`. */
export async function clearQueue(): Promise<void> {
  await db.database.db.execute(sql`delete from finding`);
  await db.database.db.execute(sql`update run set status = 'closed'`);
  await db.database.db.execute(sql`delete from ticket`);
  await db.database.db.execute(sql`delete from lease`);
  await db.database.db.execute(sql`update slot set session_id = null`);
  await db.database.db.execute(sql`delete from slot_wish`);
}

/** One call over HTTP. */
export async function call(path: string, body?: unknown, token?: string, signal?: AbortSignal) {
  const response = await fetch(`${base}${path}`, {
    method: body === undefined ? 'GET' : 'POST',
    ...(signal === undefined ? {} : { signal }),
    headers: {
      'content-type': 'application/json',
      // a refused body leaves a connection that the next request must not use
      connection: 'close',
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
    },
    ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  });
  return { status: response.status, body: (await response.json()) as Answered };
}

let workflowRuns = 31_700_000_003;
/** A workflow run id of its own, past 2^31 (case 70). */
export const nextWorkflowRun = () => String(workflowRuns++);

/** A dispatch that no runner answered yet. */
export async function dispatched(run: string): Promise<{ nonce: string; workflowRun: string }> {
  const nonce = randomUUID();
  await db.database.transaction((tx) =>
    addDispatch(
      tx,
      {
        id: randomUUID(),
        installationId: INSTALLATION,
        repositoryId: REPOSITORY,
        runId: run,
        pool: 'countersign.yml',
        workflow: 'countersign.yml',
        generation: 1,
        nonceHash: secretHash(nonce),
      },
      600_000,
    ),
  );
  return { nonce, workflowRun: nextWorkflowRun() };
}

/** Claims of a good token of that workflow run. */
export function claims(of: { workflowRun: string }, more: Record<string, unknown> = {}) {
  return {
    aud: AUDIENCE,
    jti: randomUUID(),
    repository: 'acme/shop',
    repository_id: REPOSITORY,
    repository_owner_id: OWNER,
    run_id: of.workflowRun,
    run_attempt: '1',
    check_run_id: '4900000001',
    event_name: 'workflow_dispatch',
    ref: 'refs/heads/main',
    ref_type: 'branch',
    workflow_ref: 'acme/shop/.github/workflows/countersign.yml@refs/heads/main',
    job_workflow_ref: 'acme/shop/.github/workflows/countersign.yml@refs/heads/main',
    runner_environment: 'github-hosted',
    sha: 'd'.repeat(40),
    workflow_sha: 'd'.repeat(40),
    ...more,
  };
}

/** The body of a login. */
export const loginBody = (oidc: string, nonce: string | null, keys: readonly string[] | null = null) => ({
  protocol: '1.0',
  oidc,
  nonce,
  version: '0.1.0',
  capacity: 4,
  keys,
});

/** Dispatches for a run and logs its runner in. */
export async function logIn(run: string) {
  const of = await dispatched(run);
  const answer = await call('/api/v1/login', loginBody(await issuer.mint(claims(of)), of.nonce));
  expect(answer.status).toBe(200);
  return { token: answer.body.token, ...of, runner: answer.body.runner };
}

let runs = 0;
/** An open run whose files are cut into tickets. */
export async function runWith(files: readonly string[], level: 'L1' | 'L2' = 'L1') {
  const id = `run-${++runs}`;
  await openQueueRun(deps, id, runs);
  await setFiles(
    deps,
    id,
    files.map((path) => changedFile(id, path, { level })),
  );
  await cutTickets(deps, { run: id });
  return id;
}

/** Leases one ticket; there must be one. */
export async function leaseOne(token: string): Promise<Lease> {
  const answer = await call('/api/v1/leases', { max: 1, wait_ms: 0 }, token);
  expect(answer.status).toBe(200);
  const [lease] = answer.body.leases;
  if (lease === undefined) throw new Error('no lease');
  return lease;
}

/** A good result of a command. */
export function result(lease: Lease, more: Partial<TicketResult> = {}): TicketResult {
  return {
    end: 'reviewed',
    detail: null,
    retry_after_ms: null,
    blobs: lease.ticket.blob,
    verdict: 'approve',
    partial: false,
    sessions: [
      {
        id: `${lease.id}.1`,
        reviewer: lease.ticket.reviewers[0]?.name ?? '',
        provider: 'command',
        model: null,
        end: 'complete',
        detail: null,
        exit: 0,
        tokens_in: 0,
        tokens_out: 0,
        cost_micro: 0,
        ms: 5,
      },
    ],
    findings: [],
    unplaced: [],
    brief_sha256: null,
    ms: 6,
    ...more,
  };
}

/** Submits a result under a lease. */
export const submit = (lease: Lease, token: string, value: TicketResult) =>
  call(`/api/v1/leases/${lease.id}/submit`, { token: lease.token, grant: lease.grant, result: value }, token);
