import { readFileSync } from 'node:fs';
import { Ajv2020 } from 'ajv/dist/2020.js';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { editDistance, nearest } from '../../../app/domain/policy/explain.ts';
import { laterKeys } from '../../../app/domain/policy/later.ts';
import { POLICY_MAX_BYTES } from '../../../app/domain/policy/read-yaml.ts';
import { policySchemaJson } from '../../../app/domain/policy/schema.ts';
import { fallbacksOf, type Policy, parsePolicy, STARTER_POLICY } from '../../../app/domain/policy.ts';
import { cpuNow } from '../../helpers/cpu.ts';

const bytes = (text: string) => Buffer.from(text);

function valid(text: string): Policy {
  const reading = parsePolicy(bytes(text));
  if (!reading.ok) throw new Error(JSON.stringify(reading.errors));
  return reading.policy;
}

function errors(text: string | Buffer): { line: number; path: string; message: string; accepted: string }[] {
  const reading = parsePolicy(typeof text === 'string' ? bytes(text) : text);
  if (reading.ok) throw new Error('it is valid');
  for (const error of reading.errors) expect(error.code).toBe('config_invalid');
  return reading.errors.map(({ line, path, message, accepted }) => ({ line, path, message, accepted }));
}

/** Line, path and message of every error. */
const shown = (text: string) => errors(text).map(({ line, path, message }) => `${line} ${path}: ${message}`);

const linter = `  lint:
    uses: command
    run: [lint, "{path}"]
    output: sarif
    paths: ["**"]
    trusted: true
`;

/** One case of each thing that a later version adds. */
const LATER: readonly [string, string][] = [
  ['fix: {push: true}', 'fix.push: true is not supported yet'],
  [
    'pools: [{kind: resident, name: a, serves: [review, fix]}]',
    'pools[0].serves[1]: fix is not supported yet',
  ],
  [
    'reviewers: {a: {uses: command, run: ["{path}"], paths: [a], output: sarif, trusted: false}}',
    'reviewers.a.trusted: false is not supported yet',
  ],
];

describe('defaults', () => {
  it('POL-1: a version alone is a policy; every default is its first choice', () => {
    expect(valid('version: 1')).toEqual({
      version: 1,
      mode: 'enforce',
      allow: { authors: [] },
      budget: { block: {}, run: {}, month: {}, outsiders: {}, prices: {} },
      gate: {
        block_at: 'high',
        deadline: 21_600_000,
        patience: 1_800_000,
        allow_unreviewed: ['generated', 'moved', 'lockfile', 'deleted'],
      },
      ownership: 'auto',
      guard: [],
      classes: { generated: [], vendored: [], lockfile: [] },
      people: { approve: 'write', dismiss: 'write', override: 'none', solo: false, carry: 'identical' },
      review: {
        parallel: 6,
        rounds: 3,
        max_lines: 3000,
        consensus: {},
        drafts: 'off',
        reuse: 'on',
        on_unavailable: 'human',
        adaptive: 'off',
        show: { severity: 'info' },
        lenses: ['security', 'correctness', 'reliability', 'performance', 'maintainability', 'tests', 'docs'],
      },
      reviewers: new Map(),
      verify: new Map(),
      levels: { L1: [], L2: [], L3: [] },
      highest: 'L3',
      firstAtL1: true,
      routes: [],
      pools: [{ kind: 'workflow', workflow: 'countersign.yml', capacity: 4, serves: ['review'] }],
      publish: { blocks: 'auto', annotations: 500, comments: 'off' },
      commands: { prefix: '', bots: [] },
      fix: { push: false },
    });
  });

  it('POL-1: levels left out are all reviewers in the order of the file, and L1 takes the first that reads a file', () => {
    const policy = valid(`version: 1
reviewers:
${linter}  z-model: {uses: openai, model: m}
  a-model: {uses: anthropic, model: m, key: MY_KEY}
levels: {L2: [a-model]}
`);
    expect(policy.levels).toEqual({
      L1: ['lint', 'z-model', 'a-model'],
      L2: ['a-model'],
      L3: ['lint', 'z-model', 'a-model'],
    });
    expect(policy.firstAtL1).toBe(true);
    expect(policy.highest).toBe('L2');
    expect(policy.reviewers.get('z-model')).toMatchObject({ key: 'OPENAI_API_KEY', fallbacks: [] });
    expect(policy.reviewers.get('a-model')).toMatchObject({ key: 'MY_KEY' });
  });

  it('REV-1a: a command has the defaults of its rule', () => {
    expect(valid(`version: 1\nreviewers:\n${linter}`).reviewers.get('lint')).toEqual({
      uses: 'command',
      run: ['lint', '{path}'],
      output: 'sarif',
      paths: ['**'],
      ok_exit: [0, 1],
      deletions: false,
      config: [],
      severity: { error: 'high', warning: 'medium', note: 'low' },
      trusted: true,
    });
  });

  it('RUN-9: the policy to start from is valid and without notes', () => {
    const reading = parsePolicy(bytes(STARTER_POLICY));
    expect(reading).toMatchObject({ ok: true, notes: [] });
  });

  it('case 70: an account id past 2^53 stays exact, as a number and as text', () => {
    const policy = valid('version: 1\nallow: {authors: [9007199254740993, "9007199254740995", 12]}');
    expect(policy.allow.authors).toEqual(['9007199254740993', '9007199254740995', '12']);
  });

  it('POL-1: durations are milliseconds, a workflow is its file name, a prefix has no slash', () => {
    const policy = valid(`version: 1
gate: {deadline: 90m}
pools: [{kind: workflow, workflow: .github/workflows/review.yaml}]
commands: {prefix: /cs}
`);
    expect(policy.gate.deadline).toBe(5_400_000);
    expect(policy.pools[0]).toMatchObject({ kind: 'workflow', workflow: 'review.yaml' });
    expect(policy.commands.prefix).toBe('cs');
  });
});

