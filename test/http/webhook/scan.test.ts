import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { MAX_DEPTH, scanBody } from '../../../app/http/webhook/scan.ts';

const scan = (text: string) => scanBody(Buffer.from(text));

describe('scanBody', () => {
  it('finds the top-level keys of any object', () => {
    fc.assert(
      fc.property(
        fc.dictionary(
          fc.string({ unit: fc.constantFrom('a', 'b', '_', 'é', ' ') }),
          fc.jsonValue({ maxDepth: 5 }),
        ),
        (value) => {
          const found = scan(JSON.stringify(value, null, 1));
          expect(found.ok && [...found.keys].sort()).toEqual(Object.keys(value).sort());
        },
      ),
    );
  });

  it('agrees with JSON.parse on what is JSON, mutated at any place', () => {
    const sample = '{"a":[1,-0.5e+3,true,null,"\\u00e9\\n"],"b":{"c":[],"d":{}}}';
    const letters = fc.constantFrom(...'{}[]:,"\\0123456789-+.eEtrufalsn \t\n\u0001x');
    fc.assert(
      fc.property(fc.nat(sample.length), fc.nat(2), fc.array(letters, { maxLength: 3 }), (at, cut, put) => {
        const text = sample.slice(0, at) + put.join('') + sample.slice(at + cut);
        let parsed: unknown;
        try {
          parsed = JSON.parse(text);
        } catch {
          parsed = undefined;
        }
        const object = typeof parsed === 'object' && parsed !== null && !Array.isArray(parsed);
        expect(scan(text).ok).toBe(object);
      }),
      { numRuns: 3_000 },
    );
  });

  it(`refuses nesting below ${MAX_DEPTH} levels and no other`, () => {
    const deep = (n: number) => `{"a":${'['.repeat(n)}${']'.repeat(n)}}`;
    expect(scan(deep(MAX_DEPTH - 1)).ok).toBe(true);
    expect(scan(deep(MAX_DEPTH))).toEqual({ ok: false, reason: 'too_deep' });
  });
});
