/**
 * Verify commands of a resident runner (VER-1): each in a container of its own, under a lease of its own. It is let go once
 * the server wrote its start down; one whose lease is lost, or that is told to stop, is ended and given back.
 */

import type { PoolRefusal } from '../../app/domain/receipt/pool.ts';
import { redactor } from '../../app/domain/redact.ts';
import { Fault } from '../../app/errors.ts';
import { receiptTrouble } from '../../app/protocol/receipt.ts';
import { emptyResponse } from '../../app/protocol/runner.ts';
import * as wire from '../../app/protocol/verify.ts';
import type { Answer, Client } from '../client.ts';
import { type Heart, startHeart } from '../heart.ts';
import { type Inputs, isSafeUrl } from '../inputs.ts';
import type { Log } from '../log.ts';
import { sleep } from '../sleep.ts';
import { verifyInContainer } from '../verify/pooled.ts';
import type { Runtime } from '../verify/runtime.ts';
import { containerOwner } from '../verify/sweep.ts';
import type { ContainerAllowance } from './containers.ts';

/** Runs verify commands beside tickets. */
export type Verifier = Readonly<{
  /** How many more it takes now. */
  room: () => number;
  /** Works one lease to its end; never throws. */
  work: (lease: wire.ReceiptLease) => Promise<void>;
}>;

/** What running them needs. */
export type VerifierDeps = Readonly<{
  client: Client;
  inputs: Inputs;
  log: Log;
  pool: string;
  runtime: Runtime;
  allowance: ContainerAllowance;
  scratch: string;
  signal: AbortSignal;
  /** Called when the server took what one came to. */
  onTold: () => void;
}>;

type Stop = 'stopping' | 'fenced' | 'recalled' | 'lost';
/** One lease under way. */
type Life = { stop: Stop | null; readonly ending: AbortController; heart: Heart };

const CALL_MS = 10_000;
/** Of a runner that was told to stop, which has seconds. */
const LAST_CALL_MS = 3000;

/** A verifier with as much room as its machine's owner gives it. */
export function createVerifier(deps: VerifierDeps): Verifier {
  let busy = 0;
  return {
    room: () => Math.max(0, deps.allowance.atOnce - busy),
    async work(lease) {
      busy += 1;
      try {
        await workReceipt(deps, lease);
      } finally {
        busy -= 1;
      }
    },
  };
}

async function workReceipt(deps: VerifierDeps, lease: wire.ReceiptLease): Promise<void> {
  const { client, log } = deps;
  const { receipt, token, grant } = lease;
  const title = `${receipt.block} ${receipt.receipt} ${receipt.command}`;
  log.mask(token);
  log.mask(lease.read_token);
  log.line(`Leased verify command ${title}`);
  const ending = new AbortController();
  const end = (why: Stop): void => {
    life.stop ??= why;
    ending.abort();
  };
  const heart = startHeart({
    lease,
    beat: () =>
      client.post(at(lease, 'heartbeat'), { token, grant }, wire.receiptHeartbeatResponse, {
        timeoutMs: CALL_MS,
      }),
    onControl: (control) => {
      if (control !== 'none') end(control === 'stop' ? 'fenced' : 'recalled');
    },
    onLost: (why) => {
      log.line(`Lease lost: ${why}`);
      end('lost');
    },
  });
  const life: Life = { stop: null, ending, heart };
  const onStop = (): void => end('stopping');
  if (deps.signal.aborted) onStop();
  deps.signal.addEventListener('abort', onStop, { once: true });
  let outcome: string;
  try {
    const result = await run(deps, lease, life, end);
    outcome =
      life.stop === null || isWhole(result)
        ? await submit(deps, lease, result, life)
        : await giveBack(deps, lease, life.stop);
  } catch (error) {
    outcome = `failed: ${error instanceof Error ? error.message : 'unknown'}`;
  } finally {
    heart.stop();
    deps.signal.removeEventListener('abort', onStop);
  }
  log.line(`Verify command ${title}: ${outcome}`);
}

/** Whether it came to an end of its own, whatever was asked of its runner meanwhile. */
function isWhole(result: wire.ReceiptResult): boolean {
  return result.end === 'ran' && result.detail.started && !result.detail.cancelled;
}

