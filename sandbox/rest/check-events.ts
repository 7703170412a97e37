import type { CheckRun, Json, User } from '../model.ts';
import { checkRunEventJson } from '../render/checks.ts';
import type { Repository } from '../repository.ts';
import type { World } from '../world.ts';

/** Sends a `check_run` event; rerequested and requested_action go to the owning app alone (facts/github.md §1). */
export async function announceCheck(
  world: World,
  repository: Repository,
  run: CheckRun,
  action: 'created' | 'completed' | 'rerequested' | 'requested_action',
  sender: User,
  more: Json = {},
): Promise<void> {
  const toOwner = action === 'rerequested' || action === 'requested_action';
  await world.emit({
    event: 'check_run',
    action,
    repository,
    sender,
    payload: () => ({ ...more, check_run: checkRunEventJson(world, repository, run) }),
    ...(toOwner ? { onlyApp: run.app } : {}),
  });
}
