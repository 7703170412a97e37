import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { expect, it } from 'vitest';
import { fallbackFolder } from '../../../db/embedded/place.ts';
import { openDemoFolder } from '../../../sandbox/demo/folder.ts';

it('a demo removes what those that were killed left, there and in /var/tmp, and nothing of one that runs', () => {
  const parent = mkdtempSync(join(tmpdir(), 'cs-demo-'));
  const gone = spawnSync('true').pid;
  const [, host] = basename(openDemoFolder(parent)).split('-');
  const running = join(parent, readdirSync(parent)[0] ?? '');
  const stale = join(parent, `data-${host}-${gone}-abc123`);
  const foreign = join(parent, `data-00000000-${gone}-abc123`);
  const fallback = fallbackFolder(join(stale, 'postgres'));
  for (const folder of [stale, foreign, fallback]) mkdirSync(join(folder, 'inside'), { recursive: true });
  const mine = openDemoFolder(parent);
  expect(existsSync(stale)).toBe(false);
  expect(existsSync(fallback)).toBe(false);
  for (const kept of [running, foreign, mine]) expect(existsSync(kept), kept).toBe(true);
  rmSync(parent, { recursive: true });
});
