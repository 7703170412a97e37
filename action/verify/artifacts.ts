/**
 * The files a verify command must leave behind (VER-2): each pattern of the policy is found or missing. Links are not
 * followed, and `.git` is not looked into.
 */
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { lstat, readdir, realpath } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { compileEntries } from '../../app/domain/ownership/match.ts';
import { isGlob } from '../../app/domain/policy/pattern.ts';
import type { ReceiptDetail } from '../../app/protocol/receipt.ts';

/** Most files looked at for one pattern; one that needs more counts as missing. */
const MOST_FILES = 200_000;

/** Looks for every pattern below `workspace`; never throws: what cannot be read is missing. */
export async function findArtifacts(
  workspace: string,
  patterns: readonly string[],
): Promise<ReceiptDetail['artifacts']> {
  const found: ReceiptDetail['artifacts']['found']['items'] = [];
  const missing: string[] = [];
  for (const pattern of patterns) {
    const files = await filesOf(workspace, pattern).catch((): string[] => []);
    const sha256 = files.length === 0 ? null : await digestOf(workspace, files).catch(() => null);
    if (sha256 === null) missing.push(pattern);
    else found.push({ pattern, files: files.length, sha256 });
  }
  return { found: { items: found, more: 0 }, missing: { items: missing, more: 0 } };
}

async function filesOf(workspace: string, pattern: string): Promise<string[]> {
  const below = isGlob(pattern) || pattern.endsWith('/') ? rootOf(pattern) : dirname(pattern);
  // a folder that is a link leads where the command wanted, which may be out of its container
  const real = await realpath(workspace);
  if ((await realpath(join(real, below))) !== join(real, below)) return [];
  if (!isGlob(pattern) && !pattern.endsWith('/')) {
    const at = await lstat(join(workspace, pattern));
    return at.isFile() ? [pattern] : [];
  }
  const matches = compileEntries([pattern]);
  const files: string[] = [];
  const folders = [below];
  let seen = 0;
  for (let folder = folders.pop(); folder !== undefined; folder = folders.pop()) {
    for (const entry of await readdir(join(workspace, folder), { withFileTypes: true })) {
      const path = folder === '' ? entry.name : `${folder}/${entry.name}`;
      if (path === '.git') continue;
      if (++seen > MOST_FILES) return [];
      if (entry.isDirectory()) folders.push(path);
      else if (entry.isFile() && matches(path)) files.push(path);
    }
  }
  return files.sort();
}

/** The folder below which everything lies that a pattern can match. */
function rootOf(pattern: string): string {
  const segments = pattern.split('/').slice(0, -1);
  const glob = segments.findIndex((segment) => isGlob(segment));
  // braces and brackets may reach over a slash: such a pattern is looked for from the root
  if (/[{}[\]()]/.test(pattern)) return '';
  return segments.slice(0, glob < 0 ? segments.length : glob).join('/');
}

async function digestOf(workspace: string, files: readonly string[]): Promise<string> {
  const all = createHash('sha256');
  for (const file of files) {
    const hash = createHash('sha256');
    for await (const chunk of createReadStream(join(workspace, file))) hash.update(chunk as Buffer);
    all.update(`${file}\0${hash.digest('hex')}\0`);
  }
  return all.digest('hex');
}
