/** How what a resident runner asks for is shared out over places of its pool (LSE-1): pure. */

/** A repository with a ticket ready. `tag` orders the tickets of an installation, as a lease goes by it. */
export interface SharePlace {
  readonly installationId: string;
  readonly repositoryId: string;
  readonly tag: number;
  /** When the installation was last given a runner of the pool; null: never. */
  readonly servedAtMs: number | null;
}

/** So many tickets are to be asked for at one place. */
export interface Share<P extends SharePlace = SharePlace> {
  readonly place: P;
  readonly n: number;
}

/**
 * Installations take turns, who was served longest ago first; within one, repositories by their next tag, one
 * ticket each before one gets a second. At most `most` places: each is a statement of its own. In the order of
 * their last ticket, so that who got the last one is the one that was served last.
 */
export function shareOut<P extends SharePlace>(places: readonly P[], max: number, most: number): Share<P>[] {
  const lines = new Map<string, P[]>();
  for (const place of [...places].sort((a, b) => a.tag - b.tag))
    lines.set(place.installationId, [...(lines.get(place.installationId) ?? []), place]);
  const order = [...lines.values()].sort((a, b) => servedOf(a) - servedOf(b)).slice(0, Math.max(1, most));
  const each = Math.max(1, Math.floor(most / Math.max(1, order.length)));
  const shares = new Map<P, number>();
  for (let i = 0; i < max; i++) {
    const line = order[i % Math.max(1, order.length)]?.slice(0, each) ?? [];
    const place = line[Math.floor(i / Math.max(1, order.length)) % Math.max(1, line.length)];
    if (place === undefined) break;
    const n = shares.get(place) ?? 0;
    shares.delete(place);
    shares.set(place, n + 1);
  }
  return [...shares].map(([place, n]) => ({ place, n }));
}

function servedOf(line: readonly SharePlace[]): number {
  return line[0]?.servedAtMs ?? Number.NEGATIVE_INFINITY;
}
