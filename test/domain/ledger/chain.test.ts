import { describe, expect, test } from 'vitest';
import {
  type ChainIdentity,
  type ChainVerdict,
  ChainVerifier,
  type VerifiedHead,
} from '../../../app/domain/ledger/chain.ts';
import type { RunHead } from '../../../app/domain/ledger/head.ts';
import { genesisOf, rowHash, type StoredRow } from '../../../app/domain/ledger/row.ts';
import { newKeys } from '../../../app/signing/keys.ts';
import { createSigner, type Signer } from '../../../app/signing/signer.ts';
import { smallRow } from '../../helpers/ledger.ts';

const keys = newKeys('ledger.test');
const signer = createSigner(keys);
const at = new Date('2026-11-29T12:00:00.000Z');

function identity(run: string, installation = '5', repo = '74'): ChainIdentity {
  const log = signer.logOf(installation);
  return {
    log,
    run,
    repo,
    genesis: genesisOf(log, { kind: 'pull', repositoryId: repo, name: run, epoch: 1 }),
  };
}

function chainOf(chain: ChainIdentity, count: number, by: Signer = signer, from = 0): StoredRow[] {
  const rows: StoredRow[] = [];
  let hash = chain.genesis;
  for (let i = 0; i < count; i++) {
    const row = by.signRow({ ...chain, seq: i, hash }, at, {
      kind: 'command.refused',
      ...smallRow(`code-${from + i}`),
    });
    rows.push(row);
    hash = row.hash;
  }
  return rows;
}

/** As Postgres would give them: in order of the column. */
function verdictOf(
  chain: ChainIdentity,
  rows: readonly StoredRow[],
  published: RunHead[] = [],
  from?: VerifiedHead,
): ChainVerdict {
  const verifier = new ChainVerifier(chain, signer.checkMac, from, published);
  verifier.feed([...rows].sort((a, b) => a.seq - b.seq));
  return verifier.finish();
}

const chain = identity('run-a');
const rows = chainOf(chain, 6);
const at3 = rows[2] as StoredRow;
const without = (index: number) => rows.filter((_, i) => i !== index);
/** What somebody does who can write to the table and tidy up: the columns follow the new places. */
function renumber(list: readonly StoredRow[]): StoredRow[] {
  let prev = chain.genesis;
  return list.map((row, i) => {
    const placed = { ...row, seq: i + 1, prev };
    prev = row.hash;
    return placed;
  });
}

describe('an intact chain', () => {
  test('LED-8: verifies, in one part or many, and from a head in memory', () => {
    const head = { seq: 6, hash: rows[5]?.hash };
    expect(verdictOf(chain, rows)).toEqual({ kind: 'intact', head });
    const verifier = new ChainVerifier(chain, signer.checkMac);
    for (const row of rows) verifier.feed([row]);
    expect(verifier.finish({ seq: 6, hash: rows[5]?.hash ?? null })).toEqual({ kind: 'intact', head });
    expect(verdictOf(chain, rows.slice(3), [], { seq: 3, hash: at3.hash })).toEqual({ kind: 'intact', head });
  });

  test('LED-9: every published head of it is a prefix', () => {
    for (const row of rows) {
      const published = [{ log: chain.log, run: chain.run, seq: row.seq, hash: row.hash }];
      expect(verdictOf(chain, rows, published).kind).toBe('intact');
    }
  });

  test('LED-6: rows under an old kid verify after a rotation, and without its root are unverifiable, not invalid', () => {
    const other = newKeys('ledger.test');
    const rotated = { ...other, roots: { ...keys.roots, ...other.roots }, log: keys.log };
    const later = createSigner(rotated);
    const tip = { ...chain, seq: 6, hash: rows[5]?.hash as Buffer };
    const next = later.signRow(tip, at, { kind: 'command.refused', ...smallRow('after') });
    const both = new ChainVerifier(chain, later.checkMac);
    both.feed([...rows, next]);
    expect(both.finish().kind).toBe('intact');
    const onlyNew = new ChainVerifier(chain, createSigner({ ...other, log: keys.log }).checkMac);
    onlyNew.feed([...rows, next]);
    expect(onlyNew.finish()).toEqual({ kind: 'unverifiable', seq: 1, kid: keys.current });
    const onlyOld = new ChainVerifier(chain, signer.checkMac);
    onlyOld.feed([...rows, next]);
    expect(onlyOld.finish()).toEqual({ kind: 'unverifiable', seq: 7, kid: other.current });
  });
});

describe('attack 33: a single byte', () => {
  const columns = ['prev', 'hash', 'mac', 'body'] as const;
  test.each(columns)('flipped anywhere in %s is edited, at that row', (column) => {
    for (const [index, row] of rows.entries()) {
      for (let byte = 0; byte < row[column].length; byte++) {
        const flipped = Buffer.from(row[column]);
        flipped[byte] = (flipped[byte] ?? 0) ^ (1 << (byte % 8));
        const attacked = rows.map((one, i) => (i === index ? { ...one, [column]: flipped } : one));
        const found = verdictOf(chain, attacked);
        expect(found).toMatchObject({ kind: 'invalid', seq: row.seq, fault: 'edited' });
      }
    }
  });

  test('of the kind or the seq column is found', () => {
    for (const [index, row] of rows.entries()) {
      const kind = rows.map((one, i) => (i === index ? { ...one, kind: 'gate.decided' } : one));
      expect(verdictOf(chain, kind)).toMatchObject({ kind: 'invalid', seq: row.seq, fault: 'edited' });
      const seq = rows.map((one, i) => (i === index ? { ...one, seq: row.seq ^ 64 } : one));
      expect(verdictOf(chain, seq)).toMatchObject({ kind: 'invalid', seq: row.seq });
    }
  });

  test('with the hash made to fit: the MAC tells', () => {
    const text = at3.body.toString('utf8').replace('code-2', 'code-9');
    const body = Buffer.from(text, 'utf8');
    const attacked = renumber(rows.map((row) => (row === at3 ? { ...row, body, hash: rowHash(body) } : row)));
    expect(verdictOf(chain, attacked)).toMatchObject({ kind: 'invalid', seq: 3, fault: 'edited' });
  });
});

