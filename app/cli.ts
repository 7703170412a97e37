#!/usr/bin/env node
/**
 * `countersign <command>`. Exit codes: 0 done, 1 refused or failed, 2 cannot tell, 3 usage. Commands
 * print their answer on standard output and everything else on standard error.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { migrateDatabase } from '../db/migrate.ts';
import { type DataConfig, loadDataConfig } from './config.ts';
import { parseKeys } from './domain/ledger/keys-derive.ts';
import { parsePolicy } from './domain/policy.ts';
import { WORKFLOW_PATH, workflowFile } from './domain/workflow.ts';
import { Fault, Refusal } from './errors.ts';
import { rotateKeys } from './flow/rotate-keys.ts';
import { verifyAgainst } from './flow/verify-against.ts';
import { createLog } from './server/log.ts';
import { openPostgres, openSigner, openStore } from './server/store.ts';
import { VERSION } from './server/version.ts';
import { newKeys, rotateKeyFile } from './signing/keys.ts';
import { createSigner } from './signing/signer.ts';

/** A wrong call: the usage is shown and the exit code is 3. */
class Usage extends Error {
  override readonly name = 'Usage';
}

interface Entry {
  readonly usage: string;
  readonly what: string;
  /** Resolves to the exit code, or to null while the process goes on. */
  readonly run: (args: readonly string[]) => Promise<number | null>;
}

