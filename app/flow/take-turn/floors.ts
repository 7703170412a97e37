/**
 * Where the turns of a busy queue begin to look (LSE-2). What was leased leaves dead entries at the head of the
 * index until the next vacuum, and under somebody's long transaction they stay; each turn would read past all
 * of them. So a turn is told what the one before it saw first. It is a hint and wears off: a ticket whose tag was drawn before and
 * committed after that look is in front of it, and must not be passed over for long.
 */
import type { Heads } from '../../../db/store/turn.ts';

/** Turns, and milliseconds, that one look without a hint is good for. */
const TURNS = 32;
const MOST_MS = 250;

/** The hints of one repository's turns. */
export interface Floors {
  /** What the next turn is told; nothing when it is time for a look at all there is. */
  next(): { readonly floors?: Heads };
  /** What that turn, told or not, saw first. */
  learn(heads: Heads): void;
  /** Something came in front of what was seen: the next turn is told nothing. */
  forget(): void;
}

/** Hints as `now`, in milliseconds of any clock that does not step, lets them be. */
export function createFloors(now: () => number = () => performance.now()): Floors {
  let left = 0;
  let until = 0;
  const known = new Map<string, string>();
  return {
    next() {
      if (left > 0 && now() < until) {
        left -= 1;
        return { floors: new Map(known) };
      }
      left = TURNS;
      until = now() + MOST_MS;
      known.clear();
      return {};
    },
    learn(heads) {
      for (const [provider, tag] of heads) known.set(provider, tag);
    },
    forget() {
      left = 0;
    },
  };
}
