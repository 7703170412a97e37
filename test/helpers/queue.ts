/** Seeds the queue of a test database: an installation, a repository, open runs, tickets, a login. */
import { createHash, randomBytes } from 'node:crypto';
import { sql } from 'drizzle-orm';
import type { TicketSpec } from '../../app/domain/review.ts';
import type { Deps } from '../../app/flow/deps.ts';
import type { Signer } from '../../app/signing/signer.ts';
import type { Database, Tx } from '../../db/client.ts';
import { putFiles, type StoredFile } from '../../db/store/file.ts';
import { upsertInstallation, upsertRepository } from '../../db/store/installation.ts';
import { storePolicy } from '../../db/store/policy.ts';
import { ensureProviders } from '../../db/store/provider.ts';
import { insertRun } from '../../db/store/run.ts';
import { addLogin, addRunner } from '../../db/store/runner.ts';
import { fillWindows, type NewTicket, putTickets } from '../../db/store/ticket.ts';
import { openTestRun, testSigner } from './ledger.ts';

/** Ids above 2^53 on purpose (case 70). */
export const INSTALLATION = '9007199254740995';
export const REPOSITORY = '9007199254740997';
export const OWNER = '4900000001';

/** SHA-256 in hex of a text. */
export const sha = (text: string) => createHash('sha256').update(text).digest('hex');
/** The hash a token is stored by. */
export const tokenHash = (token: string) => createHash('sha256').update(token).digest();

/** An installation with one repository and its providers. */
export async function seedRepository(
  database: Database,
  options: { readonly slots?: number; readonly providers?: readonly string[] } = {},
): Promise<void> {
  await database.transaction(async (tx) => {
    await upsertInstallation(tx, {
      id: INSTALLATION,
      accountId: OWNER,
      accountLogin: 'acme',
      status: 'active',
    });
    await upsertRepository(tx, {
      id: REPOSITORY,
      installationId: INSTALLATION,
      ownerId: OWNER,
      owner: 'acme',
      name: 'shop',
      defaultBranch: 'main',
      private: false,
    });
    await ensureProviders(tx, INSTALLATION, options.providers ?? ['command', 'openai'], options.slots ?? 4);
  });
}

/** An open run that may spend. */
export async function seedRun(database: Database, id: string, pull: number): Promise<void> {
  await database.transaction(async (tx) => {
    await insertRun(tx, {
      id,
      installationId: INSTALLATION,
      repositoryId: REPOSITORY,
      pull: String(pull),
      epoch: 1,
      status: 'open',
      toldHead: 'a'.repeat(40),
      head: 'a'.repeat(40),
      baseRef: 'main',
      base: 'b'.repeat(40),
      mergeBase: 'b'.repeat(40),
      policyHash: sha('policy'),
      allowedRule: 'same_repository',
      allowedScope: 'author',
      allowedHead: 'a'.repeat(40),
      headAt: sql`cs_now()` as unknown as Date,
      openedAt: sql`cs_now()` as unknown as Date,
    });
  });
}

/** A ticket's spec with nothing special in it. */
export function plainSpec(path: string, provider: string): TicketSpec {
  return {
    kind: 'review',
    pull: '1',
    mode: { base: null, head: '100644' },
    blob: { base: null, head: sha(path).slice(0, 40) },
    head: 'a'.repeat(40),
    merge_base: 'b'.repeat(40),
    block: { id: 'block', title: 'Block', brief: '' },
    reviewers: [
      provider === 'command'
        ? {
            name: 'lint',
            uses: 'command',
            command: {
              run: ['lint', '{path}'],
              output: 'sarif',
              paths: ['**'],
              ok_exit: [0, 1],
              deletions: false,
              config: [],
              severity: { error: 'high', warning: 'medium', note: 'low' },
            },
          }
        : { name: 'model', uses: 'openai' },
    ],
    fallbacks: [],
    lenses: ['correctness'],
    max_lines: 3000,
    timeout_ms: 300_000,
    prompt_version: '1',
  };
}

/** A ticket of a run. */
export function plainTicket(
  runId: string,
  path: string,
  options: {
    readonly block?: string;
    readonly provider?: string;
    readonly parallel?: number;
    readonly turn?: number;
  } = {},
): NewTicket {
  const provider = options.provider ?? 'command';
  return {
    id: sha(`${runId} ${options.block ?? 'block'} ${path} 0`),
    runId,
    installationId: INSTALLATION,
    repositoryId: REPOSITORY,
    blockId: options.block ?? 'block',
    path: Buffer.from(path),
    fromPath: null,
    key: sha(`key ${path}`),
    round: 0,
    state: 'pending',
    level: 'L1',
    policyHash: sha('policy'),
    spec: plainSpec(path, provider),
    reviewers: [provider === 'command' ? 'lint' : 'model'],
    provider,
    providers: [provider],
    parallel: options.parallel ?? 6,
    turn: options.turn ?? 0,
  };
}

