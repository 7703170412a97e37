/**
 * Case 22: the same text as a pattern of ours and in a CODEOWNERS file. The CODEOWNERS side is what
 * GitHub's documentation of the file says; we have no repository of GitHub's to measure it on.
 */
import { describe, expect, it } from 'vitest';
import { compileEntries } from '../../../app/domain/ownership/match.ts';
import { codeownersFault, codeownersNote } from '../../../app/domain/policy/codeowners.ts';
import { patternFault } from '../../../app/domain/policy/pattern.ts';
import { parsePolicy } from '../../../app/domain/policy.ts';

/** Pattern, path, whether it is matched here (null: the pattern is refused), whether by CODEOWNERS. */
const TABLE: readonly [pattern: string, path: string, ours: boolean | null, codeowners: boolean][] = [
  ['apps/', 'apps/x', true, true],
  ['apps/', 'src/apps/x', false, true],
  ['apps/', 'apps', false, false],
  ['/apps/', 'apps/x', null, true],
  ['/apps/', 'src/apps/x', null, false],
  ['/apps', 'apps', null, true],
  ['/apps', 'apps/x', null, true],
  ['apps', 'apps', true, true],
  ['apps', 'src/apps', false, true],
  ['apps', 'apps/x', false, true],
  ['apps/*', 'apps/x', true, true],
  ['apps/*', 'apps/x/y', false, false],
  ['apps/**', 'apps/x/y', true, true],
  ['*', 'a', true, true],
  ['*', 'src/a', false, true],
  ['**', 'src/a', true, true],
  ['*.js', 'a.js', true, true],
  ['*.js', 'src/a.js', false, true],
  ['**/*.js', 'a.js', true, true],
  ['**/*.js', 'src/a.js', true, true],
  ['/docs/*', 'docs/a', null, true],
  ['/docs/*', 'docs/a/b', null, false],
  ['docs/*', 'src/docs/a', false, false],
  ['**/logs', 'build/logs', true, true],
  ['**/logs', 'build/logs/x', false, true],
  ['src/app', 'src/app/x', false, true],
  ['src/app/', 'src/app/x', true, true],
  ['src/app.ts', 'src/app.ts', true, true],
  ['path\\ with\\ spaces/', 'path with spaces/x', null, true],
  ['path with spaces/', 'path with spaces/x', true, true],
  ['path with spaces/', 'a/path with spaces/x', false, true],
  ['src/** @org/team', 'src/a', null, true],
  ['SRC/', 'src/a', false, false],
  ['SRC/', 'a/SRC/x', false, true],
];

describe('case 22: patterns and CODEOWNERS', () => {
  it.each(TABLE)('case 22: %j and %j: here %s, in CODEOWNERS %s', (pattern, path, ours) => {
    const fault = codeownersFault(pattern) ?? patternFault(pattern);
    expect(fault === null ? compileEntries([pattern])(path) : null).toBe(ours);
  });

  it('case 22: each pattern that differs is refused or noted, and none that is the same', () => {
    for (const pattern of new Set(TABLE.map(([text]) => text))) {
      const rows = TABLE.filter(([text]) => text === pattern);
      const same = rows.every(([, , ours, theirs]) => ours === theirs);
      const refused = rows.some(([, , ours]) => ours === null);
      const said = codeownersFault(pattern) ?? codeownersNote(pattern);
      expect(said === null || refused, pattern).toBe(same || refused);
    }
  });

  it('case 22: what a note tells to write means here what CODEOWNERS means', () => {
    for (const [pattern, path, ours, theirs] of TABLE) {
      if (ours === null || ours === theirs) continue;
      const told =
        / which (?:is|are) (.*) here$/.exec(codeownersNote(pattern) ?? '')?.[1]?.split(' and ') ?? [];
      expect(compileEntries(told)(path), `${pattern} ${told.join(' ')}`).toBe(theirs);
    }
  });

  it('case 22: the policy says so, with line and path', () => {
    const refused = parsePolicy(Buffer.from('version: 1\nguard:\n  - /infra/\n'));
    expect(refused).toMatchObject({
      ok: false,
      errors: [{ code: 'config_invalid', line: 3, message: expect.stringContaining('write infra/') }],
    });
    const noted = parsePolicy(Buffer.from('version: 1\nguard:\n  - "*.sql"\n  - infra/**\n'));
    expect(noted).toMatchObject({ ok: true });
    expect(noted.ok && noted.notes.filter((note) => note.path.startsWith('guard'))).toEqual([
      { line: 3, path: 'guard[0]', message: expect.stringContaining('**/*.sql') },
    ]);
  });
});
