import { createHmac, createSecretKey, generateKeyPairSync, hkdfSync } from 'node:crypto';
import { chmodSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inspect } from 'node:util';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { openHead, parseVkey, vkeyOf } from '../../app/domain/ledger/head.ts';
import { parseKeys } from '../../app/domain/ledger/keys-derive.ts';
import { pae, ROW_TYPE, readRow, rowHash } from '../../app/domain/ledger/row.ts';
import { newKeys, openKeys } from '../../app/signing/keys.ts';
import { createSigner } from '../../app/signing/signer.ts';
import { smallRow } from '../helpers/ledger.ts';

const keys = newKeys('ledger.test');
const signer = createSigner(keys);
const tip = { log: 'ledger.test/i/5', run: 'run-a', repo: '74', seq: 0, hash: Buffer.alloc(32, 3) };
const at = new Date('2026-11-29T12:00:00.123Z');
const sign = (code: string) => signer.signRow(tip, at, { kind: 'command.refused', ...smallRow(code) });

/** HKDF and HMAC as the rules say, made with the library's own parts. */
function expectedMac(body: Buffer, run = tip.run, log = tip.log): Buffer {
  const step = (key: Buffer, name: string, value: string) =>
    Buffer.from(hkdfSync('sha256', key, 'countersign/ledger/v1', pae(name, Buffer.from(value)), 32));
  const root = Buffer.from(keys.roots[keys.current] ?? '', 'base64');
  const key = step(step(root, 'installation', log), 'run', run);
  return createHmac('sha256', createSecretKey(key)).update(pae(ROW_TYPE, body)).digest();
}

describe('rows', () => {
  test('LED-3: the hash is SHA-256(0x00 ‖ body), the MAC is HMAC over DSSE’s encoding under the run’s key', () => {
    const row = sign('x');
    expect(row.hash).toEqual(rowHash(row.body));
    expect(row.mac).toEqual(expectedMac(row.body));
    expect(readRow(row.body)).toMatchObject({
      v: 1,
      seq: 1,
      prev: '03'.repeat(32),
      at: '2026-11-29T12:00:00.123Z',
      kid: keys.current,
    });
  });

  test('LED-3: rows of every length, in any order and over several runs, have the MAC of the library', () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.string({ minLength: 1, maxLength: 190 }), fc.constantFrom('run-a', 'run-b')), {
          maxLength: 8,
        }),
        (list) => {
          for (const [code, run] of list) {
            if (code.includes('\u0000') || !code.isWellFormed()) continue;
            const row = signer.signRow({ ...tip, run }, at, { kind: 'command.refused', ...smallRow(code) });
            const { body, mac } = row;
            expect(mac).toEqual(expectedMac(body, run));
            expect(signer.checkMac(keys.current, tip.log, run, body, mac)).toBe(true);
            expect(signer.checkMac(keys.current, tip.log, 'run-c', body, mac)).toBe(false);
            expect(signer.checkMac(keys.current, 'ledger.test/i/6', run, body, mac)).toBe(false);
          }
        },
      ),
    );
  });

  test('two rows that say the same differ by their salt', () => {
    const [one, two] = [sign('same'), sign('same')].map((row) => readRow(row.body));
    expect(one?.salt).toMatch(/^[0-9a-f]{32}$/);
    expect(one?.salt).not.toBe(two?.salt);
  });

  test('LED-8: an absent key is undefined, a MAC of another length is false', () => {
    const row = sign('x');
    expect(signer.checkMac('nobody', tip.log, tip.run, row.body, row.mac)).toBeUndefined();
    expect(signer.checkMac(keys.current, tip.log, tip.run, row.body, row.mac.subarray(1))).toBe(false);
    expect(signer.checkMac(keys.current, tip.log, tip.run, row.body, Buffer.alloc(0))).toBe(false);
  });

  test('LED-6: more runs than the signer keeps derived still verify', () => {
    const rows = Array.from({ length: 600 }, (_, i) => {
      const run = `run-${i}`;
      return { run, row: signer.signRow({ ...tip, run }, at, { kind: 'command.refused', ...smallRow('x') }) };
    });
    for (const { run, row } of rows)
      expect(signer.checkMac(keys.current, tip.log, run, row.body, row.mac)).toBe(true);
  });

  test('LED-6: nothing that prints a signer prints a key', () => {
    sign('x');
    const printed = inspect(signer, { depth: 10, showHidden: true }) + JSON.stringify(signer);
    for (const secret of [...Object.values(keys.roots), keys.log.seed]) {
      expect(printed).not.toContain(secret);
      expect(printed).not.toContain(Buffer.from(secret, 'base64').toString('hex').slice(0, 16));
    }
  });
});

