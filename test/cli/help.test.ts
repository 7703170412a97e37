/** `--help` and its page, made from the table of commands; the process itself is test/cli.long.test.ts. */
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { commandHelp, helpPage, helpText } from '../../app/cli/help.ts';
import { commands } from '../../app/cli/table.ts';

describe('countersign --help', () => {
  it('OPS-9: names every command with every way to call it, and the exit codes', () => {
    const text = helpText(commands);
    for (const [name, { usage, what }] of Object.entries(commands)) {
      expect(usage.every((one) => one.split(' ')[0] === name)).toBe(true);
      for (const one of usage) expect(text).toContain(`  countersign ${one}\n`);
      expect(text).toContain(what);
    }
    expect(text).toMatch(/exit codes[\s\S]* 0 {2}done[\s\S]* 1 {2}refused[\s\S]* 3 {2}a wrong call/);
  });

  it.each(Object.entries(commands))(
    'OPS-9: %s tells each of its flags, and no flag it does not take',
    (name, entry) => {
      const flags = (text: string) => [...new Set(text.match(/--[a-z-]+/g) ?? [])].sort();
      const listed = flags((entry.options ?? []).map(([flag]) => flag).join(' '));
      expect(listed, name).toEqual(flags(entry.usage.join(' ')));
      for (const [, means] of entry.options ?? []) expect(means.length).toBeGreaterThan(5);
      expect(commandHelp(entry)).toContain('exit codes:');
    },
  );

  it('docs/command-line.md is this table', async () => {
    await expect(helpPage(commands)).toMatchFileSnapshot('../../docs/command-line.md');
  });

  it('README leads to the page', () => {
    const readme = readFileSync('README.md', 'utf8');
    expect(readme).toContain('docs/command-line.md');
  });
});
