/**
 * The arrows in the order a pull request meets them: the worker runs them, docs/flow.md lists them,
 * and a contract test holds the three together. A job's name is its arrow's.
 */
import * as z from 'zod';
import { LIMITS } from '../domain/limits.ts';
import { bookSpend } from './book-spend.ts';
import { cancelDispatches } from './cancel-dispatches.ts';
import { cutTickets } from './cut-tickets.ts';
import { decideGate, sweepGates } from './decide-gate.ts';
import { dispatch } from './dispatch.ts';
import { endUnaffordable } from './end-unaffordable.ts';
import { enrol } from './enrol.ts';
import { expire } from './expire.ts';
import { expireReceipts } from './expire-receipts.ts';
import { pressButton } from './press-button.ts';
import { previewPolicy } from './preview-policy.ts';
import { publishChecks, sweepChecks } from './publish-checks.ts';
import { type ReceiveDeps, receiveDelivery } from './receive-delivery.ts';
import { reconcile, sweepReconcile } from './reconcile.ts';
import { runCommand } from './run-command.ts';
import { sealRun } from './seal-run.ts';
import { settleReceipts } from './settle-receipts.ts';
import { sweepDispatches } from './sweep-dispatches.ts';
import { sweepProviders } from './sweep-providers.ts';
import { syncGroup } from './sync-group.ts';
import { syncRun } from './sync-run.ts';

/** What the worker gives every arrow. */
export type WorkDeps = ReceiveDeps;

/** One arrow: what a job of its name does, or what a sweep does every so often, or both. */
export interface Arrow {
  readonly name: string;
  /** Works a job; what it resolves to is logged. Payloads are ours, read by a schema all the same. */
  readonly run?: (deps: WorkDeps, payload: unknown) => Promise<unknown>;
  /** Finds by product time what is due. Several processes may do it at once. */
  readonly sweep?: { readonly everyMs: number; readonly run: (deps: WorkDeps) => Promise<unknown> };
}

/** An arrow whose job carries `fields`, read by their schema. */
function job<T>(
  name: string,
  fields: z.ZodType<T>,
  run: (deps: WorkDeps, input: T) => Promise<unknown>,
): Arrow {
  return { name, run: (deps, payload) => run(deps, fields.parse(payload)) };
}

const SWEEP_MS = LIMITS.sweepMs.default;
const ofRun = z.object({ run: z.string() });
const commandSchema = z.object({
  repository: z.string(),
  pull: z.string(),
  comment: z.string(),
  author: z.object({ id: z.string(), login: z.string(), bot: z.boolean() }),
  body: z.string(),
  createdAt: z.string(),
  reconciled: z.boolean(),
});
const rerunSchema = z.union([
  z.object({ scope: z.enum(['all', 'failed']) }),
  z.object({ scope: z.enum(['block', 'path', 'answer']), value: z.string() }),
]);

/** Every arrow that a job or a sweep starts. */
export const ORDER: readonly Arrow[] = [
  job('receive-delivery', z.object({ delivery: z.string() }), receiveDelivery),
  job('enrol', z.object({ repository: z.string(), baseRef: z.string() }), enrol),
  job('run-command', commandSchema, runCommand),
  job('seal-run', ofRun, sealRun),
  job('press-button', z.object({ press: z.string() }), pressButton),
  job('sync-run', ofRun, syncRun),
  job('sync-group', ofRun, syncGroup),
  job('preview-policy', z.object({ repository: z.string(), pull: z.string() }), previewPolicy),
  job('cut-tickets', ofRun.extend({ rerun: rerunSchema.exactOptional() }), cutTickets),
  job('settle-receipts', ofRun, settleReceipts),
  {
    ...job('dispatch', z.object({ repository: z.string() }), dispatch),
    sweep: { everyMs: SWEEP_MS, run: sweepDispatches },
  },
  job('end-unaffordable', ofRun, endUnaffordable),
  job('cancel-dispatches', z.object({ repository: z.string() }), cancelDispatches),
  { name: 'expire', sweep: { everyMs: SWEEP_MS, run: expire } },
  { name: 'expire-receipts', sweep: { everyMs: SWEEP_MS, run: expireReceipts } },
  { name: 'book-spend', sweep: { everyMs: SWEEP_MS, run: bookSpend } },
  { name: 'sweep-providers', sweep: { everyMs: SWEEP_MS, run: sweepProviders } },
  {
    ...job('decide-gate', ofRun, decideGate),
    sweep: { everyMs: SWEEP_MS, run: sweepGates },
  },
  {
    ...job(
      'publish-checks',
      z.object({
        repository: z.string(),
        sha: z.string(),
        name: z.string(),
        again: z.boolean().exactOptional(),
      }),
      publishChecks,
    ),
    sweep: { everyMs: SWEEP_MS, run: sweepChecks },
  },
  {
    ...job('reconcile', z.object({ repository: z.string() }), reconcile),
    sweep: { everyMs: LIMITS.reconcileMs.default, run: sweepReconcile },
  },
];
