/** Receipts that resident pools run (VER-1): why nobody runs them yet, and which somebody wants to run again. */
import { listRegistered } from '../../../db/store/pool.ts';
import { listReceipts } from '../../../db/store/receipt.ts';
import { countPoolRunners, setPooledReceipt } from '../../../db/store/receipt-work.ts';
import type { Run } from '../../../db/store/run.ts';
import { LIMITS } from '../../domain/limits.ts';
import type { VerifyCommand } from '../../domain/policy/verify.ts';
import { type PoolState, poolWait } from '../../domain/receipt/pool.ts';
import type { ReceiptWhy } from '../../domain/receipt/words.ts';
import { isOver, type ReceiptFact, receiptKey } from '../../domain/receipt.ts';
import type { RunUnit } from '../append-rows.ts';
import type { Deps } from '../deps.ts';

/** A receipt with its pool, and why nobody of that runs it. */
export interface PoolLook {
  readonly receipt: ReceiptFact;
  readonly pool: string;
  readonly why: ReceiptWhy;
}

/** How the pools of receipts stand now: what is registered and what lives. */
export async function lookAtPools(
  deps: Deps,
  run: Run,
  followed: readonly { readonly receipt: ReceiptFact; readonly command: VerifyCommand }[],
): Promise<PoolLook[]> {
  const { db } = deps.database;
  const mine = followed.flatMap(({ receipt, command }) =>
    command.from === 'pool' ? [{ receipt, pool: command.pool }] : [],
  );
  const names = [...new Set(mine.map(({ pool }) => pool))];
  const registered = new Set(await listRegistered(db, names, run));
  const states = new Map<string, PoolState>();
  for (const name of names)
    states.set(name, {
      registered: registered.has(name),
      ...(await countPoolRunners(db, name, LIMITS.runnerFreshMs.default)),
    });
  return mine.map(({ receipt, pool }) => ({
    receipt,
    pool,
    why: poolWait(states.get(pool) ?? { registered: false, runners: 0, containers: 0 }),
  }));
}

/** Writes what is news of them. One that a runner has is left to it (VER-3); answers how many changed. */
export async function settlePooled(
  deps: Deps,
  unit: RunUnit,
  head: string,
  looks: readonly PoolLook[],
  receipts: ReadonlyMap<string, ReceiptFact>,
): Promise<number> {
  if (looks.length === 0) return 0;
  const { tx, run } = unit;
  const stored = new Map(
    (await listReceipts(tx, run.id, head)).map((one) => [receiptKey(one.blockId, one.id), one]),
  );
  let changed = 0;
  for (const look of looks) {
    const { block, id } = look.receipt;
    const key = receiptKey(block, id);
    const [receipt, known] = [receipts.get(key), stored.get(key)];
    if (receipt === undefined || known === undefined || known.leaseId !== null) continue;
    const at = { runId: run.id, blockId: block, id };
    const again = isOver(receipt) && known.rerunAfter !== null;
    const why = again ? 'again' : newsOf(receipt, look.why);
    // what was withdrawn with its run or its head is offered again
    if (!isOver(receipt) && known.pool !== look.pool) await setPooledReceipt(tx, at, { pool: look.pool });
    if (why === null) continue;
    const seq = unit.append('receipt.waiting', {
      block,
      actor: { kind: 'app', id: deps.github.appId, via: 'schedule' },
      cause: { kind: 'schedule', id: `settle-receipts:${run.id}`, sha256: null },
      data: { block, receipt: id, why },
    });
    await setPooledReceipt(tx, at, {
      state: 'waiting',
      why,
      seq,
      pool: look.pool,
      ...(again ? { losses: 0, afterMs: null } : {}),
    });
    changed += 1;
  }
  return changed;
}

/** Why it waits, where that is not said yet; null: nothing is to be said. */
function newsOf(receipt: ReceiptFact, why: ReceiptWhy): ReceiptWhy | null {
  if (isOver(receipt) || receipt.state === 'running' || receipt.why === why) return null;
  // a runner will come: what it waits for is said already
  const isSaid = receipt.state === 'reserved' || receipt.why === 'again' || receipt.why === 'given_back';
  return why === 'pool_busy' && isSaid ? null : why;
}
