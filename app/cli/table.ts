/** The commands of `countersign`, by name, in the order in which help lists them. */
import { migrateDatabase } from '../../db/migrate.ts';
import { loadDataConfig } from '../config.ts';
import { openPostgres } from '../server/store.ts';
import { VERSION } from '../server/version.ts';
import { configCommand } from './config.ts';
import { type Entry, none, quiet } from './entry.ts';
import { findingsCommand } from './findings.ts';
import { keysCommand } from './keys.ts';
import { operatorCommand } from './operator.ts';
import { poolCommand } from './pool.ts';
import { runnerCommand } from './runner.ts';
import { settingsCommand } from './settings.ts';
import { simulateCommand } from './simulate.ts';
import { verifyRunCommand } from './verify-run.ts';
import { workflowCommand } from './workflow.ts';

/** Every command there is. */
export const commands: Readonly<Record<string, Entry>> = {
  start: {
    usage: ['start'],
    what: 'serve the App from the environment until SIGTERM',
    run: async (args) => {
      none(args);
      // the server's parts take a second to load, and no other command needs them
      const { serve } = await import('../server/serve.ts');
      await serve();
      return null;
    },
  },
  migrate: {
    usage: ['migrate'],
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
  workflow: workflowCommand,
  config: configCommand,
  simulate: simulateCommand,
  findings: findingsCommand,
  'verify-run': verifyRunCommand,
  keys: keysCommand,
  settings: settingsCommand,
  operator: operatorCommand,
  pool: poolCommand,
  runner: runnerCommand,
  version: {
    usage: ['version'],
    what: 'print the version',
    run: async (args) => {
      none(args);
      console.log(VERSION);
      return 0;
    },
  },
};
