import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { environmentDigest, inputHash } from '../../app/domain/receipt/input-hash.ts';
import {
  RECEIPT_CHARS,
  type ReceiptDetail,
  readReceiptMessage,
  receiptDetail,
  receiptMessage,
  receiptTrouble,
} from '../../app/protocol/receipt.ts';

const sha256 = 'a'.repeat(64);
const oid = 'b'.repeat(40);
const stream = { bytes: 3, sha256, tail: 'ok\n' };
const detail = (more: Partial<ReceiptDetail> = {}): ReceiptDetail => ({
  v: 1,
  command: 'test',
  run: { items: ['npm', 'test'], more: 0 },
  command_sha256: sha256,
  environment_sha256: sha256,
  input_sha256: sha256,
  base: oid,
  head: oid,
  tree: { before: oid, after: oid },
  mutated: { items: [], more: 0 },
  started: true,
  exit: 0,
  signal: null,
  timed_out: false,
  cancelled: false,
  ms: 12,
  stdout: stream,
  stderr: stream,
  artifacts: { found: { items: [], more: 0 }, missing: { items: [], more: 0 } },
  ports: [],
  ...more,
});

const safe = (max: number) =>
  fc.string({ unit: 'binary', maxLength: max }).map((text) => text.toWellFormed().replaceAll('\0', ''));
const nasty = fc.oneof(
  safe(2000),
  fc.constantFrom(
    '::error::x',
    '##[group]',
    '%0A::notice::',
    '::'.repeat(500),
    '\u2028::x',
    '"}::\n::add-mask::y',
  ),
);
const list = <T>(item: fc.Arbitrary<T>, most: number) =>
  fc.record({ items: fc.array(item, { maxLength: most, size: 'max' }), more: fc.nat(9) });
const details: fc.Arbitrary<ReceiptDetail> = fc
  .record({
    run: list(
      nasty.map((text) => text.slice(0, 1000).toWellFormed()),
      60,
    ),
    mutated: list(
      fc.oneof(
        nasty.filter((text) => text !== ''),
        fc.constant({ b64: '/w==' }),
      ),
      100,
    ),
    stdout: fc.record({ bytes: fc.nat(), sha256: fc.constant(sha256), tail: nasty }),
    stderr: fc.record({ bytes: fc.nat(), sha256: fc.constant(sha256), tail: nasty }),
    missing: list(
      nasty.map((text) => text.slice(0, 1000).toWellFormed()),
      50,
    ),
    ports: fc.array(fc.constant({ name: 'P'.repeat(100), port: 65_535 }), { maxLength: 10 }),
  })
  .map(({ missing, ...rest }) =>
    detail({ ...rest, artifacts: { found: { items: [], more: 0 }, missing }, command: 'c'.repeat(60) }),
  );

describe('the annotation of a receipt', () => {
  test('VER-2: a short one comes back as it was', () => {
    const one = detail({ stdout: { ...stream, tail: 'ä 😀 ::error:: ##[x]\n' } });
    expect(readReceiptMessage(receiptMessage(one))).toEqual(one);
  });

  test('ACT-4: whatever it holds, it fits, is plain ASCII, and has nothing that a log would obey', () => {
    fc.assert(
      fc.property(details, (one) => {
        const message = receiptMessage(one);
        expect(message.length).toBeLessThanOrEqual(RECEIPT_CHARS);
        expect(message).toMatch(/^[\x20-\x7e]*$/);
        expect(message).not.toContain('::');
        expect(message).not.toContain('##[');
        const read = readReceiptMessage(message);
        // shortening never hides trouble, and counts what it left out
        expect(read && receiptTrouble(read)).toBe(receiptTrouble(one));
        for (const key of ['mutated', 'run'] as const)
          expect((read?.[key].items.length ?? 0) + (read?.[key].more ?? 0)).toBe(
            one[key].items.length + one[key].more,
          );
        expect(one.stdout.tail.endsWith(read?.stdout.tail ?? 'no')).toBe(true);
      }),
      { numRuns: 300 },
    );
  });

  test('VER-3: what anybody else prints under the title is no detail', () => {
    for (const text of [
      '',
      '{}',
      'null',
      '[1]',
      '{"v":2}',
      '{'.repeat(70_000),
      JSON.stringify({ ...detail(), more: 1 }),
    ])
      expect(readReceiptMessage(text)).toBeNull();
    for (const change of [{ exit: 256 }, { signal: 'x' }, { v: 2 }, { command: 'a\0' }, { ms: -1 }])
      expect(receiptDetail.safeParse({ ...detail(), ...change }).success).toBe(false);
  });
});

test('VER-3: everything that a detail leaves open is trouble, the first in order is said', () => {
  const missing = { found: { items: [], more: 0 }, missing: { items: [], more: 1 } };
  const cases: [Partial<ReceiptDetail>, ReturnType<typeof receiptTrouble>][] = [
    [{}, null],
    [{ started: false, exit: 125, cancelled: true }, 'not_started'],
    [{ cancelled: true, exit: null, signal: 'SIGTERM' }, 'cancelled'],
    [{ timed_out: true, exit: 0 }, 'timed_out'],
    [{ exit: 1 }, 'failed'],
    [{ exit: null, signal: 'SIGSEGV' }, 'failed'],
    [{ artifacts: missing }, 'artifact_missing'],
    [{ tree: { before: null, after: oid } }, 'tree_unknown'],
    [{ tree: { before: oid, after: null } }, 'tree_unknown'],
    [{ tree: { before: oid, after: 'c'.repeat(40) } }, 'mutated'],
    [{ mutated: { items: [], more: 3 } }, 'mutated'],
  ];
  for (const [more, trouble] of cases) expect(receiptTrouble(detail(more))).toBe(trouble);
});

test('VER-2: the input hash follows argv, environment, artifacts and the set of ports', () => {
  const machine = { os: 'Linux', arch: 'X64', image: '', version: '' };
  const command = { run: ['a'], env: {}, ports: ['B', 'A'], artifacts: ['x'] };
  const environment = environmentDigest({ B: '1', A: '2' }, machine);
  const hash = inputHash(command, environment);
  expect(inputHash({ ...command, ports: ['A', 'B'] }, environmentDigest({ A: '2', B: '1' }, machine))).toBe(
    hash,
  );
  const others = [
    inputHash({ ...command, run: ['a', ''] }, environment),
    inputHash({ ...command, ports: ['A'] }, environment),
    inputHash({ ...command, artifacts: [] }, environment),
    inputHash(command, environmentDigest({ A: '2' }, machine)),
    inputHash(command, environmentDigest({ B: '1', A: '2' }, { ...machine, version: '2' })),
  ];
  expect(new Set([hash, ...others]).size).toBe(6);
});
