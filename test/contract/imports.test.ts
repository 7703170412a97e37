import { readdirSync, readFileSync, statSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';

/**
 * Who may import whom: default deny. `may` names repository paths (prefixes) and packages; the first
 * entry whose `who` matches a file governs it. The table is design; change it with a decision record.
 */
const table: { who: RegExp; may: (string | RegExp)[] }[] = [
  {
    who: /^app\/domain\//,
    may: ['app/domain/', 'app/errors.ts', 'zod', 'picomatch', 'yaml', 'canonicalize', 'node:crypto'],
  },
  { who: /^app\/protocol\//, may: ['app/protocol/', 'app/domain/', 'zod'] },
  {
    who: /^app\/flow\//,
    may: [
      'app/flow/',
      'app/domain/',
      'app/errors.ts',
      'db/store/',
      'db/client.ts',
      'app/github/port.ts',
      'app/github/port/',
      'app/signing/signer.ts',
      'app/protocol/',
      'node:crypto',
      'node:async_hooks',
      'zod',
    ],
  },
  {
    who: /^app\/github\/port(\.ts$|\/)/,
    may: ['app/domain/', 'app/github/port.ts', 'app/github/port/'],
  },
  {
    who: /^app\/github\//,
    may: ['app/github/', 'app/domain/', 'app/errors.ts', /^@octokit\//, 'probot', 'execa', 'zod', /^node:/],
  },
  {
    who: /^app\/http\/webhook/,
    may: [
      'app/http/',
      'app/flow/',
      'app/protocol/',
      'app/errors.ts',
      'app/github/events',
      /^hono/,
      /^@hono\//,
      /^@octokit\/webhooks-methods$/,
      'prom-client',
      /^node:/,
    ],
  },
  {
    who: /^app\/http\//,
    may: [
      'app/http/',
      'app/flow/',
      'app/protocol/',
      'app/errors.ts',
      /^hono/,
      /^@hono\//,
      'jose',
      'prom-client',
      'zod',
      /^node:(http|crypto|stream|buffer|timers|net)/,
    ],
  },
  {
    who: /^app\/worker/,
    may: ['app/worker', 'app/flow/', 'app/errors.ts', 'graphile-worker', /^node:/, 'db/client.ts'],
  },
  { who: /^app\/signing\//, may: ['app/signing/', 'app/domain/', 'app/errors.ts', /^node:/] },
  { who: /^app\/config\.ts$/, may: ['app/errors.ts', 'zod', /^node:/] },
  { who: /^app\/errors\.ts$/, may: [] },
  { who: /^app\/(main|cli|server)/, may: [/./] },
  {
    who: /^db\//,
    may: ['db/', 'app/domain/', 'app/errors.ts', /^drizzle-orm/, 'pg', 'graphile-worker', 'zod', /^node:/],
  },
  {
    who: /^action\/(?!build)/,
    may: [
      'action/',
      'app/protocol/',
      'app/errors.ts',
      /^app\/domain\/(finding|ticket|redact|path|transcript|limits|provider|workflow|text|policy|receipt|ownership\/match)/,
      'app/domain/ledger/canonical',
      'app/domain/ledger/row-',
      /^(?!app\/|db\/|sandbox\/|test\/|bench\/)/,
    ],
  },
  { who: /^action\/build/, may: [/^(?!app\/|db\/|sandbox\/|test\/|bench\/)/] },
  { who: /^(sandbox|test|bench)\//, may: [/./] },
];

const roots = ['app', 'action', 'db', 'sandbox', 'test', 'bench'];

function sources(dir: string): string[] {
  return readdirSync(dir).flatMap((name) => {
    const file = path.posix.join(dir, name);
    if (file === 'action/dist' || file === 'test/fixtures') return [];
    if (statSync(file).isDirectory()) return sources(file);
    return /\.tsx?$/.test(name) ? [file] : [];
  });
}

/** Import specifiers of a source, static and dynamic, resolved to repository paths where relative. */
function imports(file: string): string[] {
  const text = readFileSync(file, 'utf8')
    .replace(/\/\*[\s\S]*?\*\//g, '')
    .replace(/^\s*\/\/.*$/gm, '');
  const found = [
    ...text.matchAll(
      /(?:^|[;\s])(?:import|export)\s+(?:[^'"`;]*?\sfrom\s+)?['"]([^'"]+)['"]|import\(\s*['"]([^'"]+)['"]/g,
    ),
  ];
  return found
    .map((m) => m[1] ?? m[2] ?? '')
    .map((spec) =>
      spec.startsWith('.') ? path.posix.normalize(path.posix.join(path.posix.dirname(file), spec)) : spec,
    );
}

const files = roots.flatMap(sources);

const allowed = (spec: string, may: (string | RegExp)[]) =>
  may.some((entry) =>
    typeof entry === 'string'
      ? spec === entry || (entry.includes('/') && spec.startsWith(entry))
      : entry.test(spec),
  );

describe('import table', () => {
  it('finds sources to check', () => {
    expect(files.length).toBeGreaterThan(50);
  });

  it('every file stands in the house and imports only what the table allows', () => {
    const refused = files.flatMap((file) => {
      const rule = table.find((entry) => entry.who.test(file));
      if (rule === undefined) return [`${file} stands outside the house`];
      return imports(file)
        .filter((spec) => !allowed(spec, rule.may))
        .map((spec) => `${file} -> ${spec}`);
    });
    expect(refused).toEqual([]);
  });

  it('nothing imports main, test, bench or sandbox from the product', () => {
    const bad = files
      .filter((file) => /^(app|action|db)\//.test(file))
      .flatMap((file) => imports(file).map((spec) => `${file} -> ${spec}`))
      .filter((line) => /-> (app\/main\.ts|test\/|bench\/|sandbox\/)/.test(line));
    expect(bad).toEqual([]);
  });

  it('process.env is read in one file of the server and one of the Action', () => {
    const readers = files
      .filter((file) => /^(app|action|db)\//.test(file))
      .filter((file) => /process\.env\b/.test(readFileSync(file, 'utf8').replace(/\/\*[\s\S]*?\*\//g, '')));
    const extra = readers.filter(
      (file) =>
        !['app/config.ts', 'action/inputs.ts', 'db/embedded.ts'].includes(file) &&
        !file.startsWith('db/embedded/'),
    );
    expect(extra).toEqual([]);
  });
});
