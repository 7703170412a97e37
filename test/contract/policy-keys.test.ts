import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { laterKeys } from '../../app/domain/policy/later.ts';
import { policySchemaJson } from '../../app/domain/policy/schema.ts';

type Json = { readonly [key: string]: unknown };

/** Who reads a key: a file, and the words by which it does. */
const READ: Readonly<Record<string, readonly [file: string, words: string]>> = {
  mode: ['app/flow/enrol.ts', 'policy?.mode'],
  'allow.authors': ['app/flow/sync-run/consent.ts', 'policy.allow.authors'],
  'gate.block_at': ['app/domain/gate/policy.ts', 'policy.gate.block_at'],
  'gate.deadline': ['app/domain/gate/policy.ts', 'policy.gate.deadline'],
  'gate.patience': ['app/domain/gate/policy.ts', 'policy.gate.patience'],
  'gate.allow_unreviewed': ['app/domain/gate/policy.ts', 'policy.gate.allow_unreviewed'],
  'people.approve': ['app/domain/gate/policy.ts', 'people.approve'],
  'people.override': ['app/domain/gate/policy.ts', 'people.override'],
  'people.solo': ['app/domain/gate/policy.ts', 'people.solo'],
  'people.carry': ['app/domain/gate/policy.ts', 'people.carry'],
  'review.on_unavailable': ['app/domain/gate/policy.ts', 'policy.review.on_unavailable'],
  'routes.*.human': ['app/domain/routing.ts', 'route?.human'],
  ownership: ['app/flow/sync-run/plan.ts', 'policy.ownership'],
  guard: ['app/domain/ownership/guard.ts', 'policy.guard'],
  'classes.generated': ['app/domain/file-set.ts', 'policy.classes.generated'],
  'classes.vendored': ['app/domain/file-set.ts', 'policy.classes.vendored'],
  'classes.lockfile': ['app/domain/file-set.ts', 'policy.classes.lockfile'],
  'people.dismiss': ['app/flow/run-command/dismiss.ts', 'people.dismiss'],
  'review.parallel': ['app/flow/cut-tickets/open.ts', 'review.parallel'],
  'review.max_lines': ['app/flow/cut-tickets/open.ts', 'review.max_lines'],
  'review.rounds': ['app/domain/gate/policy.ts', 'policy.review.rounds'],
  'review.consensus.*': ['app/domain/gate/policy.ts', 'policy.review.consensus'],
  'review.adaptive': ['app/domain/file-set.ts', 'policy.review.adaptive'],
  'review.drafts': ['app/flow/cut-tickets.ts', 'review.drafts'],
  'review.reuse': ['app/flow/cut-tickets/reuse.ts', 'review.reuse'],
  'review.show.severity': ['app/domain/finding/show.ts', 'rules.severity'],
  'review.show.lenses': ['app/domain/finding/show.ts', 'rules.lenses'],
  'review.show.paths': ['app/domain/finding/show.ts', 'rules.paths'],
  'review.lenses': ['app/domain/file-set.ts', 'policy.review.lenses'],
  'reviewers.*.uses': ['app/domain/ticket-spec.ts', 'entry.uses'],
  'reviewers.*.run': ['action/reviewers/command.ts', 'command.run'],
  'reviewers.*.output': ['action/reviewers/command.ts', 'command.output'],
  'reviewers.*.paths': ['app/domain/routing.ts', 'reviewer.paths'],
  'reviewers.*.ok_exit': ['action/reviewers/command.ts', 'command.ok_exit'],
  'reviewers.*.deletions': ['app/domain/routing.ts', 'reviewer.deletions'],
  'reviewers.*.config': ['action/reviewers/command.ts', 'command.config'],
  'reviewers.*.severity.error': ['action/reviewers/formats/sarif.ts', 'severity.error'],
  'reviewers.*.severity.warning': ['action/reviewers/formats/sarif.ts', 'severity.warning'],
  'reviewers.*.severity.note': ['action/reviewers/formats/sarif.ts', 'severity.note'],
  'reviewers.*.lenses': ['action/reviewers/asking.ts', 'spec.lenses'],
  'reviewers.*.model': ['action/reviewers/providers.ts', 'spec.model'],
  'reviewers.*.max_output': ['action/reviewers/ai-sdk.ts', 'spec.max_output'],
  'reviewers.*.fallbacks': ['action/reviewers/asking.ts', 'spec.fallbacks'],
  'reviewers.*.base_url': ['action/reviewers/providers.ts', 'spec.base_url'],
  'reviewers.*.key': ['action/reviewers/asking.ts', 'spec.key'],
  'levels.L1': ['app/domain/policy.ts', 'levels.L1'],
  'levels.L2': ['app/domain/policy.ts', 'levels.L2'],
  'levels.L3': ['app/domain/policy.ts', 'levels.L3'],
  'routes.*.when.paths': ['app/domain/routing.ts', 'when.paths'],
  'routes.*.when.kinds': ['app/domain/routing.ts', 'when.kinds'],
  'routes.*.when.lines.min': ['app/domain/routing.ts', 'lines.min'],
  'routes.*.when.lines.max': ['app/domain/routing.ts', 'lines.max'],
  'routes.*.level': ['app/domain/routing.ts', 'route?.level'],
  'routes.*.reviewers': ['app/domain/routing.ts', 'route?.reviewers'],
  'routes.*.timeout': ['app/domain/routing.ts', 'route?.timeout'],
  'routes.*.verify': ['app/domain/routing.ts', 'route?.verify'],
  'verify.*.from': ['app/domain/receipt/judge.ts', 'command.from'],
  'verify.*.workflow': ['app/domain/receipt/judge.ts', 'command.workflow'],
  'verify.*.job': ['app/domain/receipt/judge.ts', 'command.job'],
  'verify.*.run': ['action/verify/execute.ts', 'command.run'],
  'verify.*.env.*': ['action/verify/execute.ts', 'command.env'],
  'verify.*.ports': ['action/verify/execute.ts', 'command.ports'],
  'verify.*.artifacts': ['action/verify/execute.ts', 'command.artifacts'],
  'verify.*.timeout': ['action/verify/execute.ts', 'command.timeout'],
  'verify.*.pool': ['app/flow/settle-receipts/pools.ts', 'command.pool'],
  'verify.*.image': ['app/flow/lease-receipts.ts', 'command.image'],
  'verify.*.network': ['app/flow/lease-receipts.ts', 'command.network'],
  'pools.*.kind': ['app/domain/plan.ts', 'pool.kind'],
  'pools.*.name': ['app/domain/policy/pool.ts', 'entry.name'],
  'pools.*.workflow': ['app/flow/dispatch.ts', 'pool.workflow'],
  'pools.*.serves': ['app/domain/policy/pool.ts', 'entry.serves'],
  'pools.*.capacity': ['app/flow/dispatch.ts', 'pool.capacity'],
  'budget.block.sessions': ['app/domain/budget.ts', 'block.sessions'],
  'budget.run.sessions': ['app/domain/budget.ts', 'run.sessions'],
  'budget.run.tokens': ['app/domain/budget.ts', 'run.tokens'],
  'budget.run.usd': ['app/domain/budget.ts', 'run.usd'],
  'budget.month.tokens': ['app/domain/budget.ts', 'month.tokens'],
  'budget.month.usd': ['app/domain/budget.ts', 'month.usd'],
  'budget.outsiders.tokens': ['app/domain/budget.ts', 'outsiders.tokens'],
  'budget.outsiders.usd': ['app/domain/budget.ts', 'outsiders.usd'],
  'budget.prices.*.input': ['app/domain/budget.ts', 'price.input'],
  'budget.prices.*.output': ['app/domain/budget.ts', 'price.output'],
  'publish.blocks': ['app/flow/publish-checks/want-block.ts', 'publish.blocks'],
  'publish.comments': ['app/flow/publish-checks/want-remarks.ts', 'publish.comments'],
  'publish.annotations': ['app/flow/publish-checks/want-findings.ts', 'publish.annotations'],
  'commands.prefix': ['app/flow/run-command.ts', 'commands.prefix'],
  'commands.bots': ['app/flow/run-command.ts', 'commands.bots'],
};

