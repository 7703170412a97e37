/** The files of a block nearest to one of them (REV-2): what a reviewer sees of the change beside its own file. Pure. */
import { pathKey, type WirePath } from './path.ts';

/**
 * Gives for a path its `most` neighbours in the order of path bytes, nearest first: what shares the
 * longest folder stands next to it. One sort for all files of a block, whatever their number.
 */
export function nearestOf(paths: readonly WirePath[], most: number): (path: WirePath) => WirePath[] {
  const sorted = paths
    .map((path) => ({ path, key: pathKey(path) }))
    .sort((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0));
  const place = new Map(sorted.map(({ key }, i) => [key, i]));
  return (path) => {
    const key = pathKey(path);
    const at = place.get(key);
    if (at === undefined) return [];
    const found: WirePath[] = [];
    let before = at - 1;
    let after = at + 1;
    while (found.length < most && (before >= 0 || after < sorted.length)) {
      const [left, right] = [sorted[before], sorted[after]];
      const goLeft =
        right === undefined || (left !== undefined && shared(left.key, key) >= shared(right.key, key));
      const next = goLeft ? left : right;
      if (goLeft) before--;
      else after++;
      if (next !== undefined) found.push(next.path);
    }
    return found;
  };
}

/** How many folders two paths share from the root. */
function shared(a: string, b: string): number {
  const [one, other] = [a.split('/').slice(0, -1), b.split('/').slice(0, -1)];
  const differs = one.findIndex((part, i) => part !== other[i]);
  return differs < 0 ? one.length : differs;
}