describe('refusals', () => {
  it('POL-1: unknown keys name the nearest known one, at every depth, with their line', () => {
    expect(
      shown(`version: 1
moed: advisory
review:
  max_line: 3
reviewers:
  a: {uses: openai, modle: x, model: y}
routes:
  - when: {path: [a]}
`),
    ).toEqual([
      '2 moed: unknown key "moed"; did you mean mode?',
      '4 review.max_line: unknown key "max_line"; did you mean max_lines?',
      '6 reviewers.a.modle: unknown key "modle"; did you mean model?',
      '8 routes[0].when.path: unknown key "path"; did you mean paths?',
      '8 routes[0].when: {"path":["a"]} is not accepted',
    ]);
  });

  it('POL-1: a kind of reviewer that is misspelt names the nearest one', () => {
    expect(shown('version: 1\nreviewers:\n  a: {uses: comand}\n')).toEqual([
      '3 reviewers.a.uses: comand is not accepted; did you mean command?',
    ]);
  });

  it.each(LATER)('issue 2: %s is refused as not supported yet', (line, message) => {
    expect(errors(`version: 1\n${line}\n`).map((error) => error.message)).toEqual([message]);
  });

  it('REV-11: command-line agents are reviewers, each with the usual key of its provider', () => {
    const policy = valid(`version: 1
reviewers:
  a: {uses: claude-code, model: claude-sonnet-4-6, fallbacks: [b]}
  b: {uses: codex, model: gpt-5.4}
  c: {uses: grok, model: grok-4.7}
  d: {uses: opencode, model: anthropic/claude-sonnet-4-6, key: ANTHROPIC_API_KEY}
`);
    expect([...policy.reviewers.values()].map((one) => one.uses !== 'command' && one.key)).toEqual([
      'ANTHROPIC_API_KEY',
      'OPENAI_API_KEY',
      'XAI_API_KEY',
      'ANTHROPIC_API_KEY',
    ]);
  });

  it.each([
    ['{uses: codex}', 'reviewers.a.model'],
    ['{uses: codex, model: --yolo}', 'reviewers.a.model'],
    ['{uses: claude-code, model: "a b"}', 'reviewers.a.model'],
    ['{uses: opencode, model: gpt-5, key: OPENAI_API_KEY}', 'reviewers.a.model'],
    ['{uses: opencode, model: openai/gpt-5}', 'reviewers.a.key'],
    ['{uses: grok, model: grok-4, key: GITHUB_TOKEN}', 'reviewers.a.key'],
    ['{uses: grok, model: grok-4, run: ["sh"]}', 'reviewers.a.run'],
  ])('REV-11: an agent %s is refused at %s', (entry, path) => {
    expect(errors(`version: 1\nreviewers: {a: ${entry}}`).map((error) => error.path)).toEqual([path]);
  });

  it.each(['rdjson', 'checkstyle', 'eslint-json'])('REV-1a: a command may print %s', (output) => {
    const policy = valid(`version: 1\nreviewers:\n${linter.replace('sarif', output)}`);
    expect(policy.reviewers.get('lint')).toMatchObject({ output });
  });

  it('issue 2: everything the table of later keys names is among the cases above', () => {
    const covered = LATER.map(([line]) => errors(`version: 1\n${line}`)[0]?.path ?? '');
    const general = covered.map((path) =>
      path.replaceAll(/\[\d+\]/g, '.*').replace(/^(reviewers|verify)\.\w+/, '$1.*'),
    );
    expect([...new Set(general)].sort()).toEqual(laterKeys.map((entry) => entry.path).sort());
  });

  it('POL-1: written out, what is so already is accepted, whatever comes later', () => {
    valid(`version: 1
people: {override: none, solo: false}
review: {adaptive: off, on_unavailable: block}
publish: {comments: off}
fix: {push: false}
pools: [{kind: workflow, serves: [review]}]
`);
  });

  it.each([
    ['', 'the file is empty'],
    ['# nothing', 'the file is empty'],
    ['- 1', '[1] is not accepted'],
    ['mode: enforce', 'version is missing'],
    ['version: 2', '2 is not accepted'],
    ['version: "1"', '"1" is not accepted'],
    ['a: &x 1\nb: *x', 'anchors are not accepted; write the value out'],
    ['version: 1\nversion: 1', 'Map keys must be unique'],
    ['version: 1\n---\nversion: 1', 'the file holds more than one document'],
    ['version: !!js/function "x"', 'Unresolved tag: tag:yaml.org,2002:js/function'],
    ['__proto__: {x: 1}\nversion: 1', 'the key __proto__ is not accepted'],
    ['? [a]\n: 1', 'a key must be a word'],
    ['version: 1\n<<: {mode: advisory}', 'unknown key "<<"'],
  ])('POL-1: %j is refused', (text, message) => {
    expect(errors(text)[0]?.message).toBe(message);
  });

  it('POL-1: bytes that are no UTF-8, too many of them, or nested without end are refused in bounded time', () => {
    expect(errors(Buffer.from([0xff, 0xfe]))[0]?.message).toBe('the file is not UTF-8');
    expect(errors('#'.repeat(POLICY_MAX_BYTES + 1))[0]?.message).toMatch(/^the file is larger/);
    const start = cpuNow();
    for (const unit of ['[', '{a: ', '- ', '? ', 'a: [', '&a ', '*a ', '"', '|\n', '!']) {
      expect(parsePolicy(bytes(unit.repeat(POLICY_MAX_BYTES / unit.length))).ok).toBe(false);
    }
    expect(cpuNow() - start).toBeLessThan(20_000);
  });

  it('POL-1: a billion laughs is refused before anything is expanded', () => {
    const laughs = [
      'a: &a [x, x]',
      ...'bcdefghij'.split('').map((name, i) => `${name}: &${name} [*${'abcdefghi'[i]}, *${'abcdefghi'[i]}]`),
    ];
    expect(errors(laughs.join('\n'))[0]?.message).toMatch(/^(anchors|aliases) are not accepted/);
  });

  it('OWN-1: patterns are held to the rules of owned entries', () => {
    const bad = ['/abs', '!not', 'a//b', './a', 'a/../b', 'a\\b', ' a', 'a\u0007b', ''];
    for (const pattern of bad) {
      expect(errors(`version: 1\nguard: [${JSON.stringify(pattern)}]`)[0]?.path).toBe('guard[0]');
    }
    valid('version: 1\nguard: ["infra/", "**/*.sql", "a b/c", "[id].ts"]');
  });

  it('POL-1: names that do not exist, circles and doubles are found where they stand', () => {
    expect(
      shown(`version: 1
reviewers:
  one: {uses: openai, model: m, fallbacks: [two]}
  two: {uses: openai, model: m, fallbacks: [three]}
  three: {uses: openai, model: m, fallbacks: [one]}
  four: {uses: openai, model: m, fallbacks: [lint]}
${linter}levels:
  L1: [oen]
routes:
  - when: {lines: {min: 9, max: 3}}
    reviewers: [nobody, lint, lint]
pools: [{kind: workflow}, {kind: workflow}]
`),
    ).toEqual([
      '3 reviewers.one.fallbacks: fallbacks go in a circle: one → two → three → one',
      '6 reviewers.four.fallbacks[0]: lint is a command and cannot stand in for a model',
      '14 levels.L1[0]: no reviewer is named oen; did you mean one?',
      '16 routes[0].when.lines: min is larger than max',
      '17 routes[0].reviewers[0]: no reviewer is named nobody',
      '17 routes[0].reviewers[2]: lint is listed twice',
      '18 pools[1]: countersign.yml is listed twice',
    ]);
  });

  it.each([
    ['key: sk-live-123', 'the NAME of an environment variable'],
    ['key: GITHUB_TOKEN', 'an environment variable of its own'],
    ['key: ACTIONS_ID_TOKEN_REQUEST_TOKEN', 'an environment variable of its own'],
    ['base_url: "http://models.example.com/v1"', 'an https address'],
    ['base_url: "https://user:secret@models.example.com"', 'an https address without credentials'],
    ['max_output: 1.5', 'a whole number from 256'],
  ])('REV-1: %s is refused', (line, accepted) => {
    const [error] = errors(`version: 1\nreviewers: {a: {uses: openai, model: m, ${line}}}`);
    expect(error?.accepted).toContain(accepted);
  });

  it('REV-1a: run is a list of arguments that holds {path}; trusted has to be stated', () => {
    const of = (more: string) =>
      errors(`version: 1\nreviewers: {a: {uses: command, output: sarif, paths: [a], ${more}}}`);
    expect(of('trusted: true, run: "lint {path}"')[0]?.accepted).toContain('a list of arguments');
    expect(of('trusted: true, run: [lint]')[0]?.accepted).toContain('{path}');
    expect(of('run: [lint, "{path}"]')[0]).toMatchObject({
      message: 'reviewers.a.trusted is missing',
      accepted: expect.stringContaining('loads no code'),
    });
    expect(of('run: [lint, "{path}"], trusted: false')[0]?.message).toMatch(/not supported yet$/);
    expect(of('trusted: true, run: ["{path}"], config: ["*.json"]')[0]?.accepted).toContain('exact paths');
  });

  it('POL-1: at most twenty errors are told, in the order of the file, whatever the file says', () => {
    const many = Array.from({ length: 100 }, (_, i) => `key${i}: 1`).join('\n');
    expect(errors(many)).toHaveLength(20);
    fc.assert(
      fc.property(fc.string({ maxLength: 300 }), (text) => {
        const reading = parsePolicy(bytes(text));
        if (reading.ok) return;
        expect(reading.errors.length).toBeGreaterThan(0);
        for (const error of reading.errors) expect(error.line).toBeGreaterThan(0);
      }),
    );
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 4 }), fc.jsonValue({ maxDepth: 4 }), (a, b) => {
        parsePolicy(
          bytes(JSON.stringify({ version: 1, reviewers: a, routes: b, review: a, gate: b, pools: a })),
        );
      }),
    );
  });
});

