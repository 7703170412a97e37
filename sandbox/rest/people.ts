import { type Call, type Handler, paged, Refused } from '../http/call.ts';
import type { User } from '../model.ts';
import type { OperationId } from '../operations.ts';
import { installationJson, publicUserJson } from '../render/accounts.ts';
import { covers } from '../world.ts';

/** What a person's own token may ask: who it is, and which installations they can reach. */
export const peopleHandlers = {
  'users/get-authenticated': (call) => ({ status: 200, body: publicUserJson(call.world, personOf(call)) }),

  // docs: installations "that the authenticated user has explicit permission (:read, :write, or :admin) to access"
  'apps/list-installations-for-authenticated-user': (call) => {
    const { world } = call;
    const user = personOf(call);
    const all = world.installations.filter(
      (one) =>
        !one.deleted &&
        world.repositories.some(
          (repository) =>
            !repository.deleted && covers(one, repository) && repository.collaborates(user) !== 'none',
        ),
    );
    const { items, headers } = paged(call, all);
    const installations = items.map((one) => installationJson(world, one));
    return { status: 200, headers, body: { total_count: all.length, installations } };
  },
} satisfies Partial<Record<OperationId, Handler>>;

function personOf(call: Call): User {
  if (call.bearer.kind !== 'token') throw new Refused(401, 'Requires authentication');
  return call.bearer.token.user;
}
