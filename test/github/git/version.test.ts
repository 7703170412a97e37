import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { requireGit } from '../../../app/github/git/version.ts';

const folder = mkdtempSync(join(tmpdir(), 'cs-git-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

it.each([
  ['git version 2.38.0', null],
  ['git version 2.51.0.windows.1', null],
  ['git version 3.0.1', null],
  ['git version 2.37.9 (Apple Git-137)', 'found git 2.37'],
  ['git version 1.99.0', 'found git 1.99'],
  ['hello', 'not git'],
])('GIT-1: %s', async (said, fault) => {
  writeFileSync(join(folder, 'git'), `#!/bin/sh\necho '${said}'\n`);
  chmodSync(join(folder, 'git'), 0o755);
  const checked = requireGit({ PATH: folder });
  if (fault === null) await expect(checked).resolves.toBeUndefined();
  else
    await expect(checked).rejects.toMatchObject({
      code: 'git_unavailable',
      message: expect.stringContaining(fault),
    });
});

it('GIT-1: no git at all is said as well', async () => {
  await expect(requireGit({ PATH: '/nowhere' })).rejects.toMatchObject({ code: 'git_unavailable' });
});
