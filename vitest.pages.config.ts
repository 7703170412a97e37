/** `npm run test:pages`: the pages in a real browser, apart from `npm test`, which needs none. */
import { defineConfig } from 'vitest/config';
import config from './vitest.config.ts';

export default defineConfig({
  ...config,
  test: { ...config.test, include: ['test/pages/**/*.test.ts'], exclude: [] },
});
