/**
 * How many refused logins of resident runners are answered in their own words (AUT-2). More a minute are told to
 * come later, and cost a look at one index; whoever has a token that holds is never held up by them.
 */
import { Refusal } from '../errors.ts';

/** Refused logins a minute that are told why. */
const MOST = 30;
const MINUTE_MS = 60_000;

/** Passes a login on and counts its refusal. */
export interface RefusalPace {
  readonly pass: <T>(login: () => Promise<T>) => Promise<T>;
}

/** One count for the process: who asks is anybody, behind a proxy from one address. */
export function createRefusalPace(most = MOST): RefusalPace {
  let from = 0;
  let refused = 0;
  return {
    async pass(login) {
      try {
        return await login();
      } catch (error) {
        if (!(error instanceof Refusal) || error.code !== 'unauthorized') throw error;
        const now = performance.now();
        if (now - from > MINUTE_MS) {
          from = now;
          refused = 0;
        }
        refused += 1;
        if (refused > most)
          throw new Refusal(
            'rate_limited',
            'too many refused logins: try again in a minute',
            'a token that holds',
          );
        throw error;
      }
    },
  };
}