/** Adds tickets and fills the windows of their runs. */
export async function seedTickets(database: Database, tickets: readonly NewTicket[]): Promise<void> {
  await database.transaction(async (tx) => {
    await putTickets(tx, tickets);
    for (const runId of new Set(tickets.map((one) => one.runId))) await fillWindows(tx, runId);
  });
}

/** A login that holds; its id and its token. */
export async function seedLogin(
  database: Database,
  runId: string | null = null,
  repositoryId = REPOSITORY,
  installationId = INSTALLATION,
): Promise<{ id: string; token: string }> {
  const id = randomBytes(8).toString('hex');
  const token = randomBytes(32).toString('base64url');
  await database.transaction(async (tx: Tx) => {
    await addRunner(tx, {
      id,
      installationId,
      repositoryId,
      pool: 'p',
      workflowRun: null,
      attempt: null,
      job: null,
      version: '1',
      capacity: 4,
      keys: null,
    });
    await addLogin(
      tx,
      {
        id,
        runnerId: id,
        tokenHash: tokenHash(token),
        identity: {
          role: 'worker',
          installation: installationId,
          repository: repositoryId,
          run: runId,
          workflowRun: null,
          attempt: null,
          job: null,
          pool: 'p',
        },
        claims: sha(token),
      },
      600_000,
    );
  });
  return { id, token };
}

/** The arrows' effects on a test database; whatever would call GitHub or git throws. */
export function queueDeps(database: Database, signer: Signer = testSigner(), more: Partial<Deps> = {}): Deps {
  const never = (): never => {
    throw new Error('this test calls no GitHub');
  };
  let n = 0;
  return {
    database,
    signer,
    github: {
      appId: '7',
      slug: never,
      listInstallations: never,
      listRepositories: never,
      listDeliveries: never,
      redeliver: never,
      installation: never,
    },
    git: {
      readPull: never,
      readGroup: never,
      readBlobs: never,
      readPath: never,
      readEntries: never,
      pairSimilar: never,
      isAncestor: never,
    },
    log: { info: () => {}, warn: () => {}, error: () => {} },
    ids: {
      next: () => `${Date.now().toString(36)}${randomBytes(6).toString('hex')}${(n++).toString(36)}`,
      secret: () => randomBytes(32).toString('base64url'),
    },
    settings: { publicUrl: 'http://127.0.0.1', serverUrl: 'https://github.test', version: '0' },
    ...more,
  };
}

/** A policy with a linter and a model; its bytes are the hash the runs and tickets below carry. */
export const POLICY = Buffer.from(`version: 1
reviewers:
  lint:
    uses: command
    run: [lint, "{path}"]
    output: sarif
    paths: ["**"]
    trusted: true
  model:
    uses: openai
    model: m-1
    fallbacks: [other]
  other:
    uses: xai
    model: m-2
levels:
  L1: [lint]
  L2: [model]
  L3: [model]
`);

/** Opens a real run (ledger head and first row) that may spend. */
export async function openQueueRun(
  deps: Deps,
  id: string,
  pull: number,
  place: { readonly installationId: string; readonly repositoryId: string } = {
    installationId: INSTALLATION,
    repositoryId: REPOSITORY,
  },
): Promise<void> {
  const policyHash = await deps.database.transaction((tx) => storePolicy(tx, POLICY));
  const { rows } = await deps.database.db.execute<{ now: string }>(sql`select cs_now()::text as now`);
  const now = new Date(rows[0]?.now ?? '');
  await openTestRun(deps, id, String(pull), {
    ...place,
    toldHead: 'a'.repeat(40),
    head: 'a'.repeat(40),
    baseRef: 'main',
    base: 'b'.repeat(40),
    mergeBase: 'b'.repeat(40),
    policyHash,
    allowedRule: 'same_repository',
    allowedScope: 'author',
    allowedHead: 'a'.repeat(40),
    headAt: now,
    openedAt: now,
  });
}

/** A changed path of a run, as sync stores it. */
export function changedFile(runId: string, path: string, more: Partial<StoredFile> = {}): StoredFile {
  const level = more.level ?? 'L1';
  return {
    runId,
    path: Buffer.from(path),
    fromPath: null,
    status: 'M',
    modeBase: '100644',
    modeHead: '100644',
    blobBase: sha(`base ${path}`).slice(0, 40),
    blobHead: sha(`head ${path}`).slice(0, 40),
    kind: 'code',
    level,
    asked: null,
    reason: null,
    lines: null,
    blockId: 'block',
    ownership: 'owned',
    key: sha(`key ${path} ${level}`),
    ...more,
  };
}

/** Puts files, and removes those of the run that are not among them. */
export async function setFiles(deps: Deps, runId: string, files: readonly StoredFile[]): Promise<void> {
  await deps.database.transaction(async (tx) => {
    await tx.execute(sql`delete from file where run_id = ${runId}`);
    await putFiles(tx, files);
  });
}
