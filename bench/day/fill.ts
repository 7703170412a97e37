/** Fills a database for a day, and queues a pull request as cut-tickets does: the rows, and their windows. */
import { createHash } from 'node:crypto';
import { turnOf } from '../../app/domain/cut.ts';
import { parsePolicy } from '../../app/domain/policy.ts';
import type { TicketReviewer, TicketSpec } from '../../app/domain/review.ts';
import { ticketId } from '../../app/domain/ticket.ts';
import { openRun } from '../../app/flow/append-rows.ts';
import type { Deps } from '../../app/flow/deps.ts';
import { pointTicketsOf } from '../../app/flow/point-tickets.ts';
import { PROMPT_VERSION } from '../../app/protocol/runner.ts';
import { putFiles, type StoredFile } from '../../db/store/file.ts';
import { storePolicy } from '../../db/store/policy.ts';
import { productNow } from '../../db/store/run.ts';
import { type NewTicket, putTickets } from '../../db/store/ticket.ts';
import type { Arrival, Trace, Work } from './trace.ts';

const POLICY = Buffer.from(`version: 1
reviewers:
  lint:
    uses: command
    run: [lint, "{path}"]
    output: sarif
    paths: ["**"]
    trusted: true
  first:
    uses: anthropic
    model: m-1
    fallbacks: [other-openai]
  second:
    uses: openai
    model: m-2
    fallbacks: [other-anthropic]
  other-openai:
    uses: openai
    model: m-2
  other-anthropic:
    uses: anthropic
    model: m-1
levels:
  L1: [lint]
  L2: [first]
  L3: [second]
`);
const parsed = parsePolicy(POLICY);
if (!parsed.ok) throw new Error(`the day's policy: ${JSON.stringify(parsed)}`);
const { policy } = parsed;
/** The hash of the day's policy. */
export const DAY_POLICY_HASH = createHash('sha256').update(POLICY).digest('hex');

const sha = (text: string) => createHash('sha256').update(text).digest('hex');
const OID = 'a'.repeat(40);

/** The installations, repositories, providers and slots of all tenants. */
export async function fillTenants(deps: Deps, trace: Trace): Promise<void> {
  const { tenants } = trace;
  await deps.database.transaction(async (tx) => {
    await storePolicy(tx, POLICY);
    const rows = JSON.stringify(tenants);
    const json = `json_to_recordset($1::json) as t(id bigint, account bigint, owner text, repositories json, slots int)`;
    await tx.$client.query(
      `insert into installation (id, account_id, account_login, status, permissions, updated_at)
       select id, account, owner, 'active', '{}', cs_now() from ${json}`,
      [rows],
    );
    await tx.$client.query(
      `insert into repository (id, installation_id, owner_id, owner, name, default_branch, private, status, updated_at)
       select r::bigint, t.id, t.account, t.owner, 'r' || r, 'main', false, 'active', cs_now()
       from ${json}, json_array_elements_text(t.repositories) r`,
      [rows],
    );
    await tx.$client.query(
      `insert into provider (installation_id, name) select t.id, p from ${json}, unnest(array['anthropic', 'command', 'openai']) p`,
      [rows],
    );
    await tx.$client.query(
      `insert into slot (installation_id, provider, no)
       select t.id, p, n from ${json}, unnest(array['anthropic', 'openai']) p, generate_series(1, t.slots) n`,
      [rows],
    );
  });
}

const COMMAND_REVIEWER: TicketReviewer = {
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
};
/** Each model's reviewer, and the one it may fall back to. */
const MODELS: Record<'anthropic' | 'openai', readonly [TicketReviewer, TicketReviewer]> = {
  anthropic: [
    { name: 'first', uses: 'anthropic', model: 'm-1', fallbacks: ['other-openai'] },
    { name: 'other-openai', uses: 'openai', model: 'm-2' },
  ],
  openai: [
    { name: 'second', uses: 'openai', model: 'm-2', fallbacks: ['other-anthropic'] },
    { name: 'other-anthropic', uses: 'anthropic', model: 'm-1' },
  ],
};

