/**
 * Verify commands of a resident pool (VER-1), protocol 1.3. A runner that says at its login which container runtime it has
 * asks for them with its tickets (`verify` of a lease request); each comes under a lease of its own:
 *
 *     granted ─start→ started ─submit→ over
 *        └──────return──────┴─return→ over, and the receipt waits for another runner
 *
 * The start is asked for once the container is made and before it is let go: a control, another head or another
 * runner stands in its way there. Heartbeats keep the lease.
 */
import * as z from 'zod';
import { blockIdSchema, idSchema, oidSchema } from '../domain/ledger/row-fields.ts';
import { POOL_REFUSALS } from '../domain/receipt/pool.ts';
import { receiptDetail } from './receipt.ts';

const text = (max: number) => z.string().max(max);
const proof = { token: text(200), grant: z.int().min(1) };

/** A receipt as leased: the command of the base policy, the head it runs on, and its container. */
export const leasedReceipt = z.strictObject({
  block: blockIdSchema,
  receipt: text(20),
  run: text(64),
  pull: idSchema.nullable(),
  repository: z.strictObject({ id: idSchema, owner: text(100), name: text(100), clone_url: text(500) }),
  base: oidSchema,
  head: oidSchema,
  /** The command's name in the policy; of equal ones the first. */
  command: text(60),
  run_argv: z.array(text(1000)).min(1).max(60),
  env: z.record(text(100), text(4_000)),
  ports: z.array(text(100)).max(10),
  artifacts: z.array(text(1000)).max(50),
  timeout_ms: z.int().min(0),
  image: text(300),
  network: z.enum(['none', 'open']),
});
/** A leased receipt. */
export type LeasedReceipt = z.infer<typeof leasedReceipt>;

/** A lease of a receipt as the answer to a lease request brings it. */
export const receiptLease = z.strictObject({
  id: text(64),
  ...proof,
  expires_at: z.iso.datetime(),
  heartbeat_ms: z.int().min(0),
  /** Reads this one repository and nothing else, for git (AUT-4); it never gets into a container. */
  read_token: text(2000),
  receipt: leasedReceipt,
});
/** A lease of a receipt. */
export type ReceiptLease = z.infer<typeof receiptLease>;

/** `POST /api/v1/receipts/:id/heartbeat`. */
export const receiptHeartbeatRequest = z.strictObject(proof);
/** The lease goes on until `expires_at`; another `control` than `none` tells the runner to end it and give it back. */
export const receiptHeartbeatResponse = z.strictObject({
  expires_at: z.iso.datetime(),
  control: z.enum(['none', 'recall', 'stop']),
  login_expires_at: z.iso.datetime(),
});

/** `POST /api/v1/receipts/:id/start`: nothing is let go before its answer; a repeat answers the same. */
export const receiptStartRequest = z.strictObject(proof);

/** What a command came to: what it did, or why it was not run at all. */
export const receiptResult = z.discriminatedUnion('end', [
  z.strictObject({ end: z.literal('ran'), detail: receiptDetail }),
  z.strictObject({ end: z.literal('refused'), reason: z.enum(POOL_REFUSALS) }),
]);
/** A result. */
export type ReceiptResult = z.infer<typeof receiptResult>;

/** `POST /api/v1/receipts/:id/submit`. Idempotent by (receipt, grant, result digest) (LSE-4). */
export const receiptSubmitRequest = z.strictObject({ ...proof, result: receiptResult });
/** What became of a result. */
export const receiptSubmitResponse = z.strictObject({ accepted: z.literal(true), repeated: z.boolean() });

/** `POST /api/v1/receipts/:id/return`: it waits for another runner (LSE-5). */
export const receiptReturnRequest = z.strictObject({
  ...proof,
  reason: z.enum(['stopping', 'fenced', 'recalled']),
});