describe('signed heads', () => {
  const head = { log: tip.log, run: 'run-a', seq: 7, hash: Buffer.alloc(32, 9) };

  test('LED-10: the note is the head’s three lines and a signature that the vkey opens', () => {
    const note = signer.signHead(head);
    const [first, second, third, blank, signature] = note.split('\n');
    expect([first, second, third, blank]).toEqual([
      'ledger.test/i/5/run/run-a',
      '7',
      head.hash.toString('base64'),
      '',
    ]);
    expect(signature).toMatch(/^\u2014 ledger\.test [A-Za-z0-9+/]+=*$/);
    expect(openHead(note, signer.vkey)).toEqual(head);
    const own = { ...head, run: 'i/5' };
    expect(openHead(signer.signHead(own), signer.vkey)).toEqual(own);
  });

  test('LED-10: any byte changed, another key, or a note without our line opens nothing', () => {
    const note = signer.signHead(head);
    const bytes = Buffer.from(note, 'utf8');
    for (let i = 0; i < bytes.length - 1; i++) {
      const flipped = Buffer.from(bytes);
      flipped[i] = (flipped[i] ?? 0) ^ 1;
      expect(openHead(flipped.toString('utf8'), signer.vkey)).toBeUndefined();
    }
    const stranger = createSigner({ ...newKeys('ledger.test') });
    expect(openHead(note, stranger.vkey)).toBeUndefined();
    expect(openHead(note.slice(0, note.indexOf('\u2014')), signer.vkey)).toBeUndefined();
    // a second signer's line beside ours is ignored, since its key is not known here
    const line = stranger.signHead(head).split('\n\n')[1] ?? '';
    expect(openHead(note + line, signer.vkey)).toEqual(head);
  });

  test('C2SP: the vkey is name+id+key, with the id of its key', () => {
    const parsed = parseVkey(signer.vkey);
    expect(parsed?.name).toBe('ledger.test');
    expect(parsed && vkeyOf(parsed.name, parsed.publicKey)).toBe(signer.vkey);
    const id = signer.vkey.split('+')[1] ?? '';
    expect(parseVkey(signer.vkey.replace(id, '00000000'))).toBeUndefined();
    for (const wrong of [
      '',
      'x',
      signer.vkey.replace('+', ' '),
      `${signer.vkey}=`,
      signer.vkey.slice(0, -4),
    ]) {
      expect(parseVkey(wrong)).toBeUndefined();
    }
  });
});

