/**
 * A resident runner (POOL-1): the work of the Action without its job. It stays: it waits for work and for a
 * server that is away, and ends when it is told to or when it is refused.
 */
import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { Fault } from '../../app/errors.ts';
import { createClient } from '../client.ts';
import { type DrainEnd, drain } from '../drain.ts';
import { openObjects } from '../objects/store.ts';
import { keepResults } from '../results.ts';
import { sleep } from '../sleep.ts';
import type { TallyEntry } from '../summary.ts';
import { findRuntime, type Runtime } from '../verify/runtime.ts';
import { sweepContainers } from '../verify/sweep.ts';
import type { ContainerAllowance } from './containers.ts';
import { createResidentLog } from './log.ts';
import { type ResidentOptions, type ResidentSettings, readSettings } from './settings.ts';
import { createVerifier } from './verifier.ts';

/** Longest time from a stop signal to the end of the process (ACT-5). */
const EXIT_WITHIN_MS = 7000;
/** How often repositories are looked at that nobody reads any more, and for how long nobody did. */
const SWEEP_MS = 5 * 60_000;
const IDLE_MS = 60 * 60_000;
const LONGEST_BACK_OFF_MS = 30_000;

/** Runs until a signal or a refusal; 0: told to stop and everything given back, 1: refused or not in time. Throws Refusal for settings. */
export async function runResident(host: NodeJS.Process, options: ResidentOptions): Promise<number> {
  const settings = readSettings(host.env, options);
  const { inputs } = settings;
  const log = createResidentLog((text) => host.stdout.write(text));
  for (const value of inputs.secrets) log.mask(value);
  const stopping = new AbortController();
  let stopped = false;
  const stop = (signal: NodeJS.Signals): void => {
    if (stopped) return;
    stopped = true;
    log.line(`${signal}: ending sessions and giving tickets back`);
    stopping.abort();
    setTimeout(() => host.exit(1), EXIT_WITHIN_MS - 500).unref();
  };
  host.on('SIGINT', stop);
  host.on('SIGTERM', stop);

  const scratch = await mkdtemp(join(inputs.tempDir, 'countersign-runner-'));
  // its own token, for each repository, comes with each lease
  const objects = openObjects({ dir: join(scratch, 'objects'), token: '', serverUrl: '', path: inputs.path });
  const sweeper = setInterval(() => void objects.sweep(IDLE_MS), SWEEP_MS);
  const instance = randomUUID();
  const containers = await containersOf(settings, host.env, stopping.signal, log.line);
  const client = createClient({
    inputs,
    log,
    signal: stopping.signal,
    credentials: async (minor) => {
      const token = settings.token();
      log.mask(token);
      const runtime =
        containers === null ? null : `${containers.runtime.program} ${containers.runtime.version}`;
      // an older server takes no key that it does not know
      return { pool: settings.pool, token, instance, ...(minor >= 3 ? { runtime } : {}) };
    },
    // nothing that runs now could be delivered any more
    onRefused: () => stopping.abort(),
  });
  const tally = counter();
  const verifier =
    containers === null
      ? null
      : createVerifier({
          ...containers,
          client,
          inputs,
          log,
          pool: settings.pool,
          scratch,
          signal: stopping.signal,
          onTold: tally.verified,
        });
  try {
    const end = await stay(client, stopping.signal, log.line, () =>
      drain(
        {
          client,
          inputs,
          objects,
          scratch,
          log,
          tally,
          results: keepResults(join(inputs.tempDir, 'countersign-results')),
          signal: stopping.signal,
          allowance: settings.allowance,
          ...(verifier === null ? {} : { verifier }),
        },
        true,
      ),
    );
    // what waits for this pool is planned anew at once, not once it is missed
    await client.logOut().catch(() => undefined);
    if (!stopped && end.kind === 'failed') log.error(end.message);
    log.line(`Ended: ${tally.said()}`);
    return stopped ? 0 : 1;
  } finally {
    clearInterval(sweeper);
    host.off('SIGINT', stop);
    host.off('SIGTERM', stop);
    await objects.close();
    await rm(scratch, { recursive: true, force: true }).catch(() => undefined);
  }
}

/** The container runtime that verify commands get, said in one line either way; what a killed runner left is removed (VER-1). */
async function containersOf(
  { containers, pool }: ResidentSettings,
  env: NodeJS.ProcessEnv,
  signal: AbortSignal,
  say: (text: string) => void,
): Promise<{ readonly runtime: Runtime; readonly allowance: ContainerAllowance } | null> {
  if (containers === null) {
    say('no images (--images): takes no verify commands');
    return null;
  }
  const set = Object.entries(env).filter((entry): entry is [string, string] => entry[1] !== undefined);
  const runtime = await findRuntime(Object.fromEntries(set), signal);
  if ('none' in runtime) {
    say(runtime.none);
    return null;
  }
  const left = await sweepContainers(runtime, pool, signal).catch(() => 0);
  const removed = left === 0 ? '' : `, ${left} container(s) of a lost runner removed`;
  say(`container runtime: ${runtime.program} ${runtime.version}${removed}`);
  return { runtime, allowance: containers };
}

/** Greets until the server answers, then works; a refusal ends it. */
async function stay(
  client: ReturnType<typeof createClient>,
  signal: AbortSignal,
  say: (text: string) => void,
  work: () => Promise<DrainEnd>,
): Promise<DrainEnd> {
  for (let wait = 500; ; wait = Math.min(wait * 2, LONGEST_BACK_OFF_MS)) {
    try {
      await client.greet();
      return await work();
    } catch (error) {
      if (!(error instanceof Fault)) throw error;
      if (!error.retryable) return { kind: 'failed', message: `${error.code}: ${error.message}` };
      if (signal.aborted) return { kind: 'stopped' };
      say(`The server did not answer (${error.message}), asking again in ${wait} ms`);
      await sleep(wait, signal);
      if (signal.aborted) return { kind: 'stopped' };
    }
  }
}

/** What was done so far, in numbers: a runner that lives for weeks keeps no results. */
function counter() {
  const n = { tickets: 0, findings: 0, unavailable: 0, returned: 0, verified: 0 };
  return {
    tickets: [] as const,
    verified() {
      n.verified += 1;
    },
    add({ outcome, result }: TallyEntry) {
      if (outcome.startsWith('accepted')) n.tickets += 1;
      if (result === null) n.returned += 1;
      else if (result.end !== 'reviewed') n.unavailable += 1;
      n.findings += result?.findings.length ?? 0;
    },
    said: () =>
      `${n.tickets} ticket(s) delivered, ${n.findings} finding(s), ${n.unavailable} not reviewed, ${n.returned} given back, ${n.verified} verify command(s) told`,
  };
}