describe('names that every object has', () => {
  it.each(['toString', 'constructor', 'hasOwnProperty', 'valueOf', '__proto__', 'isPrototypeOf'])(
    'POL-1: %s is no reviewer until one bears the name, and a key no reader falls over',
    (name) => {
      const at = (text: string) => parsePolicy(bytes(`version: 1\n${text}`));
      for (const text of [
        `reviewers:\n  a: {uses: openai, model: m, fallbacks: [${name}]}\n`,
        `reviewers:\n  a: {uses: openai, model: m}\nlevels: {L1: [${name}]}\n`,
        `reviewers:\n  a: {uses: openai, model: m}\nroutes: [{when: {paths: [x]}, reviewers: [${name}]}]\n`,
        `${name}: {}\n`,
        `reviewers:\n  a: {uses: openai, model: m, ${name}: 1}\n`,
      ]) {
        const reading = at(text);
        expect(reading.ok, text).toBe(false);
        if (!reading.ok) expect(reading.errors.every((one) => one.code === 'config_invalid')).toBe(true);
      }
      expect(() => at(`reviewers:\n  ${name}: {uses: openai, model: m}\n`)).not.toThrow();
    },
  );
});

describe('verify commands', () => {
  it('VER-1: a command names the job that proves it, or what the Action runs', () => {
    const policy = valid(`version: 1
verify:
  test: {from: ci, workflow: .github/workflows/ci.yml, job: test}
  e2e: {from: action, run: [npm, run, e2e], ports: [WEB_PORT], artifacts: [out/report.json]}
routes:
  - {when: {paths: ["**"]}, verify: [test, e2e]}
`);
    expect(policy.verify.get('test')).toEqual({ from: 'ci', workflow: 'ci.yml', job: 'test' });
    expect(policy.verify.get('e2e')).toEqual({
      from: 'action',
      run: ['npm', 'run', 'e2e'],
      timeout: 900_000,
      env: {},
      ports: ['WEB_PORT'],
      artifacts: ['out/report.json'],
      workflow: 'countersign-verify.yml',
    });
    expect(policy.routes[0]?.verify).toEqual(['test', 'e2e']);
  });

  it.each([
    ['{from: ci, workflow: ci.yml}', 'verify.a.job', 'is missing'],
    ['{from: ci, workflow: ../ci.yml, job: a}', 'verify.a.workflow', 'is not accepted'],
    ['{from: act, run: [a]}', 'verify.a.from', 'is not accepted'],
    ['{from: action, run: npm test}', 'verify.a.run', 'is not accepted'],
    ['{from: action, run: [a], env: {PATH: x}}', 'verify.a.env.PATH', 'is not accepted'],
    ['{from: action, run: [a], env: {GITHUB_TOKEN: x}}', 'verify.a.env.GITHUB_TOKEN', 'is not accepted'],
    ['{from: action, run: [a], ports: [web]}', 'verify.a.ports[0]', 'is not accepted'],
    ['{from: action, run: [a], artifacts: [/etc/passwd]}', 'verify.a.artifacts[0]', 'starts with a slash'],
    ['{from: action, run: [a], timout: 5m}', 'verify.a.timout', 'did you mean timeout?'],
    ['{from: ci, workflow: countersign.yml, job: a}', 'verify.a.workflow', 'the workflow of a pool'],
    ['{from: pool, pool: box, run: [a]}', 'verify.a.image', 'is missing'],
    ['{from: pool, pool: box, image: --privileged, run: [a]}', 'verify.a.image', 'is not accepted'],
    ['{from: pool, pool: box, image: a, run: [a], network: host}', 'verify.a.network', 'is not accepted'],
    ['{from: pool, pool: box, image: a, run: [a]}', 'verify.a.pool', 'no resident pool box serves verify'],
  ])('VER-1: %s is refused at %s', (entry, path, message) => {
    const [first] = errors(`version: 1\nverify:\n  a: ${entry}`);
    expect(first).toMatchObject({ path, line: 3 });
    expect(first?.message).toContain(message);
  });

  it('VER-1, POOL-1: a command of a pool names one that serves verify; files are reviewed by another, or by it too', () => {
    const withPools = (pools: string) => `version: 1
verify:
  a: {from: pool, pool: box, image: "node:24", run: [npm, test]}
routes:
  - {when: {paths: ["**"]}, verify: [a]}
pools: ${pools}
`;
    const policy = valid(withPools('[{kind: workflow}, {kind: resident, name: box, serves: [verify]}]'));
    expect(policy.verify.get('a')).toEqual({
      from: 'pool',
      pool: 'box',
      image: 'node:24',
      network: 'none',
      run: ['npm', 'test'],
      timeout: 900_000,
      env: {},
      ports: [],
      artifacts: [],
    });
    valid(withPools('[{kind: resident, name: box, serves: [review, verify]}]'));
    expect(shown(withPools('[{kind: workflow}, {kind: resident, name: box}]'))).toEqual([
      '3 verify.a.pool: no resident pool box serves verify',
    ]);
    expect(shown(withPools('[{kind: resident, name: box, serves: [verify]}]'))).toEqual([
      '6 pools: no pool reviews files',
    ]);
    expect(errors(withPools('[{kind: workflow, serves: [verify]}]'))[0]).toMatchObject({
      path: 'pools[0].serves[0]',
      accepted: 'review: a workflow of the default branch runs no code of a pull request',
    });
    expect(shown(withPools('[{kind: resident, name: box, serves: [verify, verify]}]'))[0]).toContain(
      'pools[0].serves',
    );
  });

  it('VER-1: a route that names no verify command of the policy is refused, a command of no route is noted', () => {
    const lines = 'version: 1\nverify: {unit: {from: ci, workflow: ci.yml, job: unit}}';
    const [first] = errors(`${lines}\nroutes: [{when: {kinds: [code]}, verify: [unti]}]`);
    expect(first?.message).toBe('no verify command is named unti; did you mean unit?');
    const reading = parsePolicy(new TextEncoder().encode(lines));
    expect(reading.ok && reading.notes.map((note) => note.message)).toContain(
      'unit is named by no route, so it holds nothing',
    );
  });
});

