/** The pull request side of `countersign simulate`: git and GitHub to read with, a database that only reads. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Config } from '../config.ts';
import { changesPull, pullText } from '../domain/simulate/pull-text.ts';
import { type NoPolicy, type SimulatedPull, simulatePull } from '../flow/simulate-pull.ts';
import { GIT_INHERITED } from '../github/git/command.ts';
import { requireGit } from '../github/git/version.ts';
import { createGitReader } from '../github/git.ts';
import { createGitHubApp } from '../github/octokit.ts';
import { createIds } from '../server/ids.ts';
import { silentLog } from '../server/log.ts';
import { openReadOnly } from '../server/read-only.ts';
import { VERSION } from '../server/version.ts';
import { quiet } from './entry.ts';
import { printLines } from './print.ts';

/** What to show. */
export interface ShowPull {
  readonly owner: string;
  readonly name: string;
  readonly pull: string;
  readonly policy: { readonly bytes: Buffer; readonly file: string } | null;
  readonly json: boolean;
}

/** Simulates a pull request and prints it; answers the exit code. */
export async function showPull(config: Config, input: ShowPull): Promise<number> {
  const environment = config.inherit(GIT_INHERITED);
  await requireGit(environment);
  const { database, signer, close } = await openReadOnly(config);
  // a cache of its own: the server's is never in anybody's way
  const directory = await mkdtemp(join(tmpdir(), 'countersign-simulate-'));
  const stop = new AbortController();
  try {
    const github = createGitHubApp({
      appId: config.appId,
      privateKey: config.privateKey,
      webhookSecret: config.webhookSecrets[0] ?? '',
      apiUrl: config.apiUrl,
      log: silentLog(),
      stop: stop.signal,
    });
    const deps = {
      database,
      signer,
      github,
      git: createGitReader({ directory, environment }),
      log: quiet(),
      ids: createIds(),
      settings: { publicUrl: config.publicUrl ?? '', serverUrl: config.serverUrl, version: VERSION },
    };
    const { owner, name, pull, policy } = input;
    const found = await simulatePull(deps, { owner, name, pull, policy: policy?.bytes ?? null });
    return found.kind === 'no_policy' ? showNone(found, input) : show(found, input);
  } finally {
    stop.abort();
    await close();
    await rm(directory, { recursive: true, force: true });
  }
}

function showNone({ pull, errors }: NoPolicy, input: ShowPull): number {
  const name = `${input.owner}/${input.name}#${input.pull}`;
  const fault = errors.length > 0;
  if (input.json)
    console.log(
      JSON.stringify({ version: 1, kind: 'no_policy', pull: name, baseRef: pull.baseRef, errors }, null, 2),
    );
  else
    printLines([
      fault
        ? `${name}: the policy on ${pull.baseRef} is not valid, and holds it as config_invalid`
        : `${name}: ${pull.baseRef} has no policy, so it is not reviewed; give one with --policy to see what it would do`,
      ...errors.map(
        (error) => `  line ${error.line}: ${error.path}: ${error.message}; accepted: ${error.accepted}`,
      ),
    ]);
  return fault ? 1 : 0;
}

function show(found: SimulatedPull, input: ShowPull): number {
  const { pull, plan, preview, tickets, recorded, policy, mergeBase } = found;
  const name = `${input.owner}/${input.name}#${input.pull}`;
  const from = input.policy === null ? `of ${pull.baseRef}` : input.policy.file;
  const own = input.policy !== null && policy.isBase ? `, which is that of ${pull.baseRef}` : '';
  const base = { baseRef: pull.baseRef, base: pull.base, mergeBase };
  if (input.json) {
    const { decision, difference, after } = preview;
    console.log(
      JSON.stringify(
        {
          version: 1,
          kind: 'pull',
          pull: name,
          head: pull.head,
          ...base,
          policy: { from, ...policy },
          recorded,
          decision,
          difference,
          changed: changesPull(preview),
          blocks: plan.blocks.map((one) => ({
            id: one.block.id,
            named: one.block.named,
            kind: one.kind,
            level: one.level,
            commits: one.block.commits,
            after: one.detail.after,
            notes: one.detail.notes,
          })),
          paths: plan.files.map((file, i) => ({
            ...file,
            reviewers: after[i]?.treatment.reviewers ?? [],
            ticket: tickets.fates[i],
          })),
          tickets: { counts: tickets.counts, sessions: tickets.sessions },
        },
        null,
        2,
      ),
    );
  } else
    printLines(
      pullText({
        name,
        head: pull.head,
        ...base,
        policy: `${from}${own} (${policy.hash.slice(0, 12)})`,
        recorded,
        blocks: plan.blocks,
        files: plan.files,
        preview,
        tickets,
      }),
    );
  return changesPull(preview) ? 3 : 0;
}
