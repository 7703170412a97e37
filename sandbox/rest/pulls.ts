import { type Call, type Handler, notFound, paged, repositoryOf } from '../http/call.ts';
import type { OperationId } from '../operations.ts';
import type { Pull } from '../pull.ts';
import { commitsJson } from '../render/commits.ts';
import { diffJson } from '../render/diffs.ts';
import { pullJson, simplePullJson } from '../render/pulls.ts';

/** Pull requests with their commits and files. */
export const pullHandlers = {
  'pulls/list': (call) => {
    const { query } = call;
    const repository = repositoryOf(call);
    const state = String(query['state'] ?? 'open');
    const newestFirst = String(query['direction'] ?? 'desc') === 'desc';
    const key = (pull: Pull) => (query['sort'] === 'updated' ? pull.updatedAt : pull.createdAt);
    const all = repository.pulls
      .filter((pull) => state === 'all' || pull.state === state)
      .filter((pull) => query['base'] === undefined || pull.base.ref === query['base'])
      .filter(
        (pull) =>
          query['head'] === undefined || `${pull.head.owner.login}:${pull.head.ref}` === query['head'],
      )
      .sort((a, b) => (key(a) < key(b) ? -1 : key(a) > key(b) ? 1 : a.number - b.number));
    const { items, headers } = paged(call, newestFirst ? all.reverse() : all);
    return { status: 200, headers, body: items.map(simplePullJson) };
  },

  'pulls/get': async (call) => ({ status: 200, body: await pullJson(pullOf(call)) }),

  // facts/github.md §5: at most 250 commits, whatever the page; while a fork's push is on its way, the old list (case 7).
  'pulls/list-commits': async (call) => {
    const pull = pullOf(call);
    const { git } = pull.repository;
    const head = pull.reachedHead;
    const ids = head === null ? [] : await git.commitsBetween([await pull.baseTip()], head);
    const { items, headers } = paged(call, ids.slice(0, 250));
    return { status: 200, headers, body: await commitsJson(pull.repository, items) };
  },

  // facts/github.md §5: at most 3,000 files.
  'pulls/list-files': async (call) => {
    const pull = pullOf(call);
    const { git } = pull.repository;
    const head = pull.reachedHead;
    const base = head === null ? null : await git.mergeBase(await pull.baseTip(), head);
    const files = head === null || base === null ? [] : await diffJson(pull.repository, base, head);
    const { items, headers } = paged(call, files);
    return { status: 200, headers, body: items };
  },
} satisfies Partial<Record<OperationId, Handler>>;

/** The pull request a request names. */
export function pullOf(call: Call, parameter = 'pull_number'): Pull {
  const number = Number(call.path[parameter]);
  const pull = repositoryOf(call).pulls.find((one) => one.number === number);
  if (pull === undefined) throw notFound();
  return pull;
}
