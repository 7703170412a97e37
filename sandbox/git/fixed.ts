/** Commands that only read, or write nothing but objects that follow from their arguments. */
const COMMANDS: ReadonlySet<string> = new Set([
  'cat-file',
  'diff',
  'log',
  'ls-tree',
  'merge-base',
  'merge-tree',
  'rev-list',
  'rev-parse',
]);
/** A whole id, with what leads from it to another object. */
const ID = /^\^?[0-9a-f]{40}(?:[0-9a-f]{24})?(?:\^\{commit\}|\^1|:.*)?$/s;

/** Whether git answers a question the same for ever once it succeeded: it names objects by whole ids and no ref. */
export function asksOfObjects(args: readonly string[], input?: Uint8Array | string): boolean {
  const at = args.findIndex((arg) => !arg.startsWith('-'));
  const command = args[at] ?? '';
  if (!COMMANDS.has(command)) return false;
  const rest = args.slice(at + 1);
  const paths = rest.indexOf('--');
  const names = (paths < 0 ? rest : rest.slice(0, paths)).filter((arg) => !arg.startsWith('-'));
  if (typeof input === 'string') names.push(...input.split('\n').filter((line) => line !== ''));
  else if (input !== undefined) return false;
  const named = command === 'cat-file' ? names.filter((name) => !/^(?:blob|tree|commit)$/.test(name)) : names;
  return named.length > 0 && named.every((name) => ID.test(name)) && !rest.includes('--all');
}
