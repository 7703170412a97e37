/** A real browser for tests of pages: Debian's chromium by playwright-core. */
import { accessSync, constants } from 'node:fs';
import { type Browser, chromium } from 'playwright-core';

/** Where it is looked for. */
const PATH = process.env['CHROMIUM'] ?? '/usr/bin/chromium';

/** Why there is none; null: there is one. */
export function browserMissing(): string | null {
  try {
    accessSync(PATH, constants.X_OK);
    return null;
  } catch {
    return `no chromium at ${PATH}: install Debian's package chromium, or set CHROMIUM to its path`;
  }
}

/** Starts it; close it. */
export function startBrowser(): Promise<Browser> {
  return chromium.launch({
    executablePath: PATH,
    args: [
      '--no-sandbox',
      '--disable-gpu',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
    ],
  });
}
