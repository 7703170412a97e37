/** How the paths of a merge group are known (GAT-5): by the clean merge of all, or by a member's reviewed content. Pure. */
import type { RowData } from '../ledger/row-kinds.ts';
import { pathKey } from '../path.ts';
import type { FileFact, RunState } from '../run-state/state.ts';

/** A member that is green, with the paths it was judged on. */
export interface KnowingMember {
  readonly member: { readonly position: number };
  readonly files: ReadonlyMap<string, Pick<FileFact, 'mode' | 'blob'>>;
}

/** Rows to append for paths that were not known before, and these paths. */
export interface KnownNow {
  readonly rows: readonly RowData<'group.known'>[];
  readonly keys: ReadonlySet<string>;
}

const MOST_PATHS = 400;
/** A row's body is at most 32 KiB; header and a margin are taken off. */
const ROW_BYTES = 30_000;

/** Paths that become known by these members. The head side decides: mode and blob, or that the path is gone. */
export function knownPaths(state: RunState, members: readonly KnowingMember[]): KnownNow {
  const { group } = state;
  const rows: { proof: 'content' | 'merge'; paths: RowData<'group.known'>['paths'] }[] = [];
  const keys = new Set<string>();
  if (group === null || !group.read.listed) return { rows, keys };
  const merged = group.read.merged !== null && group.read.merged === group.read.tree;
  let size = 0;
  for (const file of state.files.values()) {
    const key = pathKey(file.path);
    if (group.known.has(key)) continue;
    const by = merged ? null : (members.find(({ files }) => isSame(files.get(key), file)) ?? undefined);
    if (by === undefined) continue;
    const path = { path: file.path, member: by?.member.position ?? null };
    const bytes = Buffer.byteLength(JSON.stringify(path)) + 1;
    const last = rows.at(-1);
    if (last === undefined || last.paths.length >= MOST_PATHS || size + bytes > ROW_BYTES) {
      rows.push({ proof: merged ? 'merge' : 'content', paths: [path] });
      size = bytes;
    } else {
      last.paths.push(path);
      size += bytes;
    }
    keys.add(key);
  }
  return { rows, keys };
}

function isSame(there: Pick<FileFact, 'mode' | 'blob'> | undefined, here: FileFact): boolean {
  return there !== undefined && there.blob.head === here.blob.head && there.mode.head === here.mode.head;
}