describe('the schema', () => {
  it('POL-3: the JSON Schema takes what the parser takes, and refuses unknown and later keys', () => {
    const validate = new Ajv2020({ strict: false }).compile(policySchemaJson());
    const data = { version: 1, reviewers: { a: { uses: 'openai', model: 'm' } }, review: { parallel: 3 } };
    expect(validate(data)).toBe(true);
    for (const more of [
      { moed: 1 },
      { verify: { a: { from: 'pool', run: ['a'] } } },
      { fix: { push: true } },
      { gate: { deadline: 6 } },
    ]) {
      expect(validate({ ...data, ...more })).toBe(false);
    }
  });

  it('POL-3: fallbacks are followed in order, each once, never to a reviewer of the ticket itself', () => {
    const policy = valid(`version: 1
reviewers:
  a: {uses: openai, model: m, fallbacks: [b, c]}
  b: {uses: openai, model: m, fallbacks: [c, d]}
  c: {uses: openai, model: m}
  d: {uses: openai, model: m}
`);
    expect(fallbacksOf(policy, ['a'])).toEqual(['b', 'c', 'd']);
    expect(fallbacksOf(policy, ['a', 'b'])).toEqual(['c', 'd']);
  });

  it('POL-1: the nearest key is near: one edit in three letters, at most three', () => {
    expect(editDistance('moed', 'mode')).toBe(1);
    expect(nearest('reviwers', ['reviewers', 'routes'])).toBe('reviewers');
    expect(nearest('z', ['a'])).toBeNull();
    expect(nearest('something', ['else'])).toBeNull();
  });
});

describe('case 52, attack 29', () => {
  it('what decides is the bytes that are given: nothing is read from anywhere else', () => {
    const source = readFileSync(new URL('../../../app/domain/policy.ts', import.meta.url), 'utf8');
    expect(source).not.toMatch(/node:fs|process\.|fetch\(/);
  });
});
