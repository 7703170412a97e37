/** docs/policy.md, made of the schema (POL-3): its test holds the page to this text. */
import { STARTER_POLICY } from '../policy.ts';
import { laterKeys } from './later.ts';
import { policySchemaJson } from './schema.ts';

type Json = { readonly [key: string]: unknown };

/** The whole page, ending in a line end. */
export function policyPage(): string {
  const schema = policySchemaJson();
  const rows = [...rowsOf(schema, '', new Set(['version']))];
  const table = [
    '| Key | Value | Default | What it does |',
    '|---|---|---|---|',
    ...rows.map(
      ({ key, value, standard, does }) =>
        `| \`${key}\` | ${cell(value)} | ${cell(standard)} | ${cell(does)} |`,
    ),
  ];
  const known = new Set(rows.map(({ key }) => key.replaceAll('[]', '.*')));
  const later = [
    '| Key | Values | What works now |',
    '|---|---|---|',
    ...laterKeys.map(({ path, values, instead }) => {
      const all = known.has(path) ? 'all but the default' : 'any';
      const which = values?.map((value) => `\`${String(value)}\``).join(', ') ?? all;
      return `| \`${path}\` | ${which} | ${cell(instead)} |`;
    }),
  ];
  return [
    '# The policy',
    '',
    '<!-- Made from the schema in app/domain/policy: change it there, then run npx vitest run test/domain/policy/page.test.ts -u. -->',
    '',
    'The file `.github/countersign.yml` on the **base** branch decides how pull requests into that branch are reviewed.',
    'A pull request cannot change its own rules: what it changes here counts once it is merged. A branch without the file',
    'is not enrolled, and costs nothing.',
    '',
    '## To start from',
    '',
    '```yaml',
    STARTER_POLICY.trimEnd(),
    '```',
    '',
    '## How it is read',
    '',
    '- YAML 1.2: one document, at most 64 KiB, no anchors, aliases or tags, no key twice.',
    '- A key that is not below is `config_invalid`, with its line and the nearest key. Nothing is ignored.',
    '- Durations are `30s`, `15m`, `6h`, `2d`.',
    '- Paths are an exact path, a directory ending in `/`, or a glob (`*`, `**`, `?`, `[…]`, `{a,b}`), from the root of',
    '  the repository, case-sensitive, dots included. Not accepted: `!negated`, absolute, `.` and `..`, backslashes.',
    '- A list of paths has no order: any match counts, and nothing takes a match away. That is not CODEOWNERS, where the last',
    '  match wins and an empty one removes owners. `*.js` and `apps/` are at the root only, `src/app` is one path: where',
    '  CODEOWNERS means more, a note says so; its leading `/`, its `\\ ` and its owners are refused with what to write.',
    '- Guarded paths are guarded in every case of their letters: some file systems take `Claude.md` for `CLAUDE.md`.',
    '- `on` and `off` are words in YAML 1.2, `true` and `false` are not the same as them.',
    '',
    '## Keys',
    '',
    'In a key, `*` stands for a name and `[]` for each entry of a list.',
    '',
    ...table,
    '',
    '## Levels and routes',
    '',
    '`L0` is recorded and not reviewed, `L1` light, `L2` standard, `L3` deep. Code starts at L2, a change of documents alone',
    'at L1. The first route whose `paths`, `kinds` and `lines` all match may change the level, the reviewers and the',
    'time. Of a moved file both paths are looked at, and the stricter answer counts. Guarded paths are reviewed at the',
    'highest level the policy names.',
    '',
    'A `command` reviews only what its `paths` match. A file whose level has no reviewer that reads it ends',
    '`route_invalid` and holds the gate: a linter that never read a file also exits 0. A deleted file goes to models and',
    'to commands with `deletions: true`; where there are none it is recorded as L0, `deleted`.',
    '',
    '## Budgets',
    '',
    '```yaml',
    'budget:',
    '  block: {sessions: 200}',
    '  run: {sessions: 500, tokens: 5000000, usd: 20}',
    '  month: {tokens: 500000000, usd: 2000}',
    '  outsiders: {usd: 100}',
    '  prices:',
    '    model: {input: 3, output: 15}',
    '```',
    '',
    'Sessions of models count, commands do not. Before a session starts the tokens of its prompt and the most that it may',
    'answer (`max_output`; 20,000 in all where one of the two is not known) are reserved in every count that has a limit; its',
    'real usage takes their place when it ends. The counts are never over a limit by an admission, however many start at once;',
    'a session that uses more than it reserved is counted in full. A runner that gets lost leaves its reservation as the charge,',
    'until its usage arrives. Money is counted by `prices`, US dollars for a million tokens, by the name of the reviewer; there',
    'is no price list in the server. Months are of UTC. `outsiders` is the part of the month for runs that a person (`/allow`)',
    'or `allow.authors` let spend, a fifth of it where it is not given.',
    '',
    'A file that a budget stands in the way of ends `budget`: what was found is kept, and the gate asks a person',
    '(`/approve budget REASON`, `/approve unreviewed REASON`). After another month has begun, or the budget was raised on the',
    'base branch, `/rerun failed` reviews it. [Settings of the installation](settings.md) may hold budgets, and every other',
    'key of a policy, to less than the policy says.',
    '',
    "## A command's own output",
    '',
    'With `output: countersign` a command prints one JSON document, and nothing else, on standard output:',
    '',
    '```json',
    '{',
    '  "version": 1,',
    '  "count": 1,',
    '  "findings": [',
    '    {',
    '      "start_line": 3,',
    '      "end_line": 3,',
    '      "severity": "high",',
    '      "title": "Secret in the source",',
    '      "body": "A key of the payment provider is written here."',
    '    }',
    '  ]',
    '}',
    '```',
    '',
    '`end_line`, `lens` and `suggestion` may be left out. `count` is the number of findings: output that was cut off is',
    'noticed. A program that prints nothing, or anything else, has not reviewed the file.',
    '',
    '## Not supported yet',
    '',
    'Refused with these words, never accepted silently:',
    '',
    ...later,
    '',
    '## In an editor',
    '',
    '[policy.schema.json](policy.schema.json) is made from the same source and takes exactly what the server takes; names',
    'that do not exist, circles of fallbacks and double entries are found when the file is read. With a YAML language',
    'server, put its address on the first line; your server serves it at `/policy.schema.json`:',
    '',
    '```yaml',
    '# yaml-language-server: $schema=https://YOUR-HOST/policy.schema.json',
    '```',
    '',
  ].join('\n');
}

