import { existsSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { commands } from '../../app/cli/table.ts';
import { COMMAND_NAMES, COMMANDS } from '../../app/domain/command/table.ts';
import { parsePolicy } from '../../app/domain/policy.ts';

const readme = readFileSync('README.md', 'utf8');
const limits = /## What it cannot do yet\n([\s\S]*?)\n## /.exec(readme)?.[1] ?? '';

describe('README says what is so', () => {
  it('what it cannot do yet names every command that is not available, and none that is', () => {
    const named = [...limits.matchAll(/`\/([a-z]+)`/g)].map((match) => match[1] ?? '');
    expect(named.sort()).toEqual(COMMAND_NAMES.filter((name) => !COMMANDS[name].available).sort());
  });

  it('every file it links to is there', () => {
    const links = [...readme.matchAll(/\]\(([^)#]+)(?:#[^)]*)?\)/g)].map((match) => match[1] ?? '');
    expect(links.length).toBeGreaterThan(10);
    expect(links.filter((link) => !/^https?:/.test(link) && !existsSync(link))).toEqual([]);
  });

  it('every `countersign` command it shows is one', () => {
    const shown = [...readme.matchAll(/(?:npx |`)countersign ([a-z][a-z-]*)/g)].map(
      (match) => match[1] ?? '',
    );
    expect(shown.length).toBeGreaterThan(3);
    expect(shown.filter((name) => !Object.hasOwn(commands, name))).toEqual([]);
  });

  it('POL-3: the editor hint that docs/policy.md shows is a valid first line, at the address that is served', () => {
    const [hint = ''] =
      /# yaml-language-server: \$schema=\S+/.exec(readFileSync('docs/policy.md', 'utf8')) ?? [];
    expect(hint).toMatch(/\$schema=https:\/\/YOUR-HOST\/policy\.schema\.json$/);
    const reading = parsePolicy(Buffer.from(`${hint}\nversion: 1\n`));
    expect(reading.ok).toBe(true);
    expect(readFileSync('app/server.ts', 'utf8')).toContain("app.get('/policy.schema.json'");
  });
});
