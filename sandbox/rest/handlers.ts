import type { Actions } from '../actions/service.ts';
import type { Handler } from '../http/call.ts';
import type { Limits } from '../http/limits.ts';
import type { OperationId } from '../operations.ts';
import type { Webhooks } from '../webhooks.ts';
import { actionsHandlers } from './actions.ts';
import { appHandlers } from './apps.ts';
import { checkHandlers } from './checks.ts';
import { issueHandlers } from './issues.ts';
import { peopleHandlers } from './people.ts';
import { pullHandlers } from './pulls.ts';
import { repoHandlers } from './repos.ts';
import { reviewHandlers } from './reviews.ts';

/** Who serves each operation. */
export function restHandlers(
  webhooks: Webhooks,
  limits: Limits,
  actions: Actions,
): Readonly<Record<OperationId, Handler>> {
  return {
    ...appHandlers(webhooks, limits),
    ...peopleHandlers,
    ...repoHandlers,
    ...pullHandlers,
    ...reviewHandlers,
    ...issueHandlers,
    ...checkHandlers,
    ...actionsHandlers(actions),
  };
}
