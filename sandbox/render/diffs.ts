import type { Json } from '../model.ts';
import type { Repository } from '../repository.ts';

const STATUS: Readonly<Record<string, string>> = {
  A: 'added',
  D: 'removed',
  M: 'modified',
  R: 'renamed',
  C: 'copied',
  T: 'changed',
};

// facts/github.md §5: over these a file's patch is left out.
const MAX_PATCH_LINES = 20_000;
const MAX_PATCH_BYTES = 500_000;

/** Files between two commits as GitHub's `diff-entry`, with renames detected, at most 3,000 (facts/github.md §5). */
export async function diffJson(repository: Repository, from: string, to: string): Promise<Json[]> {
  const { git, world, fullName } = repository;
  const range = ['-M', '--no-ext-diff', '--no-textconv', from, to];
  const raw = (await git.run(['diff', '--raw', '--abbrev=64', '-z', ...range])).toString();
  const numbers = (await git.run(['diff', '--numstat', '-z', ...range])).toString();
  const text = (await git.run(['diff', '--patch', '--no-color', ...range])).toString();
  const patches = text.split(/^diff --git /m).slice(1);
  const counts = parseNumbers(numbers);
  const entries: Json[] = [];
  let section = 0;
  const parts = raw.split('\0');
  for (let i = 0; i + 1 < parts.length; ) {
    const [, newMode = '', oldBlob = '', blob = '', code = ''] = (parts[i] ?? '').split(' ');
    const moved = /^[RC]/.test(code);
    const previous = parts[i + 1] ?? '';
    const filename = moved ? (parts[i + 2] ?? '') : previous;
    i += moved ? 3 : 2;
    const count = counts[entries.length] ?? { additions: 0, deletions: 0, binary: false };
    const patch = patchBody(patches[section] ?? '');
    // A change of type (file to symlink) is printed as a removal and an addition.
    section += code.startsWith('T') ? 2 : 1;
    const small = patch.length <= MAX_PATCH_BYTES && count.additions + count.deletions <= MAX_PATCH_LINES;
    const path = filename.split('/').map(encodeURIComponent).join('/');
    entries.push({
      // A removed file keeps the blob id it had at the base (GK).
      sha: code.startsWith('D') ? oldBlob : blob,
      filename,
      status: STATUS[code.charAt(0)] ?? 'changed',
      additions: count.additions,
      deletions: count.deletions,
      changes: count.additions + count.deletions,
      blob_url: `${world.url}/${fullName}/blob/${to}/${path}`,
      raw_url: `${world.url}/${fullName}/raw/${to}/${path}`,
      contents_url: `${world.apiUrl}/repos/${fullName}/contents/${path}?ref=${to}`,
      ...(moved ? { previous_filename: previous } : {}),
      ...(count.binary || patch === '' || !small || newMode === '160000' ? {} : { patch }),
    });
  }
  return entries.slice(0, 3000);
}

function parseNumbers(out: string): { additions: number; deletions: number; binary: boolean }[] {
  const parts = out.split('\0');
  const counts: { additions: number; deletions: number; binary: boolean }[] = [];
  for (let i = 0; i < parts.length; i++) {
    const match = /^(\d+|-)\t(\d+|-)\t(.*)$/s.exec(parts[i] ?? '');
    if (match === null) continue;
    if (match[3] === '') i += 2;
    const binary = match[1] === '-';
    counts.push({
      additions: binary ? 0 : Number(match[1]),
      deletions: binary ? 0 : Number(match[2]),
      binary,
    });
  }
  return counts;
}

function patchBody(section: string): string {
  const start = section.search(/^@@ /m);
  return start < 0 ? '' : section.slice(start).replace(/\n$/, '');
}

/** Totals between two commits. */
export async function diffTotals(
  repository: Repository,
  from: string,
  to: string,
): Promise<{ files: number; additions: number; deletions: number }> {
  const out = await repository.git.text(['diff', '--shortstat', '-M', from, to]);
  const number = (pattern: RegExp) => Number(pattern.exec(out)?.[1] ?? 0);
  return {
    files: number(/(\d+) files? changed/),
    additions: number(/(\d+) insertion/),
    deletions: number(/(\d+) deletion/),
  };
}