const commands: Readonly<Record<string, Entry>> = {
  start: {
    usage: 'start',
    what: 'serve the App from the environment until SIGTERM',
    run: async (args) => {
      none(args);
      // the server's parts take a second to load, and no other command needs them
      const { serve } = await import('./server/serve.ts');
      await serve();
      return null;
    },
  },
  migrate: {
    usage: 'migrate',
    what: "bring the database to this version's schema",
    run: async (args) => {
      none(args);
      const { url, embedded } = await openPostgres(loadDataConfig(), quiet());
      try {
        const { applied } = await migrateDatabase(url);
        console.log(`${applied} migration(s) applied`);
      } finally {
        await embedded?.stop();
      }
      return 0;
    },
  },
  workflow: {
    usage: 'workflow --server URL [--uses OWNER/REPO@REF] [--keys NAME,NAME]',
    what: `print the file for ${WORKFLOW_PATH}`,
    run: async (args) => {
      const options = {
        server: { type: 'string' },
        uses: { type: 'string', default: `countersign-dev/countersign@v${VERSION}` },
        keys: { type: 'string' },
      } as const;
      const { values } = read(() => parseArgs({ args: [...args], options }));
      if (values.server === undefined) throw new Usage('--server is needed: where runners reach this server');
      const keys = values.keys?.split(',').filter((name) => name !== '');
      if (!/^https?:\/\/[^\s?#@]+$/.test(values.server) || !URL.canParse(values.server))
        throw new Usage(
          `--server is not accepted: ${values.server}; give an http or https URL without credentials or a query`,
        );
      const of = { serverUrl: values.server, ref: values.uses };
      process.stdout.write(read(() => workflowFile(keys === undefined ? of : { ...of, keys })));
      return 0;
    },
  },
  keys: {
    usage: 'keys new --out FILE [--origin NAME] | keys list [--file FILE] | keys rotate [--file FILE]',
    what: 'make a key file (mode 0600), show what it can sign with, or sign under a new root from now on',
    run: keys,
  },
  'verify-run': {
    usage: 'verify-run RUN [--head HASH] [--note FILE]',
    what: 'verify the ledger of a run against a head that a check run shows: 0 intact, 1 tampered, 2 cannot tell (as without a head)',
    run: verify,
  },
  config: {
    usage: 'config check FILE',
    what: 'say whether a policy file is valid, and where it is not',
    run: async (args) => {
      const [action, file, ...rest] = args;
      if (action !== 'check' || file === undefined || rest.length > 0) throw new Usage('config check FILE');
      const reading = parsePolicy(readFileSync(file));
      if (reading.ok) {
        console.log(`${file}: valid`);
        for (const note of reading.notes) console.log(`${file}:${note.line}: ${note.message}`);
        return 0;
      }
      for (const error of reading.errors)
        console.log(`${file}:${error.line}: ${error.message}; accepted: ${error.accepted}`);
      return 1;
    },
  },
  version: {
    usage: 'version',
    what: 'print the version',
    run: async (args) => {
      none(args);
      console.log(VERSION);
      return 0;
    },
  },
};

async function keys(args: readonly string[]): Promise<number> {
  const options = { out: { type: 'string' }, origin: { type: 'string' }, file: { type: 'string' } } as const;
  const { values, positionals } = read(() => parseArgs({ args: [...args], options, allowPositionals: true }));
  if (positionals.length !== 1) throw new Usage('keys new, keys list or keys rotate');
  if (positionals[0] === 'new') {
    if (values.out === undefined) throw new Usage('--out is needed: keys are never printed');
    const text = `${JSON.stringify(newKeys(values.origin ?? 'countersign.local'), null, 2)}\n`;
    // never over a file that exists: it may hold the only keys of a ledger
    try {
      writeFileSync(values.out, text, { mode: 0o600, flag: 'wx' });
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
      throw new Refusal(
        'conflict',
        `${values.out} exists and may hold the only keys of a ledger: name another`,
      );
    }
    console.log(`keys written to ${values.out}; set COUNTERSIGN_KEYS to it`);
    return 0;
  }
  const config = loadDataConfig();
  const setting = values.file ?? config.keys ?? join(config.dataDir, 'keys.json');
  if (positionals[0] === 'rotate') return rotate(config, setting);
  if (positionals[0] !== 'list') throw new Usage('keys new, keys list or keys rotate');
  const file = parseKeys(setting.startsWith('{') ? setting : readFileSync(setting, 'utf8'));
  for (const kid of Object.keys(file.roots))
    console.log(`${kid}${kid === file.current ? ' (signs now)' : ''}`);
  console.log(createSigner(file).vkey);
  return 0;
}

async function rotate(config: DataConfig, path: string): Promise<number> {
  if (path.startsWith('{')) throw new Usage('the keys are given inline: put them into a file to rotate them');
  const store = await openStore(config, quiet());
  try {
    let chains = 0;
    const kid = await rotateKeyFile(path, async (signer, to) => {
      chains = await rotateKeys({ database: store.database, signer }, { from: signer.kid, to });
    });
    console.log(
      `${kid} signs from now on, recorded in ${chains} chain(s); restart every server with ${path}`,
    );
    return 0;
  } finally {
    await store.close();
  }
}

async function verify(args: readonly string[]): Promise<number> {
  const options = { head: { type: 'string' }, note: { type: 'string' } } as const;
  const { values, positionals } = read(() => parseArgs({ args: [...args], options, allowPositionals: true }));
  const [id, ...rest] = positionals;
  if (id === undefined || rest.length > 0) throw new Usage('verify-run RUN');
  const hash = values.head?.toLowerCase();
  if (hash !== undefined && !/^[0-9a-f]{64}$/.test(hash))
    throw new Usage('--head is a hash of 64 hex digits, as a check run shows it');
  const { note: file } = values;
  const note = file === undefined ? undefined : read(() => readFileSync(file, 'utf8'));
  const config = loadDataConfig();
  const store = await openStore(config, quiet());
  try {
    const signer = await openSigner(config, store.database, 'countersign.local', quiet());
    const { code, says } = await verifyAgainst({ database: store.database, signer }, id, {
      ...(hash === undefined ? {} : { hash }),
      ...(note === undefined ? {} : { note }),
    });
    for (const line of says) console.log(line);
    return code;
  } finally {
    await store.close();
  }
}

function none(args: readonly string[]): void {
  if (args.length > 0) throw new Usage('no arguments are taken');
}

function read<T>(parse: () => T): T {
  try {
    return parse();
  } catch (error) {
    throw new Usage((error as Error).message);
  }
}

function quiet() {
  return createLog('silent');
}

function usage(): string {
  const lines = Object.values(commands).map((one) => `  countersign ${one.usage}\n      ${one.what}`);
  return `usage:\n${lines.join('\n')}`;
}

async function main(): Promise<number | null> {
  const [name, ...args] = process.argv.slice(2);
  if (name === undefined || !Object.hasOwn(commands, name)) {
    console.error(usage());
    return name === 'help' || name === '--help' ? 0 : 3;
  }
  try {
    return (await commands[name]?.run(args)) ?? null;
  } catch (error) {
    if (error instanceof Usage) {
      console.error(`${error.message}\nusage: countersign ${commands[name]?.usage}`);
      return 3;
    }
    if (error instanceof Fault || error instanceof Refusal) console.error(`${error.code}: ${error.message}`);
    else console.error((error as Error).message);
    return 1;
  }
}

main().then((code) => {
  if (code !== null) process.exit(code);
});
