import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { redactor } from '../../app/domain/redact.ts';
import { cpuNow } from '../helpers/cpu.ts';

const pem = `-----BEGIN RSA PRIVATE KEY-----
MIIEpAIBAAKCAQEAn0tsecretsecretsecretsecretsecretsecretsecretse1
AbCdEfGhIjKlMnOpQrStUvWxYz0123456789AbCdEfGhIjKlMnOpQrStUvWxYz02
c2hvcnQ=
-----END RSA PRIVATE KEY-----`;
const json = `{
  "type": "service_account",
  "private_key_id": "0123456789abcdef0123",
  "x": "y"
}`;

describe('token shapes', () => {
  const plain = redactor();
  const tokens: [string, string][] = [
    ['github_token', 'ghp_abcdefghijABCDEFGHIJ0123456789abcdef'],
    [
      'github_token',
      'ghs_1234567_eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiIxMjM0NTY3In0.c2lnbmF0dXJlLXNpZ25hdHVyZQ-_x',
    ],
    ['github_token', 'github_pat_11ABCDEFG0abcdefghijkl_mnopqrstuvwxyz0123456789'],
    ['aws_access_key', 'AKIAIOSFODNN7EXAMPLE'],
    ['slack_token', 'xoxb-123456789012-abcdefghijkl'],
    ['model_key', 'sk-ant-api03-abcdefghijklmnopqrstuvwxyz'],
    ['model_key', 'xai-abcdefghijklmnopqrstuvwxyz0123'],
    ['npm_token', 'npm_abcdefghijklmnopqrstuvwxyz0123456789'],
    ['jwt', 'eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiIxMjM0NTY3In0.c2lnbmF0dXJl'],
  ];
  test.each(tokens)('REV-8: a %s is masked wherever it stands', (kind, token) => {
    expect(plain.redact(`before "${token}" after`)).toBe(`before "[redacted:${kind}]" after`);
    expect(plain.redact(token)).toBe(`[redacted:${kind}]`);
  });
  test('REV-8: only the value of a named AWS secret, an Authorization header or a URL is masked', () => {
    expect(plain.redact(`aws_secret_access_key = "${'a1/+'.repeat(10)}"`)).toBe(
      'aws_secret_access_key = "[redacted:aws_secret_key]"',
    );
    expect(plain.redact('Authorization: Bearer abcdefghijklmnop1234')).toBe(
      'Authorization: Bearer [redacted:authorization]',
    );
    expect(plain.redact('postgres://app:correct-horse@db/x')).toBe(
      'postgres://app:[redacted:url_password]@db/x',
    );
  });
  test('case 82: a key block is masked line by line, so that no line number moves', () => {
    expect(plain.redact(`a\n${pem}\nb`).split('\n')).toEqual([
      'a',
      ...Array<string>(5).fill('[redacted:private_key]'),
      'b',
    ]);
    expect(plain.redact(`key: "${pem.replaceAll('\n', '\\n')}"`)).toBe('key: "[redacted:private_key]"');
    const cut = pem.split('\n').slice(0, 3).join('\n');
    expect(plain.redact(cut)).not.toContain('MIIE');
    expect(plain.redact('the header -----BEGIN PRIVATE KEY----- alone is no key')).toBe(
      'the header -----BEGIN PRIVATE KEY----- alone is no key',
    );
  });
  test('REV-8: ordinary code is left alone', () => {
    const code =
      'const task_id = "risk-assessment-of-everything-we-do"; // https://a.example:8080/x@y ghp_short';
    expect(plain.redact(code)).toBe(code);
  });
  test('attack: a megabyte made to slow a pattern down ends in bounded time', () => {
    for (const unit of ['-----BEGIN PRIVATE KEY-----', 'eyJaaaaaaaa.', '://a:', 'ghp_', 'aws secret ']) {
      const started = cpuNow();
      plain.redact(unit.repeat(Math.ceil(1_000_000 / unit.length)));
      expect(cpuNow() - started).toBeLessThan(4000);
    }
  });
});

describe('declared values', () => {
  const known = redactor([pem, json, 'test', 'correct horse battery staple!']);
  test('case 82: quoted whole, in base64, URL-encoded, JSON-escaped, in hex or split over lines', () => {
    for (const secret of [pem, json, 'correct horse battery staple!']) {
      const bytes = Buffer.from(secret);
      for (const form of [
        secret,
        bytes.toString('base64'),
        Buffer.from(`xy${secret}zz`).toString('base64'),
        bytes.toString('base64').replace(/(.{20})/g, '$1\n  '),
        encodeURIComponent(secret),
        JSON.stringify(secret),
        bytes.toString('hex'),
        secret.replace(/(.{9})/g, '$1\n'),
      ]) {
        const out = known.redact(`<${form}>`);
        expect(out).toContain('[redacted:');
        for (const word of [
          'MIIEpAIB',
          'service_account',
          '0123456789abcdef0123',
          'horse',
          form.slice(4, 40),
        ])
          expect(out).not.toContain(word);
      }
    }
  });
  test('case 82: a short value and the brace lines of a JSON key shred nothing', () => {
    expect(known.redact('test { "x": "y" } tests\n{\n}')).toBe('test { "x": "y" } tests\n{\n}');
  });
  test('case 82: a line of a multi-line secret quoted alone is masked from 16 characters on', () => {
    expect(known.redact('  "private_key_id": "0123456789abcdef0123",')).toBe('  [redacted:secret]');
    expect(known.redact('c2hvcnQ=')).toBe('c2hvcnQ=');
  });
  test('REV-8: a redactor that learned a file masks the middle of its key block', () => {
    const line = pem.split('\n')[2] ?? '';
    expect(redactor().redact(line)).toBe(line);
    expect(redactor().learn(`x\n${pem}\n`).redact(`quote: ${line}`)).toBe('quote: [redacted:secret]');
  });
});

test('attack: a file full of secrets teaches a bounded number of them in bounded time', () => {
  const file = Array.from({ length: 20_000 }, (_, i) => `ghp_${String(i).padStart(20, 'x')}`).join('\n');
  const started = cpuNow();
  const learned = redactor(['a declared secret']).learn(file);
  expect(learned.redact(file).match(/\[redacted:/g)).toHaveLength(20_000);
  expect(learned.redact('a declared secret')).toBe('[redacted:secret]');
  expect(cpuNow() - started).toBeLessThan(8000);
});

describe('properties', () => {
  test('REV-8: no declared value of 8 characters or more survives; lines stay; twice is once', () => {
    const secret = fc
      .string({ unit: 'grapheme-ascii', minLength: 8, maxLength: 30 })
      .filter((s) => s.trim().length >= 8);
    const text = fc.string({ unit: 'binary', maxLength: 40 });
    fc.assert(
      fc.property(fc.array(secret, { minLength: 1, maxLength: 3 }), text, text, (secrets, before, after) => {
        const redact = redactor(secrets).redact;
        const whole = `${before}${secrets.join(after)}${after}`;
        const out = redact(whole);
        for (const value of secrets)
          if (!'[redacted:secret]'.includes(value.trim())) expect(out).not.toContain(value.trim());
        expect(out.split('\n')).toHaveLength(whole.split('\n').length);
      }),
    );
  });
  test('REV-8: a marker stays as it is', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 60 }), (noise) => {
        const once = redactor([pem]).redact(`${noise}${pem}ghp_abcdefghijABCDEFGHIJ0123456789${noise}`);
        expect(redactor([pem]).redact(once)).toBe(once);
      }),
    );
  });
});
