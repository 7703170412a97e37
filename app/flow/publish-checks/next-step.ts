/** What publishing a unit comes to: another check run, a write to the one that is there, a wait, or nothing (PUB-1, PUB-2). */
import { type CheckUnit, deferCheck, type StoredCheck, writtenCheck } from '../../../db/store/check.ts';
import { productNow } from '../../../db/store/run.ts';
import { LIMITS } from '../../domain/limits.ts';
import type { Deps } from '../deps.ts';
import type { PublishChecksOutcome } from '../publish-checks.ts';
import type { WantedFindings } from './want-findings.ts';
import type { Wanted } from './want-gate.ts';

/** The check run to write (an existing n, or the next), or why nothing is written now. */
export async function nextStep(
  deps: Deps,
  unit: CheckUnit,
  shown: StoredCheck | undefined,
  wanted: Wanted | WantedFindings,
  again: boolean,
): Promise<number | PublishChecksOutcome> {
  if (shown === undefined) return wanted.superseded ? { kind: 'nothing' } : 1;
  const same = !again && shown.written === wanted.digest && shown.wanted === wanted.digest;
  if (shown.state === 'concluded') {
    const green = shown.conclusion === 'success';
    // "never set back" has one exception: a success on a commit that is nobody's head
    if (wanted.superseded) return green || again ? shown.n : unchanged(deps, unit, shown);
    const undecided = wanted.content.conclusion === undefined;
    if (undecided || shown.conclusion === 'cancelled') return shown.n + 1;
    if (same) return unchanged(deps, unit, shown);
    const turned = wanted.once === true && shown.conclusion !== wanted.content.conclusion;
    return turned || outdated(shown, wanted) ? shown.n + 1 : shown.n;
  }
  if (same) return unchanged(deps, unit, shown);
  if (shown.state === 'open' && wanted.content.conclusion === undefined && shown.writtenAtMs !== null) {
    const rest =
      shown.writtenAtMs + LIMITS.publishIntervalMs.default - (await productNow(deps.database.db)).getTime();
    // between two updates under way; a first gate and a conclusion never wait
    if (rest > 0) {
      await deferCheck(deps.database.db, unit, shown.n, rest, null);
      return { kind: 'waiting', code: 'interval' };
    }
  }
  return shown.n;
}

/** Whether an annotation that is there no longer belongs: GitHub only appends, so another check run starts. */
function outdated(shown: StoredCheck, wanted: Wanted | WantedFindings): boolean {
  if (!('order' in wanted) || shown.plan === null) return false;
  const open = new Set(wanted.order);
  return shown.plan.order.slice(0, shown.annotations).some((number) => !open.has(number));
}

async function unchanged(deps: Deps, unit: CheckUnit, shown: StoredCheck): Promise<PublishChecksOutcome> {
  await settle(deps, unit, shown);
  return { kind: 'unchanged', n: shown.n };
}

/** Nothing is left to do for a row: no sweep needs to look. */
export async function settle(deps: Deps, unit: CheckUnit, shown: StoredCheck): Promise<void> {
  if (shown.dueAtMs === null || shown.written === null) return;
  const { conclusion, written, annotations, seq } = shown;
  await writtenCheck(deps.database.db, unit, shown.n, {
    conclusion,
    written,
    annotations,
    seq,
    dueInMs: null,
  });
}
