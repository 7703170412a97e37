/** The only source of names and secrets of the server: random, never guessed, never repeated. */
import { randomBytes } from 'node:crypto';
import type { Ids } from '../flow/deps.ts';

const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz';

/** Ids in the form of a ULID in lower case: 48 bits of milliseconds, then 80 random bits. */
export function createIds(): Ids {
  return {
    next() {
      let text = '';
      for (let ms = Date.now(), n = 0; n < 10; n++) {
        text = `${ALPHABET[ms % 32]}${text}`;
        ms = Math.floor(ms / 32);
      }
      for (const byte of randomBytes(16)) text += ALPHABET[byte % 32];
      return text;
    },
    secret: () => randomBytes(32).toString('base64url'),
  };
}