interface Row {
  readonly key: string;
  readonly value: string;
  readonly standard: string;
  readonly does: string;
}

function* rowsOf(schema: Json, key: string, required: ReadonlySet<string>): Generator<Row> {
  const properties = (schema['properties'] ?? {}) as Record<string, Json>;
  for (const [name, property] of Object.entries(properties)) {
    const at = key === '' ? name : `${key}.${name}`;
    yield {
      key: at,
      value: valueText(property),
      standard: defaultOf(property, required.has(name)),
      does: does(property),
    };
    yield* inner(property, at);
  }
}

function* inner(property: Json, at: string): Generator<Row> {
  const items = property['items'] as Json | undefined;
  const entries = property['additionalProperties'];
  if (property['properties'] !== undefined) yield* rowsOf(property, at, requiredOf(property));
  else if (items?.['properties'] !== undefined) yield* rowsOf(items, `${at}[]`, requiredOf(items));
  else if (items?.['oneOf'] !== undefined) yield* variants(items, `${at}[]`);
  else if (typeof entries === 'object' && entries !== null) yield* variants(entries as Json, `${at}.*`);
}

function* variants(schema: Json, at: string): Generator<Row> {
  const options = (schema['oneOf'] ?? schema['anyOf'] ?? [schema]) as Json[];
  // a map from names to words: its own line says what they are
  if (options.every((option) => option['properties'] === undefined)) {
    for (const option of options)
      yield { key: at, value: valueText(option), standard: '', does: does(option) || 'One entry of it.' };
    return;
  }
  // a map from names to maps of one kind
  if (schema['oneOf'] === undefined && schema['anyOf'] === undefined) {
    yield { key: at, value: 'map', standard: '', does: does(schema) || 'One entry of it.' };
    yield* rowsOf(schema, at, requiredOf(schema));
    return;
  }
  const shown = new Map<string, string>();
  for (const option of options) {
    const properties = (option['properties'] ?? {}) as Record<string, Json>;
    const word = ['uses', 'from', 'kind'].find((one) => properties[one] !== undefined) ?? '';
    const uses = properties[word] ?? {};
    const kind = String(uses['const']);
    const rows = [...rowsOf(option, at, requiredOf(option))].filter((row) => row.key !== `${at}.${word}`);
    // kinds with the same keys are written out once
    const keys = rows.map((row) => row.key + row.value).join();
    const twin = shown.get(keys);
    const same = twin === undefined ? '' : ` Keys as for \`${twin}\`${ownDefaults(rows)}.`;
    yield { key: at, value: `\`${word}: ${kind}\``, standard: '', does: `**${does(uses)}**${same}` };
    if (twin !== undefined) continue;
    shown.set(keys, kind);
    yield* rows;
  }
}

