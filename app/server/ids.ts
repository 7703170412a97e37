/** The only source of names and secrets of the server: random, never guessed, never repeated. */
import { randomBytes, randomFillSync } from 'node:crypto';
import type { Ids } from '../flow/deps.ts';

const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz';

/** Random bytes that are drawn at once: as many calls for 16 of them cost more than the ids (bench L8). */
const DRAWN = 4_096;
const RANDOM = 16;

/** Ids in the form of a ULID in lower case: 48 bits of milliseconds, then 80 random bits. */
export function createIds(): Ids {
  const drawn = Buffer.alloc(DRAWN);
  let at = DRAWN;
  let last = -1;
  let prefix = '';
  return {
    next() {
      const now = Date.now();
      if (now !== last) {
        last = now;
        prefix = '';
        for (let ms = now, n = 0; n < 10; n++) {
          prefix = `${ALPHABET[ms % 32]}${prefix}`;
          ms = Math.floor(ms / 32);
        }
      }
      if (at === DRAWN) {
        randomFillSync(drawn);
        at = 0;
      }
      let text = prefix;
      for (const end = at + RANDOM; at < end; at++) text += ALPHABET[(drawn[at] as number) % 32];
      return text;
    },
    secret: () => randomBytes(32).toString('base64url'),
  };
}