describe('attack 34: rows with valid MACs in the wrong place', () => {
  const foreign = chainOf(identity('run-b'), 6, signer, 50);
  const tenant = chainOf(identity('run-a', '6'), 6, signer, 70);

  test.each([0, 1, 2, 3, 4])(
    'row %i deleted is missing, whether the columns were renumbered or not',
    (index) => {
      const expected = { kind: 'invalid', seq: index + 1, fault: 'missing' };
      expect(verdictOf(chain, without(index))).toMatchObject(expected);
      expect(verdictOf(chain, renumber(without(index)))).toMatchObject(expected);
    },
  );

  test('two rows swapped are reordered', () => {
    for (let i = 0; i < 5; i++) {
      const list = [...rows];
      [list[i], list[i + 1]] = [list[i + 1] as StoredRow, list[i] as StoredRow];
      expect(verdictOf(chain, renumber(list))).toMatchObject({
        kind: 'invalid',
        seq: i + 1,
        fault: 'reordered',
      });
    }
  });

  test('a row inserted again is duplicated', () => {
    for (let i = 0; i < 6; i++) {
      const list = [...rows.slice(0, i + 1), rows[0] as StoredRow, ...rows.slice(i + 1)];
      expect(verdictOf(chain, renumber(list))).toMatchObject({
        kind: 'invalid',
        seq: i + 2,
        fault: 'duplicated',
      });
    }
  });

  test('a row of another run or tenant is foreign, in place of one or besides them', () => {
    for (const theirs of [foreign, tenant]) {
      for (let i = 0; i < 6; i++) {
        const swapped = rows.map((row, at) => (at === i ? (theirs[i] as StoredRow) : row));
        expect(verdictOf(chain, renumber(swapped))).toMatchObject({ seq: i + 1, fault: 'foreign' });
        const added = [...rows.slice(0, i), theirs[i] as StoredRow, ...rows.slice(i)];
        expect(verdictOf(chain, renumber(added))).toMatchObject({ seq: i + 1, fault: 'foreign' });
      }
    }
  });

  test('a whole chain moved to another pull request is foreign: its genesis is not of this run', () => {
    const moved: ChainIdentity = { ...chain, genesis: identity('run-c').genesis };
    expect(verdictOf(moved, rows)).toMatchObject({ kind: 'invalid', seq: 1, fault: 'foreign' });
    const tidied = rows.map((row, i) => (i === 0 ? { ...row, prev: moved.genesis } : row));
    expect(verdictOf(moved, tidied)).toMatchObject({ kind: 'invalid', seq: 1, fault: 'foreign' });
  });

  test('a row of a version or a kind that we do not know is unknown_version', () => {
    const body = Buffer.from(at3.body.toString('utf8').replace(/"v":1}$/, '"v":2}'), 'utf8');
    const versioned = rows.map((row) => (row === at3 ? { ...row, body, hash: rowHash(body) } : row));
    expect(verdictOf(chain, versioned)).toMatchObject({ kind: 'invalid', seq: 3, fault: 'unknown_version' });
  });
});

describe('attack 35: a cut tail', () => {
  test('the last k rows removed, for every k, is truncated against a head that was published', () => {
    const last = rows[5] as StoredRow;
    const published = [{ log: chain.log, run: chain.run, seq: 6, hash: last.hash }];
    for (let left = 0; left < 6; left++) {
      const found = verdictOf(chain, rows.slice(0, left), published);
      expect(found).toMatchObject({ kind: 'invalid', seq: left + 1, fault: 'truncated' });
    }
  });

  test('without any head from outside it cannot be seen from inside, and the head of the table tells a careless one', () => {
    const verifier = new ChainVerifier(chain, signer.checkMac);
    verifier.feed(rows.slice(0, 4));
    expect(verifier.finish().kind).toBe('intact');
    expect(verifier.finish({ seq: 6, hash: rows[5]?.hash ?? null })).toMatchObject({
      seq: 5,
      fault: 'truncated',
    });
  });

  test('a rewrite by somebody who holds the MAC key is caught by the published head', () => {
    const rewritten = chainOf(chain, 6, signer, 30);
    expect(verdictOf(chain, rewritten).kind).toBe('intact');
    const published = [{ log: chain.log, run: chain.run, seq: 4, hash: (rows[3] as StoredRow).hash }];
    expect(verdictOf(chain, rewritten, published)).toMatchObject({
      kind: 'invalid',
      seq: 4,
      fault: 'truncated',
    });
  });

  test('a head of another run proves nothing here', () => {
    const published = [{ log: chain.log, run: 'run-b', seq: 4, hash: (rows[3] as StoredRow).hash }];
    expect(verdictOf(chain, rows, published)).toMatchObject({ kind: 'invalid', fault: 'foreign' });
  });
});
