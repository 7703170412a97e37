/**
 * What POL-1 names and this version does not do yet: refused as `not supported yet`, never silently
 * accepted. The schema holds what works; this table only says which refusals are a matter of time.
 */

/** A key, or a value of a key, of a later version; `*` in the path stands for any name or index. */
export interface LaterKey {
  readonly path: string;
  /** The values it concerns; without them the whole key. */
  readonly values?: readonly unknown[];
  /** What works instead, for the person who reads the refusal. */
  readonly instead: string;
}

/** Every key and value of POL-1 whose feature comes later. */
export const laterKeys: readonly LaterKey[] = [
  {
    path: 'reviewers.*.trusted',
    values: [false],
    instead:
      'trusted: true, which states that the program loads no code or configuration from the files it reads',
  },
  { path: 'pools.*.serves.*', values: ['fix'], instead: 'review, and verify of a resident pool' },
  { path: 'fix.push', values: [true], instead: 'false' },
];

/** The entry of the table for a value at a path; null when its refusal is not a matter of time. */
export function laterKey(path: readonly (string | number)[], value: unknown): LaterKey | null {
  return (
    laterKeys.find((entry) => {
      const parts = entry.path.split('.');
      const same =
        parts.length === path.length && parts.every((part, i) => part === '*' || part === String(path[i]));
      return same && (entry.values === undefined || entry.values.includes(value));
    }) ?? null
  );
}
