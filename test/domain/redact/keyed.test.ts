import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { innerHash, MOST_REDACTED, redactedOf, sealedField } from '../../../app/domain/redact/keyed.ts';
import { redactor } from '../../../app/domain/redact.ts';
import { testSigner } from '../../helpers/ledger.ts';

const token = 'ghp_0123456789abcdef0123456789abcdef0123';
const keys = testSigner().redactionKeys('1', '2');
const kept = (text: string, values: string[] = [], of = keys) =>
  sealedField(of, redactedOf(redactor(values), of.salt, [text])).redacted ?? [];

describe('REV-8: what is kept of a secret', () => {
  test('case 82: equal values are equal wherever they stand, other values and other repositories are not', () => {
    const [one] = kept(`const a = "${token}"`);
    expect(one).toEqual({ kind: 'github_token', hash: expect.stringMatching(/^[0-9a-f]{64}$/) });
    expect(kept(`again: ${token}!`)).toEqual([one]);
    expect(kept(`twice ${token} ${token}`)).toEqual([one]);
    expect(kept(`${token.slice(0, -1)}x`)[0]?.hash).not.toBe(one?.hash);
    const signer = testSigner();
    const own = signer.redactionKeys('1', '2');
    const others = [signer.redactionKeys('1', '3'), signer.redactionKeys('2', '2'), keys];
    const hashes = [own, ...others].map((of) => kept(token, [], of)[0]?.hash);
    expect(new Set(hashes).size).toBe(4);
    expect(kept(token, [], signer.redactionKeys('1', '2'))[0]?.hash).toBe(hashes[0]);
  });

  test('a declared value split over lines is the same value', () => {
    const value = 'correct horse battery staple!';
    const [one] = kept(`<${value}>`, [value]);
    expect(kept(`<${value.replace(' battery', '\n  battery')}>`, [value])).toEqual([one]);
  });

  test('attack: neither the plain digest nor the salt that a runner is told gives the stored hash', () => {
    const [one] = kept(token);
    const guesses = [
      createHash('sha256').update(token).digest('hex'),
      innerHash(keys.salt, token),
      innerHash(keys.salt, innerHash(keys.salt, token)),
    ];
    expect(guesses).not.toContain(one?.hash);
    expect(JSON.stringify(kept(token))).not.toContain(token.slice(4, 20));
  });

  test('nothing redacted leaves no field, and a text full of secrets a bounded one', () => {
    expect(sealedField(keys, redactedOf(redactor(), keys.salt, ['plain', null]))).toEqual({});
    const many = Array.from({ length: 100 }, (_, i) => `${token.slice(0, -3)}${100 + i}`).join(' ');
    expect(kept(many)).toHaveLength(MOST_REDACTED);
  });
});
