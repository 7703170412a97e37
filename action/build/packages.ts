/** What bundling packages takes, for the Action and for the programs of tests. */
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Plugin } from 'esbuild';

/** Bundled CommonJS packages ask for Node's own modules by require, which ES modules do not have. */
export const requireBanner =
  "import{createRequire as createRequireOfNode}from'node:module';const require=createRequireOfNode(import.meta.url);";

const english = fileURLToPath(new URL('../../node_modules/zod/v4/locales/en.js', import.meta.url));

/**
 * Leaves zod's error messages in forty languages out: they are 370 kB of what every start loads,
 * and are kept only because a library imports the whole of zod. English is imported apart.
 */
export const englishOnly: Plugin = {
  name: 'zod-english-only',
  setup({ onResolve }) {
    onResolve({ filter: /[/]locales[/]index\.c?js$/ }, ({ resolveDir }) =>
      resolveDir.includes(`${path.sep}zod${path.sep}`) ? { path: english } : undefined,
    );
  },
};
