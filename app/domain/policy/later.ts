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
  { path: 'gate.patience', instead: 'leave it out: no command clears files that no reviewer could read' },
  { path: 'people.approve', instead: 'leave it out: no command approves' },
  { path: 'people.dismiss', instead: 'leave it out: no command dismisses a finding' },
  { path: 'people.override', values: ['maintain', 'admin'], instead: 'none' },
  { path: 'people.solo', values: [true], instead: 'false' },
  { path: 'people.carry', instead: 'leave it out: nothing carries over' },
  { path: 'review.rounds', instead: 'leave it out: rounds have no limit' },
  { path: 'review.reuse', instead: 'leave it out: a result counts for every head of its own pull request' },
  { path: 'review.on_unavailable', values: ['human'], instead: 'block' },
  { path: 'review.adaptive', values: ['on'], instead: 'off' },
  { path: 'review.show', instead: 'leave it out: everything is shown' },
  {
    path: 'reviewers.*.uses',
    values: ['claude-code', 'codex', 'grok', 'opencode'],
    instead: 'command, openai-compatible, anthropic, openai, xai',
  },
  {
    path: 'reviewers.*.output',
    values: ['rdjson', 'checkstyle', 'eslint-json'],
    instead: 'sarif, countersign',
  },
  {
    path: 'reviewers.*.trusted',
    values: [false],
    instead:
      'trusted: true, which states that the program loads no code or configuration from the files it reads',
  },
  { path: 'routes.*.human', instead: 'leave it out' },
  { path: 'routes.*.verify', instead: 'leave it out' },
  { path: 'verify', instead: 'leave it out' },
  { path: 'budget', instead: 'leave it out' },
  { path: 'pools.*.kind', values: ['resident'], instead: 'workflow' },
  { path: 'pools.*.name', instead: 'leave it out: a workflow pool is named by its file' },
  { path: 'pools.*.serves.*', values: ['verify', 'fix'], instead: 'review' },
  { path: 'publish.comments', values: ['review'], instead: 'off' },
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
