import { configDefaults, defineConfig } from 'vitest/config';
import { LongestFirst } from './test/helpers/longest-first.ts';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    // a browser of their own: npm run test:pages
    exclude: [...configDefaults.exclude, 'test/pages/**'],
    globalSetup: ['test/helpers/global-setup.ts'],
    setupFiles: ['test/helpers/light-spawn.ts'],
    // a limit that stops what hangs, far above what anything needs: a slow machine is not a failure
    testTimeout: 180_000,
    hookTimeout: 180_000,
    // a condition that is polled for has as long
    expect: { poll: { timeout: 120_000 } },
    pool: 'forks',
    // twice the processors of the least machine: a worker that waits for a process or for Postgres leaves none idle
    maxWorkers: 4,
    // the app is loaded once a worker instead of once a file, a tenth of the suite's time
    isolate: false,
    sequence: { sequencer: LongestFirst },
  },
});
