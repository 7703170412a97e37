/** Git's raw diff, NUL-separated, as data. The bytes are an attacker's: paths stay bytes. */
import { encodePath, type WirePath } from '../../app/domain/path.ts';
import { Fault } from '../../app/errors.ts';

/** A changed path with modes and object ids; null where that side has no entry. */
export type ChangedFile = Readonly<{
  path: WirePath;
  mode: Readonly<{ base: string | null; head: string | null }>;
  blob: Readonly<{ base: string | null; head: string | null }>;
}>;

/** Parses `git diff-tree -r -z --raw --no-renames --no-abbrev`; throws Fault `git_unavailable` on anything else. */
export function parseRawDiff(raw: Buffer): ChangedFile[] {
  const files: ChangedFile[] = [];
  for (let at = 0; at < raw.length; ) {
    const infoEnd = raw.indexOf(0, at);
    const pathEnd = infoEnd < 0 ? -1 : raw.indexOf(0, infoEnd + 1);
    const info = /^:([0-7]{6}) ([0-7]{6}) ([0-9a-f]+) ([0-9a-f]+) [AMDT]$/.exec(
      raw.subarray(at, Math.max(at, infoEnd)).toString('latin1'),
    );
    if (pathEnd < 0 || info === null)
      throw new Fault('git_unavailable', 'git diff-tree said something unknown');
    const [, baseMode, headMode, base, head] = info;
    const absent = (mode: string | undefined, value: string | undefined): string | null =>
      mode === undefined || mode === '000000' ? null : (value ?? null);
    files.push({
      path: encodePath(raw.subarray(infoEnd + 1, pathEnd)),
      mode: { base: absent(baseMode, baseMode), head: absent(headMode, headMode) },
      blob: { base: absent(baseMode, base), head: absent(headMode, head) },
    });
    at = pathEnd + 1;
  }
  return files;
}
