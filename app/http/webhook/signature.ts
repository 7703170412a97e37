/** The signature of a delivery, over the bytes as received (case 68). */
import { createHmac, type Hmac, timingSafeEqual } from 'node:crypto';

const FORM = /^sha256=([0-9a-f]{64})$/;
const NOBODY = Buffer.alloc(32);

/** Takes a body's chunks as they arrive and judges one signature header at the end. */
export interface SignatureCheck {
  update(chunk: Buffer): void;
  /** True when the header is `sha256=` and 64 lower-case hex digits of the MAC under one of the secrets. Never throws. */
  matches(header: string | undefined): boolean;
}

/**
 * Begins a check under all secrets at once: the present one and, in a rotation, the one before
 * (Probot knows only one). A header of any wrong form costs the same comparison as a wrong value,
 * so that the time says nothing about which it was (attack 3).
 */
export function checkSignature(secrets: readonly string[]): SignatureCheck {
  const macs: Hmac[] = secrets.map((secret) => createHmac('sha256', secret));
  return {
    update(chunk) {
      for (const mac of macs) mac.update(chunk);
    },
    matches(header) {
      const form = FORM.exec(header ?? '');
      const given = form?.[1] === undefined ? NOBODY : Buffer.from(form[1], 'hex');
      let same = false;
      for (const mac of macs) same = timingSafeEqual(mac.digest(), given) || same;
      return same && form !== null;
    },
  };
}