function ownDefaults(rows: readonly Row[]): string {
  const key = rows.find((row) => row.key.endsWith('.key') && row.standard !== '');
  if (key === undefined) return '';
  const address = rows.some((row) => row.key.endsWith('.base_url')) ? '`base_url` may be left out, ' : '';
  const standard = key.standard === 'required' ? 'required' : `${key.standard} by default`;
  return `; ${address}\`key\` is ${standard}`;
}

function requiredOf(schema: Json): ReadonlySet<string> {
  return new Set((schema['required'] ?? []) as string[]);
}

function does(property: Json): string {
  return String(property['description'] ?? '');
}

function defaultOf(property: Json, required: boolean): string {
  if (required) return 'required';
  const value = property['default'];
  if (value === undefined) return '';
  if (typeof value === 'object' && value !== null && Object.keys(value).length === 0) {
    return Array.isArray(value) ? 'empty' : '';
  }
  if (Array.isArray(value) && value.every((one) => typeof one === 'object')) return 'one, as its keys say';
  if (Array.isArray(value)) return value.map((one) => `\`${String(one)}\``).join(', ');
  return value === '' ? 'empty' : `\`${String(value)}\``;
}

function valueText(property: Json): string {
  const words = property['enum'] as unknown[] | undefined;
  if (property['const'] !== undefined) return `\`${String(property['const'])}\``;
  if (words !== undefined) return words.map((word) => `\`${String(word)}\``).join(', ');
  const type = String(property['type'] ?? 'string');
  if (type === 'array') {
    const items = (property['items'] ?? {}) as Json;
    const listed = items['enum'] ?? (items['const'] === undefined ? undefined : [items['const']]);
    if (Array.isArray(listed)) return `list of ${listed.map((word) => `\`${String(word)}\``).join(', ')}`;
    return items['properties'] === undefined && items['oneOf'] === undefined ? 'list' : 'list of maps';
  }
  if (type === 'object') return 'map';
  if (type === 'integer') return 'whole number';
  if (type === 'number') return 'number';
  if (type === 'boolean') return '`true`, `false`';
  return String(property['pattern'] ?? '').startsWith('^[0-9]{1,6}(s') ? 'duration' : 'text';
}

const cell = (text: string) => text.replaceAll('|', '\\|').replaceAll('\n', ' ');
