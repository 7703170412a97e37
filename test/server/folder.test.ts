import { chmodSync, existsSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { openFolder } from '../../app/server/folder.ts';

const root = mkdtempSync(join(tmpdir(), 'cs-folder-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

it('makes a data directory with its parents, and takes one that is there', () => {
  const folder = join(root, 'a', 'b', 'c');
  openFolder(folder);
  openFolder(folder);
  expect(statSync(folder).isDirectory()).toBe(true);
});

it.runIf(existsSync('/proc/self'))('a data directory below /proc is refused at once, by name', () => {
  expect(() => openFolder('/proc/countersign/data')).toThrow(
    /COUNTERSIGN_DATA_DIR cannot be used: \/proc\/countersign \(E[A-Z]+\)/,
  );
});

it('a file in its place or on the way is refused', () => {
  const file = join(root, 'file');
  writeFileSync(file, '');
  expect(() => openFolder(file)).toThrow(/file \(it is no directory\)/);
  // Node 24 takes a file on the way for a missing entry, and it is found one level up
  expect(() => openFolder(join(file, 'data'))).toThrow(/file(\/data)? \((ENOTDIR|it is no directory)\)/);
});

it.runIf(process.getuid?.() !== 0)('a directory that may not be written to is refused', () => {
  const folder = join(root, 'shut');
  openFolder(folder);
  chmodSync(folder, 0o500);
  expect(() => openFolder(folder)).toThrow(/shut \(EACCES\)/);
});
