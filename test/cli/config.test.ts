/** `countersign config`, by its own function: what it prints and how it ends. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it, vi } from 'vitest';
import { configCommand } from '../../app/cli/config.ts';
import type { Usage } from '../../app/cli/entry.ts';
import { policySchemaJson } from '../../app/domain/policy/schema.ts';

const folder = mkdtempSync(join(tmpdir(), 'cs-config-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const file = (text: string) => {
  const path = join(folder, 'policy.yml');
  writeFileSync(path, text);
  return path;
};
async function config(...args: string[]): Promise<{ code: number | null; out: string }> {
  const lines: string[] = [];
  const spy = vi.spyOn(console, 'log').mockImplementation((line: string) => void lines.push(line));
  try {
    return { code: await configCommand.run(args), out: lines.join('\n') };
  } finally {
    spy.mockRestore();
  }
}
const LINT = `version: 1
reviewers:
  lint: {uses: command, run: [l, "{path}"], output: sarif, paths: ["*.ts"], trusted: true}
`;

it('POL-3: a valid policy: notes by line, then what is in force without being written', async () => {
  const path = file(`# yaml-language-server: $schema=https://host.test/policy.schema.json\n${LINT}`);
  const { code, out } = await config('check', path);
  expect(code).toBe(0);
  const lines = out.split('\n');
  expect(lines[0]).toBe(`${path}: valid`);
  expect(out).toMatch(/policy\.yml:4: note: .*CODEOWNERS/);
  expect(out).toContain('note: L1, L2, L3: nobody but commands (lint)');
  expect(lines).toContain('defaults in force:');
  expect(lines).toContain('  gate.deadline: "6h"');
});

it('POL-1: what is not valid: line, key, what is wrong, what is accepted, and how much of it', async () => {
  const path = file(`${LINT}gate: {block_at: hihg}\npeople: {override: everyone}\nfix: {push: true}\n`);
  const { code, out } = await config('check', path);
  expect(code).toBe(1);
  expect(out.split('\n')).toEqual([
    `${path}:4: gate.block_at: hihg is not accepted; did you mean high?; accepted: critical, high, medium, low, info`,
    `${path}:5: people.override: everyone is not accepted; accepted: none, maintain, admin`,
    `${path}:6: fix.push: fix.push: true is not supported yet; accepted: false`,
    `${path}: not valid, 3 fault(s)`,
  ]);
});

it('POL-3: --json says the same to programs', async () => {
  const valid = JSON.parse((await config('check', file(LINT), '--json')).out);
  expect(valid).toMatchObject({ valid: true, errors: [], file: join(folder, 'policy.yml') });
  expect(valid.notes[0]).toMatchObject({ line: expect.any(Number), path: expect.any(String) });
  expect(valid.defaults).toContainEqual({ key: 'mode', value: '"enforce"' });
  const wrong = await config('check', '--json', file('version: 2\n'));
  expect(wrong.code).toBe(1);
  expect(JSON.parse(wrong.out)).toMatchObject({
    valid: false,
    errors: [{ code: 'config_invalid', line: 1, path: 'version', accepted: 'the number 1' }],
  });
});

it('POL-3: config schema is the schema that is served and that docs hold', async () => {
  const { code, out } = await config('schema');
  expect(code).toBe(0);
  expect(JSON.parse(out)).toEqual(policySchemaJson());
});

it('a wrong call is 3; a file that is not there is named', async () => {
  for (const args of [
    [],
    ['check'],
    ['check', 'a', 'b'],
    ['schema', 'a'],
    ['chek', 'a'],
    ['check', '--frob', 'a'],
  ])
    await expect(config(...args)).rejects.toMatchObject({ name: 'Usage', code: 3 } satisfies Partial<Usage>);
  await expect(config('check', join(folder, 'none.yml'))).rejects.toThrow(/ENOENT.*none\.yml/);
});