/** The run of the day's n-th pull request. */
export const runName = (pull: number) => `run${String(pull).padStart(8, '0')}`;

/** Opens a run with its files and tickets in one commit; the ids of the tickets in the order of the files. */
export async function queueArrival(deps: Deps, arrival: Arrival, pull: number): Promise<string[]> {
  const runId = runName(pull);
  const moment = await productNow(deps.database.db);
  const opened = await openRun(
    deps,
    {
      id: runId,
      installationId: arrival.tenant.id,
      repositoryId: arrival.repository,
      pull: String(pull),
      epoch: 1,
      status: 'open',
      toldHead: OID,
      head: OID,
      baseRef: 'main',
      base: OID,
      mergeBase: OID,
      policyHash: DAY_POLICY_HASH,
      allowedRule: 'same_repository',
      allowedScope: 'author',
      allowedHead: OID,
      headAt: moment,
      openedAt: moment,
    },
    async (unit) => {
      unit.append('run.opened', {
        block: null,
        actor: { kind: 'app', id: '7', via: 'delivery' },
        cause: { kind: 'delivery', id: runId, sha256: null },
        data: { pull: String(pull), group_head: null, epoch: 1, author: null, reason: 'opened' },
      });
      const tickets = arrival.files.map((work, i) => ticketOf(runId, arrival, pull, work, i));
      await putFiles(
        unit.tx,
        tickets.map((ticket) => fileOf(runId, ticket)),
      );
      await putTickets(unit.tx, tickets);
      if ((await pointTicketsOf(unit, policy)) > 0)
        unit.enqueue(
          'dispatch',
          { repository: arrival.repository },
          { key: `dispatch:${arrival.repository}` },
        );
      return tickets.map((ticket) => ticket.id);
    },
  );
  if (opened === undefined) throw new Error(`${runId} was opened before`);
  return opened;
}

/** The day's policy as parsed, for what points tickets anew. */
export const dayPolicy = policy;

function ticketOf(runId: string, arrival: Arrival, pull: number, work: Work, i: number): NewTicket {
  const key = sha(`${runId} ${i}`);
  const block = 'changes';
  const [reviewers, fallbacks] =
    work.provider === 'command'
      ? [[COMMAND_REVIEWER], []]
      : [[MODELS[work.provider][0]], [MODELS[work.provider][1]]];
  const spec: TicketSpec = {
    kind: 'review',
    pull: String(pull),
    mode: { base: '100644', head: '100644' },
    blob: { base: OID, head: sha(key).slice(0, 40) },
    head: OID,
    merge_base: OID,
    block: { id: block, title: 'Changes', brief: '' },
    reviewers,
    fallbacks,
    lenses: ['correctness'],
    max_lines: 3_000,
    timeout_ms: 300_000,
    prompt_version: PROMPT_VERSION,
  };
  return {
    id: ticketId({ run: runId, block, key, round: 0 }),
    runId,
    installationId: arrival.tenant.id,
    repositoryId: arrival.repository,
    blockId: block,
    path: Buffer.from(`src/file-${i}.ts`),
    fromPath: null,
    key,
    round: 0,
    state: 'pending',
    level: work.provider === 'command' ? 'L1' : 'L2',
    policyHash: DAY_POLICY_HASH,
    spec,
    reviewers: reviewers.map((one) => one.name),
    provider: work.provider,
    providers: [...reviewers, ...fallbacks].map((one) => one.uses),
    parallel: policy.review.parallel,
    turn: turnOf(i, 1),
  };
}

function fileOf(runId: string, ticket: NewTicket): StoredFile {
  return {
    runId,
    path: ticket.path,
    fromPath: null,
    status: 'M',
    modeBase: '100644',
    modeHead: '100644',
    blobBase: OID,
    blobHead: ticket.spec.blob.head,
    kind: 'code',
    level: ticket.level,
    asked: null,
    reason: null,
    lines: null,
    blockId: ticket.blockId,
    ownership: 'owned',
    key: ticket.key,
  };
}