/** Runs it in its container; what cannot be run says why. */
async function run(
  deps: VerifierDeps,
  lease: wire.ReceiptLease,
  life: Life,
  end: (why: Stop) => void,
): Promise<wire.ReceiptResult> {
  const { allowance, inputs, log } = deps;
  const { receipt } = lease;
  const refused = (reason: PoolRefusal): wire.ReceiptResult => ({ end: 'refused', reason });
  if (!allowance.allows(receipt.image)) return refused('image_refused');
  if (receipt.network === 'open' && allowance.network !== 'open') return refused('network_refused');
  const { clone_url: remote } = receipt.repository;
  try {
    const done = await verifyInContainer({
      name: receipt.command,
      command: {
        run: receipt.run_argv,
        env: receipt.env,
        ports: receipt.ports,
        artifacts: receipt.artifacts,
        timeout: receipt.timeout_ms,
      },
      container: {
        runtime: deps.runtime,
        image: receipt.image,
        network: receipt.network,
        memoryMb: allowance.memoryMb,
        processes: allowance.processes,
        pool: deps.pool,
        owner: containerOwner(),
      },
      remote,
      base: receipt.base,
      head: receipt.head,
      // a token is a credential: never over a line that others can read
      token: isSafeUrl(remote) ? lease.read_token : '',
      serverUrl: isSafeUrl(remote) ? new URL(remote).origin : '',
      path: inputs.path,
      tempDir: deps.scratch,
      redactor: redactor([...inputs.secrets, lease.read_token]),
      // what code of a pull request prints goes to the server, and into no log of this machine
      show: () => undefined,
      onStart: () => start(deps, lease, life, end),
      signal: life.ending.signal,
    });
    for (const note of done.notes) log.line(`Verify command ${receipt.command}: ${note}`);
    return { end: 'ran', detail: done.receipt };
  } catch (error) {
    log.error(error instanceof Error ? error.message : 'the command could not be run');
    if (!(error instanceof Fault)) return refused('runner_failed');
    if (error.code === 'git_unavailable') return refused('content_unavailable');
    return refused(error.code === 'config_value' ? 'image_missing' : 'runner_failed');
  }
}

/** Asks until the server wrote it down; throws where it did not, and nothing is let go. */
async function start(
  deps: VerifierDeps,
  lease: wire.ReceiptLease,
  life: Life,
  end: (why: Stop) => void,
): Promise<void> {
  const { token, grant } = lease;
  const answer = await insist(deps, life, () =>
    deps.client.post(at(lease, 'start'), { token, grant }, emptyResponse, { timeoutMs: CALL_MS }),
  );
  if (answer?.ok === true) return;
  if (answer?.code === 'fenced') end('fenced');
  else end(answer === null ? (life.stop ?? 'lost') : 'lost');
  throw new Error(`not started: ${answer?.code ?? 'no answer'}`);
}

async function submit(
  deps: VerifierDeps,
  lease: wire.ReceiptLease,
  result: wire.ReceiptResult,
  life: Life,
): Promise<string> {
  if (life.stop === 'lost') return 'lease lost, not counted';
  const { token, grant } = lease;
  const answer = await insist(deps, life, () =>
    deps.client.post(at(lease, 'submit'), { token, grant, result }, wire.receiptSubmitResponse, {
      timeoutMs: deps.signal.aborted ? LAST_CALL_MS : CALL_MS,
    }),
  );
  if (answer === null) return 'not delivered: its lease ended';
  if (!answer.ok) return `refused: ${answer.code}`;
  deps.onTold();
  if (result.end === 'refused') return `not run: ${result.reason}`;
  return receiptTrouble(result.detail) ?? 'passed';
}

/** Repeats a call that may be repeated until it is answered for good, or its lease is over (null). */
async function insist<T>(
  deps: VerifierDeps,
  life: Life,
  call: () => Promise<Answer<T>>,
): Promise<Answer<T> | null> {
  for (let wait = 250; ; wait = Math.min(wait * 2, 5000)) {
    if (life.stop === 'lost' || life.heart.leftMs() <= 0) return null;
    try {
      const answer = await call();
      if (answer.ok || answer.status !== 429) return answer;
      wait = answer.retryAfterMs ?? wait;
    } catch (error) {
      if (!(error instanceof Fault && error.retryable)) throw error;
    }
    if (deps.signal.aborted) return null;
    await sleep(Math.min(wait, Math.max(1, life.heart.leftMs())), deps.signal);
  }
}

async function giveBack(deps: VerifierDeps, lease: wire.ReceiptLease, why: Stop): Promise<string> {
  if (why === 'lost') return 'lease lost';
  const { token, grant } = lease;
  try {
    const body = { token, grant, reason: why };
    const answer = await deps.client.post(at(lease, 'return'), body, emptyResponse, {
      timeoutMs: LAST_CALL_MS,
    });
    return answer.ok ? `given back (${why})` : `could not be given back: ${answer.code}`;
  } catch {
    return 'could not be given back: the lease will expire';
  }
}

function at(lease: wire.ReceiptLease, verb: 'start' | 'heartbeat' | 'submit' | 'return'): string {
  return `/api/v1/receipts/${encodeURIComponent(lease.id)}/${verb}`;
}
