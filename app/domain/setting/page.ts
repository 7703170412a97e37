/** docs/settings.md, made of the tables of settings (POL-2): its test holds the page to this text. */
import { STRICTER, type Strictness } from './hold.ts';
import { POLICY_SETTINGS, SETTING_KINDS } from './key.ts';

/** What is stricter, in words. */
export function strictnessWords(rule: Strictness | undefined): string {
  switch (rule?.by) {
    case undefined:
      return 'none: the setting is the default, and no more';
    case 'order':
      return rule.values.map((value) => `\`${String(value)}\``).join(' < ');
    case 'lower':
      return 'the smaller number';
    case 'higher':
      return 'the longer time';
    case 'subset':
      return 'only what the setting lists as well';
    case 'superset':
      return 'all that the setting lists, and more';
  }
}

/** The whole page, ending in a line end. */
export function settingsPage(): string {
  return [
    '# Settings of an installation',
    '',
    '<!-- Made from the tables in app/domain/setting: change them there, then run npx vitest run test/domain/setting/page.test.ts -u. -->',
    '',
    'What the operator of the server says for an installation of the App, or for all of them, above the policies of its',
    'repositories. Settings are in the database; every change is a signed row on the chain of each installation it concerns,',
    'with who changed it and why ([the command line](command-line.md#settings)):',
    '',
    '```sh',
    'countersign settings list --installation all',
    'countersign settings set slots.anthropic 16 --installation 4242 --reason "a larger contract"',
    'countersign settings set policy.gate.block_at medium --installation all --reason "audit"',
    'countersign settings set kill on --installation 4242 --reason "a leaked key"',
    'countersign settings unset kill --installation 4242 --reason "the key is changed"',
    '```',
    '',
    "An installation's own setting goes before that of all; the kill switch holds where either is on. A running server needs",
    'no restart, and with the embedded database the command finds the one that runs.',
    '',
    '## Keys',
    '',
    '| Key | Value | Without it | What it does |',
    '|---|---|---|---|',
    ...SETTING_KINDS.map(
      ({ name, takes, standard, does }) => `| \`${name}\` | ${takes} | ${standard} | ${does} |`,
    ),
    '',
    '## The kill switch',
    '',
    'In the transaction that sets it the generation of each open run rises and its leases are revoked, so that nothing that was',
    'planned before starts any more: the next heartbeat of a runner is `revoked`, a result that comes later is kept and not',
    'counted. Gates of open pull requests say `killed`, with who and why, and are not green while it is on; what was green',
    'before turns. GitHub is asked to cancel the workflow runs that were dispatched. Unset, tickets are leased again, and gates',
    'are decided anew; nobody has to ask for it.',
    '',
    'A program throws it by the API, with a token of `countersign operator add NAME --installation ID|all` that can do nothing',
    'else ([why](decisions/2026-11-30-who-throws-the-switch.md)); its name is in the row and on the gates:',
    '',
    '```sh',
    'curl -X POST https://YOUR-HOST/api/v1/kill-switch -H "authorization: Bearer $TOKEN" \\',
    '  -H "content-type: application/json" -d \'{"installation":"4242","on":true,"reason":"a leaked key"}\'',
    'curl "https://YOUR-HOST/api/v1/kill-switch?installation=all" -H "authorization: Bearer $TOKEN"',
    '```',
    '',
    '## Values that a policy leaves out, or is laxer than',
    '',
    'A policy is read, held to the settings, and stored as it counts: its hash, which every run, ticket and verdict names, is',
    'of the policy with the settings in it, and the file that was read is named in its first line. So `verify-run` and',
    '`simulate` decide by what counted. The summary of a pull request and `countersign config check FILE --installation ID` say',
    'which keys the settings hold. A change of such a setting reads the enrolled branches again.',
    '',
    '| Policy key | What is stricter, from lax to strict |',
    '|---|---|',
    ...POLICY_SETTINGS.map((key) => `| \`${key}\` | ${strictnessWords(STRICTER[key])} |`),
    '',
  ].join('\n');
}
