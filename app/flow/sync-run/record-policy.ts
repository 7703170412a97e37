/** Records which policy a run is under (RUN-8): a row when it changed, its bytes by their hash. */
import { loadPolicy, storePolicy } from '../../../db/store/policy.ts';
import { putText } from '../../../db/store/text.ts';
import type { RunState } from '../../domain/run-state/state.ts';
import type { RunUnit } from '../append-rows.ts';
import type { BasePolicy } from './read.ts';
import type { Append } from './record.ts';

/** Records it; true when a row was appended, or a snapshot that was lost is here again. */
export async function recordPolicy(
  unit: RunUnit,
  append: Append,
  state: RunState,
  policy: BasePolicy,
): Promise<boolean> {
  const hash = policy.state === 'absent' ? null : policy.hash;
  const lost = policy.state === 'valid' && (await loadPolicy(unit.tx, policy.hash)) === null;
  // one re-read (RUN-8): the snapshot that every verdict and ticket needs is read once more and kept
  if (lost) await storePolicy(unit.tx, policy.bytes);
  if (state.policy?.state === policy.state && state.policy.hash === hash) return lost;
  const error =
    policy.state === 'invalid'
      ? {
          error: {
            code: policy.error.code,
            line: policy.error.line,
            text: await putText(unit.tx, policy.error.message),
          },
        }
      : {};
  append('run.policy', null, {
    state: policy.state,
    hash,
    commit: policy.commit,
    mode: policy.state === 'valid' ? policy.policy.mode : (state.policy?.mode ?? unit.run.mode),
    ...(policy.state === 'valid' && policy.held.length > 0
      ? { held: policy.held.map(({ key }) => key) }
      : {}),
    ...error,
  });
  return true;
}
