/** `countersign workflow`: the workflow files that a repository gets (ACT-1, ACT-3, VER-1). */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { parsePolicy } from '../domain/policy.ts';
import { type WorkflowText, workflowFiles } from '../domain/workflow/files.ts';
import { WORKFLOW_PATH, workflowFile } from '../domain/workflow.ts';
import { VERSION } from '../server/version.ts';
import { type Entry, read, Usage } from './entry.ts';

/** The command `workflow`. */
export const workflowCommand: Entry = {
  usage: [
    'workflow --server URL [--policy FILE] [--out DIR [--force]] [--uses OWNER/REPO@REF] [--keys NAME,NAME] [--container IMAGE]',
  ],
  what: `print the file for ${WORKFLOW_PATH}, or every workflow file that a policy needs`,
  options: [
    ['--server URL', 'where runners reach this server'],
    ['--policy FILE', 'the policy: its pools, keys and agents, and its verify commands, one job each'],
    ['--out DIR', 'write the files into this checkout instead; one that is there and differs is left alone'],
    ['--force', 'write over files that differ'],
    ['--uses OWNER/REPO@REF', "the Action, best by commit; by default this version's"],
    [
      '--keys NAME,NAME',
      "secrets with provider keys; by default those of the policy's reviewers, or of every provider",
    ],
    [
      '--container IMAGE',
      'an image that has the command-line agents; by default a public one they are installed into',
    ],
  ],
  run: async (args) => workflow(args),
};

function workflow(args: readonly string[]): number {
  const options = {
    server: { type: 'string' },
    policy: { type: 'string' },
    out: { type: 'string' },
    force: { type: 'boolean', default: false },
    uses: { type: 'string', default: `countersign-dev/countersign@v${VERSION}` },
    keys: { type: 'string' },
    container: { type: 'string' },
  } as const;
  const { values } = read(() => parseArgs({ args: [...args], options }));
  const { server, policy, out, force, uses: ref, container } = values;
  const keys = values.keys?.split(',').filter((name) => name !== '');
  const asked = {
    ref,
    ...(keys === undefined ? {} : { keys }),
    ...(container === undefined ? {} : { container }),
  };
  if (server !== undefined && (!/^https?:\/\/[^\s?#@]+$/.test(server) || !URL.canParse(server)))
    throw new Usage(
      `--server is not accepted: ${server}; give an http or https URL without credentials or a query`,
    );
  if (!/^[\w.-]+\/[\w./-]+@[\w./-]+$/.test(ref)) throw new Usage('--uses is OWNER/REPO@REF');
  if (container !== undefined && !/^[\w.:/@-]{1,300}$/.test(container))
    throw new Usage('--container is the name of an image');
  let files: WorkflowText[];
  if (policy === undefined) {
    if (server === undefined) throw new Usage('--server is needed: where runners reach this server');
    files = [{ path: WORKFLOW_PATH, text: read(() => workflowFile({ serverUrl: server, ...asked })) }];
  } else {
    const reading = parsePolicy(readFileSync(policy === '-' ? 0 : policy));
    if (!reading.ok) {
      const [first] = reading.errors;
      console.error(`${policy}:${first?.line ?? 1}: ${first?.message ?? 'not valid'}`);
      return 1;
    }
    files = read(() => workflowFiles(reading.policy, { serverUrl: server ?? null, ...asked }));
  }
  if (out !== undefined) return write(files, out, force);
  if (files.length === 0) console.error('this policy needs no workflow file: its pools are resident');
  for (const { path: name, text } of files) {
    if (files.length > 1) process.stdout.write(`# ---- ${name}\n`);
    process.stdout.write(text);
  }
  return 0;
}

/** Writes files below a checkout and says what it did to each; 1 where one was left alone. */
function write(files: readonly WorkflowText[], out: string, force: boolean): number {
  let left = 0;
  for (const { path: name, text } of files) {
    const file = path.join(out, name);
    const present = readIfThere(file);
    if (present === text) {
      console.log(`${name}: as it should be`);
      continue;
    }
    if (present !== null && !force) {
      console.error(`${name}: there already with other text; left alone, --force writes over it`);
      left++;
      continue;
    }
    mkdirSync(path.dirname(file), { recursive: true });
    writeFileSync(file, text);
    console.log(`${name}: written`);
  }
  return left === 0 ? 0 : 1;
}

function readIfThere(file: string): string | null {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
}
