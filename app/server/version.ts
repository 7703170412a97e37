/** This version, from the nearest package.json: from the sources and from dist/ alike. */
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import * as z from 'zod';

function read(): string {
  for (let folder = dirname(fileURLToPath(import.meta.url)); ; folder = dirname(folder)) {
    const path = join(folder, 'package.json');
    if (existsSync(path))
      return z.object({ version: z.string() }).parse(JSON.parse(readFileSync(path, 'utf8'))).version;
    if (folder === dirname(folder)) return '0.0.0';
  }
}

/** The version of this installation. */
export const VERSION = read();
