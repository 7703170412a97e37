import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { canonicalBytes } from '../../../app/domain/ledger/canonical.ts';
import {
  type ChainSubject,
  genesisOf,
  installationRun,
  pae,
  readRow,
  rowHash,
} from '../../../app/domain/ledger/row.ts';
import { smallRow, testSigner } from '../../helpers/ledger.ts';

const signer = testSigner();
const tip = {
  log: 'ledger.test/i/5',
  run: 'run-a',
  repo: '9007199254740995',
  seq: 3,
  hash: Buffer.alloc(32, 3),
};
const at = new Date('2026-11-29T12:00:00.120Z');
const { body } = signer.signRow(tip, at, { kind: 'command.refused', ...smallRow('x') });
const json = JSON.parse(body.toString('utf8')) as Record<string, unknown>;
const invalid = expect.objectContaining({ code: 'row_invalid' });
const read = (change: Record<string, unknown>) =>
  readRow(Buffer.from(JSON.stringify({ ...json, ...change })));

describe('a row’s body', () => {
  test('LED-1: is the canonical bytes of a strict object with these fields and no other', () => {
    expect(Object.keys(json)).toEqual(
      'actor at block cause data kid kind log prev repo run salt seq v'.split(' '),
    );
    expect(json).toMatchObject({ v: 1, seq: 4, at: '2026-11-29T12:00:00.120Z', repo: '9007199254740995' });
    expect(canonicalBytes(readRow(body))).toEqual(body);
    expect(rowHash(body)).toEqual(
      createHash('sha256')
        .update(Buffer.concat([Buffer.from([0]), body]))
        .digest(),
    );
  });

  test.each<[string, Record<string, unknown>]>([
    ['a field that we do not know', { more: 1 }],
    ['another version', { v: 2 }],
    ['an unknown kind', { kind: 'run.imagined' }],
    ['a kind of the prototype', { kind: 'constructor' }],
    ['the data of another kind', { kind: 'gate.decided' }],
    ['a number for an id', { repo: 74 }],
    ['a time without milliseconds', { at: '2026-11-29T12:00:00Z' }],
    ['a place before the first', { seq: 0 }],
    ['a fraction of a place', { seq: 1.5 }],
    ['a short prev', { prev: 'ab' }],
    ['an actor of another shape', { actor: { kind: 'app', id: '1', via: 'delivery', also: 1 } }],
    ['data with a further field', { data: { command: 'rerun', code: 'x', more: 1 } }],
  ])('LED-1: with %s is row_invalid', (_, change) => {
    expect(() => read(change)).toThrow(invalid);
  });

  test('LED-1: bytes that are not JSON, or hold more than it, are row_invalid', () => {
    for (const bytes of [
      Buffer.alloc(0),
      Buffer.from('null'),
      Buffer.concat([body, body]),
      body.subarray(1),
    ]) {
      expect(() => readRow(bytes)).toThrow(invalid);
    }
  });
});

describe('what a row is bound to', () => {
  test('LED-3: no two pairs of type and body have one encoding', () => {
    expect(pae('a', Buffer.from('b')).toString()).toBe('DSSEv1 1 a 1 b');
    const pair = fc.tuple(fc.string({ unit: 'binary' }), fc.uint8Array());
    fc.assert(
      fc.property(pair, pair, ([type, bytes], [other, others]) => {
        const equal = pae(type, bytes).equals(pae(other, others));
        const same =
          Buffer.from(type).equals(Buffer.from(other)) && Buffer.from(bytes).equals(Buffer.from(others));
        expect(equal).toBe(same);
      }),
    );
  });

  test('LED-3: every part of what a chain is of changes its genesis', () => {
    const pull: ChainSubject = { kind: 'pull', repositoryId: '74', name: '1', epoch: 1 };
    const all = [
      genesisOf('l/i/5', pull),
      genesisOf('l/i/6', pull),
      genesisOf('l/i/5', { ...pull, repositoryId: '75' }),
      genesisOf('l/i/5', { ...pull, kind: 'group' }),
      genesisOf('l/i/5', { ...pull, name: '11' }),
      genesisOf('l/i/5', { ...pull, epoch: 2 }),
      genesisOf('l/i/5', { kind: 'installation', epoch: 1 }),
      genesisOf('l/i/5', { kind: 'installation', epoch: 2 }),
    ].map((hash) => hash.toString('hex'));
    expect(new Set(all).size).toBe(all.length);
    expect(genesisOf('l/i/5', pull).toString('hex')).toBe(all[0]);
    expect(installationRun('5')).toBe('i/5');
  });
});
