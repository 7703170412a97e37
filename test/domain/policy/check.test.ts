/** `config check` and the page, held to the parser: what each says of a default is what the code does. */
import { describe, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { policyCheck } from '../../../app/domain/policy/check.ts';
import { policyPage } from '../../../app/domain/policy/page.ts';
import { policySchemaJson } from '../../../app/domain/policy/schema.ts';
import { parsePolicy, STARTER_POLICY } from '../../../app/domain/policy.ts';

const bytes = (text: string) => Buffer.from(text);
const parsed = (text: string) => {
  const reading = parsePolicy(bytes(text));
  if (!reading.ok) throw new Error(JSON.stringify(reading.errors));
  return reading.policy;
};
const LINT = `version: 1
reviewers:
  lint:
    uses: command
    run: [lint, "{path}"]
    output: sarif
    paths: ["**"]
    trusted: true
`;

type Json = { readonly [key: string]: unknown };
/** Keys of fixed name with the default that the schema shows. */
function* shown(schema: Json, at: readonly string[]): Generator<[readonly string[], unknown]> {
  for (const [name, property] of Object.entries((schema['properties'] ?? {}) as Record<string, Json>)) {
    const key = [...at, name];
    if (property['properties'] !== undefined) yield* shown(property, key);
    else yield [key, property['default']];
  }
}
const nested = (key: readonly string[], value: unknown): unknown =>
  key.reduceRight<unknown>((inner, name) => ({ [name]: inner }), value);
const keys = [...shown(policySchemaJson(), [])];
/** Keys that have no default of one value: they are required, or another key answers for them. */
const WITHOUT = ['version', 'levels.L1', 'levels.L2', 'levels.L3', 'review.show.lenses', 'review.show.paths'];

describe('POL-3: defaults', () => {
  it('every key has one, but for those that cannot', () => {
    const bare = keys.filter(([, value]) => value === undefined).map(([key]) => key.join('.'));
    // a limit that is not given is none
    const free = /^budget\.(block|run|month|outsiders)\./;
    expect(bare.filter((key) => !WITHOUT.includes(key) && !free.test(key))).toEqual([]);
  });

  it.each(keys.filter(([, value]) => value !== undefined))(
    '%s: what is shown, written out, is what holds without it',
    (key, value) => {
      const top = key[0] === 'reviewers' ? {} : (nested(key, value) as object);
      expect(parsed(stringify({ version: 1, ...top }))).toEqual(parsed('version: 1\n'));
    },
  );

  it('docs/policy.md shows each as the schema has it', () => {
    const page = policyPage();
    for (const [key, value] of keys) {
      const row = page.split('\n').find((line) => line.startsWith(`| \`${key.join('.')}\` |`));
      expect(row, key.join('.')).toBeDefined();
      const cells = row?.split(' | ') ?? [];
      if (typeof value === 'string' && value !== '') expect(cells[2], key.join('.')).toBe(`\`${value}\``);
    }
  });
});

it('POL-3: every line of docs/policy.md says what its key takes and does', () => {
  const [, table = ''] = /## Keys\n([\s\S]*?)\n## /.exec(policyPage()) ?? [];
  const rows = table.split('\n').filter((line) => line.startsWith('| `'));
  expect(rows.length).toBeGreaterThan(60);
  for (const row of rows) {
    const [, , value = '', , does = ''] = row.split(/(?<!\\)\|/).map((cell) => cell.trim());
    expect(value, row).not.toBe('');
    expect(does.length, row).toBeGreaterThan(5);
    expect(row).not.toMatch(/undefined|\*\*\*\*/);
  }
});

describe('POL-3: config check', () => {
  it('a valid policy: no errors, the defaults it leaves in force and none that it names', () => {
    const found = policyCheck(bytes(`${LINT}gate: {block_at: low}\nguard: [infra/prod/]\n`));
    expect(found).toMatchObject({ valid: true, errors: [], notes: [] });
    const names = found.defaults.map((one) => one.key);
    expect(names).toContain('gate.deadline');
    expect(names).not.toContain('gate.block_at');
    expect(names).not.toContain('guard');
    expect(found.defaults).toContainEqual({ key: 'commands.prefix', value: '""' });
    expect(found.defaults).toContainEqual({ key: 'people.approve', value: '"write"' });
  });

  it('errors bear line, key, what is wrong and what is accepted; a key of a later version says so', () => {
    const found = policyCheck(
      bytes(`${LINT}gaet: {block_at: low}\nroutes:\n  - when: {kinds: [code]}\n    reviewers: [lnt]\n`),
    );
    expect(found.valid).toBe(false);
    expect(found.errors).toContainEqual(
      expect.objectContaining({
        line: 9,
        path: 'gaet',
        message: expect.stringContaining('did you mean gate?'),
      }),
    );
    expect(found.errors.every((error) => error.accepted.length > 0)).toBe(true);
    const later = policyCheck(bytes('version: 1\nfix: {push: true}\n'));
    expect(later.errors[0]).toMatchObject({
      line: 2,
      message: expect.stringContaining('not supported yet'),
      accepted: 'false',
    });
    const unknown = policyCheck(bytes(`${LINT}routes:\n  - when: {kinds: [code]}\n    reviewers: [lnt]\n`));
    expect(unknown.errors[0]).toMatchObject({
      line: 11,
      message: 'no reviewer is named lnt; did you mean lint?',
      accepted: 'lint',
    });
  });

  it('notes: levels and routes that leave files without a reader, patterns that are not what CODEOWNERS means', () => {
    const partly = LINT.replace('["**"]', '["*.ts"]');
    const found = policyCheck(bytes(`${partly}routes:\n  - when: {kinds: [docs]}\n    reviewers: [lint]\n`));
    expect(found.valid).toBe(true);
    const notes = found.notes.map((note) => `${note.line} ${note.path} ${note.message}`);
    expect(notes[0]).toMatch(/^1 levels\.L1 L1, L2, L3: nobody but commands \(lint\).*route_invalid/);
    expect(notes[1]).toMatch(/^7 reviewers\.lint\.paths\[0\] .*CODEOWNERS/);
    expect(notes[2]).toMatch(/^11 routes\[0\]\.reviewers this route: nobody but commands/);
    expect(policyCheck(bytes(LINT)).notes).toEqual([]);
    expect(policyCheck(bytes('version: 1\n')).notes.map((note) => note.message)).toEqual([
      'no reviewer: runs wait with setup_incomplete',
    ]);
  });

  it('a model among the reviewers reads every file', () => {
    const text = `version: 1
reviewers:
  lint: {uses: command, run: [l, "{path}"], output: sarif, paths: ["src/**"], trusted: true}
  model: {uses: anthropic, model: m}
levels: {L1: [lint], L2: [lint, model], L3: [model]}
`;
    expect(policyCheck(bytes(text)).notes.map((note) => note.message)).toEqual([
      expect.stringMatching(/^one model at L3/),
      expect.stringMatching(/^L1: nobody but commands/),
    ]);
  });

  it('the policy to start from is valid', () => {
    expect(policyCheck(bytes(STARTER_POLICY)).valid).toBe(true);
  });

  it('bytes that are no YAML, too many of them, and none at all are told, never thrown', () => {
    for (const text of [
      Buffer.from([0xff, 0xfe]),
      Buffer.alloc(70_000, 0x20),
      Buffer.from(''),
      Buffer.from('[[['),
    ])
      expect(policyCheck(text)).toMatchObject({ valid: false, notes: [], defaults: [] });
  });
});
