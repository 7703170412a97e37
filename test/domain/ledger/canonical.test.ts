import canonicalize from 'canonicalize';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { BODY_LIMIT, canonicalBytes } from '../../../app/domain/ledger/canonical.ts';

const key = fc.stringMatching(/^[a-z0-9_]{1,12}$/).filter((name) => name !== '__proto__');
const text = fc
  .string({ unit: 'binary', maxLength: 20 })
  .filter((one) => !one.includes('\u0000') && one.isWellFormed());
const json = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 5 },
    fc.boolean(),
    fc.constant(null),
    text,
    fc.maxSafeInteger().map((n) => (Object.is(n, -0) ? 0 : n)),
    fc.array(tie('value'), { maxLength: 4 }),
    fc.dictionary(key, tie('value'), { maxKeys: 4, noNullPrototype: true }),
  ),
})).value;

function shuffled(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(shuffled);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .reverse()
      .map(([name, inner]) => [name, shuffled(inner)]),
  );
}

describe('canonicalBytes', () => {
  test('LED-2: reads back as the same value, whatever the order of the keys, with no line break inside', () => {
    fc.assert(
      fc.property(json, (value) => {
        const bytes = canonicalBytes(value);
        expect(JSON.parse(bytes.toString('utf8'))).toEqual(value);
        expect(canonicalBytes(shuffled(value))).toEqual(bytes);
        expect(canonicalBytes(JSON.parse(bytes.toString('utf8')))).toEqual(bytes);
        expect(bytes.includes(0x0a)).toBe(false);
        expect(bytes.toString('utf8')).toBe(canonicalize(value)); // RFC 8785 as others write it
      }),
    );
  });

  const sparse = new Array(3);
  sparse[0] = 1;
  class Custom {
    readonly a = 1;
  }
  test.each<[string, unknown]>([
    ['a float', 1.5],
    ['minus zero', -0],
    ['an unsafe integer', 2 ** 53],
    ['NaN', Number.NaN],
    ['infinity', Number.POSITIVE_INFINITY],
    ['undefined', { a: undefined }],
    ['a function', { a: () => 1 }],
    ['a symbol', { a: Symbol('x') }],
    ['a symbol for a key', { [Symbol('x')]: 1 }],
    ['a big integer', { a: 1n }],
    ['a hole in an array', sparse],
    ['a NUL', { a: 'x\u0000y' }],
    ['a lone high surrogate', { a: 'x\ud800' }],
    ['a lone low surrogate', ['\udc00x']],
    ['a key with upper case', { A: 1 }],
    ['an empty key', { '': 1 }],
    ['a class', new Custom()],
    ['a date', new Date(0)],
    ['an object with toJSON', { toJSON: () => 1 }],
    ['bytes', { a: Buffer.from('x') }],
  ])('LED-2: %s is row_invalid', (_, value) => {
    expect(() => canonicalBytes(value)).toThrow(expect.objectContaining({ code: 'row_invalid' }));
  });

  test('LED-2: depth 8 passes, depth 9 and 20,000 are refused without a stack overflow', () => {
    const nested = (depth: number) => {
      let value: unknown = 1;
      for (let i = 0; i < depth; i++) value = i % 2 === 0 ? [value] : { a: value };
      return value;
    };
    expect(canonicalBytes(nested(8)).length).toBeGreaterThan(0);
    for (const depth of [9, 20_000]) {
      expect(() => canonicalBytes(nested(depth))).toThrow(expect.objectContaining({ code: 'row_invalid' }));
    }
  });

  test('LED-2: 32 KiB pass, one byte more is refused; the error names the place and not the value', () => {
    expect(canonicalBytes('x'.repeat(BODY_LIMIT - 2))).toHaveLength(BODY_LIMIT);
    expect(() => canonicalBytes('x'.repeat(BODY_LIMIT - 1))).toThrow(
      expect.objectContaining({ code: 'row_invalid' }),
    );
    expect(() => canonicalBytes({ data: { list: [1, 'secret\u0000'] } })).toThrow(
      /^data\.list\[1\] holds a NUL/,
    );
  });
});
