import type { GitRepository } from '../git/repository.ts';
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
  const { raw, counts, text } = await diffOf(git, from, to);
  const patches = text.split(/^diff --git /m).slice(1);
  const entries: Json[] = [];
  let section = 0;
  for (const { newMode, oldBlob, blob, code, moved, previous, filename } of raw) {
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

interface Change {
  readonly newMode: string;
  readonly oldBlob: string;
  readonly blob: string;
  readonly code: string;
  readonly moved: boolean;
  readonly previous: string;
  readonly filename: string;
}

interface Count {
  readonly additions: number;
  readonly deletions: number;
  readonly binary: boolean;
}

/** One diff in its three forms, which git prints one after the other. */
async function diffOf(
  git: GitRepository,
  from: string,
  to: string,
): Promise<{ raw: Change[]; counts: Count[]; text: string }> {
  const forms = ['--raw', '--abbrev=64', '--numstat', '--patch', '--no-color', '-z'];
  const range = ['-M', '--no-ext-diff', '--no-textconv', from, to];
  const out = (await git.run(['diff', ...forms, ...range])).toString();
  let at = 0;
  const next = () => {
    const end = out.indexOf('\0', at);
    const field = out.slice(at, end);
    at = end + 1;
    return field;
  };
  const raw: Change[] = [];
  while (out.startsWith(':', at)) {
    const [, newMode = '', oldBlob = '', blob = '', code = ''] = next().split(' ');
    const moved = /^[RC]/.test(code);
    const previous = next();
    raw.push({ newMode, oldBlob, blob, code, moved, previous, filename: moved ? next() : previous });
  }
  const counts = raw.map(({ moved }): Count => {
    const [additions = '', deletions = ''] = next().split('\t');
    if (moved) [next(), next()];
    const binary = additions === '-';
    return {
      additions: binary ? 0 : Number(additions),
      deletions: binary ? 0 : Number(deletions),
      binary,
    };
  });
  // a NUL of its own stands before the patches
  return { raw, counts, text: out.slice(at + 1) };
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
  const { counts } = await diffOf(repository.git, from, to);
  const sum = (of: 'additions' | 'deletions') => counts.reduce((all, count) => all + count[of], 0);
  return { files: counts.length, additions: sum('additions'), deletions: sum('deletions') };
}