describe('key files', () => {
  const good = JSON.parse(JSON.stringify(keys)) as {
    roots: Record<string, string>;
    current: string;
    log: { name: string; seed: string };
  };
  const rsa = generateKeyPairSync('ed25519')
    .privateKey.export({ format: 'der', type: 'pkcs8' })
    .toString('base64');

  test.each<[string, (file: typeof good) => void]>([
    ['an empty root', (file) => Object.assign(file.roots, { [file.current]: '' })],
    [
      'a root of 31 bytes',
      (file) => Object.assign(file.roots, { [file.current]: Buffer.alloc(31, 1).toString('base64') }),
    ],
    [
      'a root of 33 bytes',
      (file) => Object.assign(file.roots, { [file.current]: Buffer.alloc(33, 1).toString('base64') }),
    ],
    [
      'a root of zeros',
      (file) => Object.assign(file.roots, { [file.current]: Buffer.alloc(32).toString('base64') }),
    ],
    ['a root that is not base64', (file) => Object.assign(file.roots, { [file.current]: '!'.repeat(44) })],
    ['an old root that is short', (file) => Object.assign(file.roots, { old: 'AAAA' })],
    ['a current kid without a root', (file) => Object.assign(file, { current: 'nobody' })],
    ['no roots', (file) => Object.assign(file, { roots: {} })],
    ['a wrapped seed', (file) => Object.assign(file.log, { seed: rsa })],
    ['a log name with a space', (file) => Object.assign(file.log, { name: 'a b' })],
    ['a log name with a plus', (file) => Object.assign(file.log, { name: 'a+b' })],
    ['a field that we do not know', (file) => Object.assign(file, { more: 1 })],
  ])('LED-6: %s is key_invalid, and the error quotes no value', (_, change) => {
    const file = structuredClone(good);
    change(file);
    const failure = (() => {
      try {
        return parseKeys(JSON.stringify(file));
      } catch (error) {
        return error;
      }
    })();
    expect(failure).toMatchObject({ code: 'key_invalid' });
    const printed = inspect(failure, { depth: 10 });
    for (const secret of [...Object.values(file.roots), file.log.seed]) {
      if (secret.length > 8) expect(printed).not.toContain(secret);
    }
  });

  test('LED-6: text that is not JSON is key_invalid without its text', () => {
    const failure = (() => {
      try {
        return parseKeys('{"roots": secret-secret-secret');
      } catch (error) {
        return error;
      }
    })();
    expect(failure).toMatchObject({ code: 'key_invalid' });
    expect(inspect(failure)).not.toContain('secret-secret');
  });
});

describe('openKeys', () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'countersign-keys-'));
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  test('LED-7: the first start makes a file of mode 0600; the next one opens the same keys and keeps the origin', () => {
    const first = openKeys({ setting: undefined, folder: join(folder, 'data'), origin: 'one.test' });
    expect(first).toMatchObject({ created: true, path: join(folder, 'data', 'keys.json') });
    expect(statSync(first.path ?? '').mode & 0o777).toBe(0o600);
    const second = openKeys({ setting: '', folder: join(folder, 'data'), origin: 'two.test' });
    expect(second.created).toBe(false);
    expect(second.signer.vkey).toBe(first.signer.vkey);
    expect(second.signer.logOf('5')).toBe('one.test/i/5');
  });

  test('LED-7: a file that others may read is refused', () => {
    const { path } = openKeys({ setting: undefined, folder, origin: 'one.test' });
    chmodSync(path ?? '', 0o644);
    expect(() => openKeys({ setting: undefined, folder, origin: 'one.test' })).toThrow(
      expect.objectContaining({ code: 'key_invalid' }),
    );
  });

  test('LED-6: COUNTERSIGN_KEYS is a path or the JSON itself, and nothing is made beside it', () => {
    const file = join(folder, 'given.json');
    writeFileSync(file, JSON.stringify(keys));
    const byPath = openKeys({ setting: file, folder, origin: 'x' });
    const inline = openKeys({ setting: ` ${readFileSync(file, 'utf8')}`, folder, origin: 'x' });
    expect([byPath.signer.vkey, inline.signer.vkey]).toEqual([signer.vkey, signer.vkey]);
    expect([byPath.created, inline.created, inline.path]).toEqual([false, false, undefined]);
    expect(() => openKeys({ setting: join(folder, 'none.json'), folder, origin: 'x' })).toThrow(
      expect.objectContaining({ code: 'key_invalid' }),
    );
    expect(() => statSync(join(folder, 'keys.json'))).toThrow();
  });
});
