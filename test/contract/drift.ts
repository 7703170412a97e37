/**
 * `npm run check:drift`: what is generated is what is committed. Tables against migrations, the
 * Action's source against its bundle, the policy schema and the command grammar against their pages.
 */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';

const problems: string[] = [];

function digest(dir: string): Map<string, string> {
  const found = new Map<string, string>();
  const walk = (at: string) => {
    for (const name of readdirSync(at)) {
      const file = path.join(at, name);
      if (statSync(file).isDirectory()) walk(file);
      else found.set(path.relative(dir, file), createHash('sha256').update(readFileSync(file)).digest('hex'));
    }
  };
  walk(dir);
  return found;
}

function differences(before: Map<string, string>, after: Map<string, string>): string[] {
  const names = new Set([...before.keys(), ...after.keys()]);
  return [...names].filter((name) => before.get(name) !== after.get(name)).sort();
}

// Tables: generating again must write nothing.
const migrations = digest('db/migrations');
const said = execFileSync('npx', ['drizzle-kit', 'generate', '--name', 'drift'], { encoding: 'utf8' });
const written = differences(migrations, digest('db/migrations'));
if (written.length > 0)
  problems.push(`db/schema has changes without a migration; written now: ${written.join(', ')}`);
else if (!said.includes('No schema changes'))
  problems.push(`drizzle-kit did not say that nothing changed:\n${said}`);
execFileSync('npx', ['drizzle-kit', 'check'], { stdio: 'pipe' });

// The Action: building again must give the same bytes.
const out = mkdtempSync(path.join(os.tmpdir(), 'countersign-dist-'));
try {
  execFileSync('npm', ['run', '-s', 'build:action', '--', out], { stdio: 'pipe' });
  const stale = differences(digest('action/dist'), digest(out));
  if (stale.length > 0)
    problems.push(
      `action/dist is stale (${stale.slice(0, 5).join(', ')}): run npm run build:action and commit it`,
    );
} finally {
  rmSync(out, { recursive: true, force: true });
}

for (const problem of problems) console.error(`drift: ${problem}`);
process.exit(problems.length > 0 ? 1 : 0);