/** The one value of a key that nothing has to read: things are so, and every other value is refused. */
const FIXED: Readonly<Record<string, unknown>> = {
  version: 1,
  'reviewers.*.trusted': true,
  'fix.push': false,
};

/** Every key that holds a value, with its schema; `*` for any name or index. */
function* leaves(schema: Json, at = ''): Generator<[string, Json]> {
  const below = (name: string) => (at === '' ? name : `${at}.${name}`);
  const properties = schema['properties'] as Record<string, Json> | undefined;
  const items = schema['items'] as Json | undefined;
  const entries = schema['additionalProperties'];
  const variants = (schema['oneOf'] ?? schema['anyOf']) as Json[] | undefined;
  if (properties !== undefined)
    for (const [name, property] of Object.entries(properties)) yield* leaves(property, below(name));
  else if (items?.['properties'] !== undefined || items?.['oneOf'] !== undefined)
    yield* leaves(items, below('*'));
  else if (typeof entries === 'object' && entries !== null) yield* leaves(entries as Json, below('*'));
  else if (variants?.some((one) => one['properties'] !== undefined) === true)
    for (const variant of variants) yield* leaves(variant, at);
  else yield [at, schema];
}

const keys = [...leaves(policySchemaJson())];
const names = [...new Set(keys.map(([key]) => key))].sort();

/** A file without its comments: what only a comment says reads nothing. */
const code = (file: string) => readFileSync(file, 'utf8').replaceAll(/\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm, '');

describe('a policy key does what it says, or is refused', () => {
  it('POL-1: every key of the schema has a reader, or one value that is so', () => {
    expect(names).toEqual([...Object.keys(READ), ...Object.keys(FIXED)].sort());
  });

  it.each(Object.entries(READ))('POL-1: %s is read', (_, [file, words]) => {
    expect(code(file)).toContain(words);
  });

  it.each(Object.entries(FIXED))('POL-1: %s takes one value', (key, value) => {
    for (const [, schema] of keys.filter(([name]) => name === key)) {
      const items = schema['items'] as Json | undefined;
      expect((items ?? schema)['const']).toBe(value);
    }
  });

  it('POL-1: every other key that the rule names is in the table of later ones', () => {
    const later: string[] = [];
    const whole = laterKeys.filter((entry) => entry.values === undefined).map((entry) => entry.path);
    // a key whose refusal hangs on its value is in both
    expect(whole.filter((path) => !names.includes(path)).sort()).toEqual(later.sort());
    expect(later.filter((path) => names.includes(path))).toEqual([]);
  });
});
