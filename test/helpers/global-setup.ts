/**
 * One Postgres for the whole test run: a throw-away embedded one, or TEST_DATABASE_URL's. Files clone
 * its template. And the programs that tests start, bundled.
 */
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import type { TestProject } from 'vitest/node';
import { type Embedded, startEmbedded } from '../../db/embedded.ts';
import { migrateDatabase } from '../../db/migrate.ts';
import { buildPrograms } from './programs.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** Connection string of the server's maintenance database. */
    readonly postgresUrl: string;
    /** Name of the migrated template that `testDatabase` clones. */
    readonly postgresTemplate: string;
    /** Folder of the bundled programs that tests start as processes, or why they could not be bundled. */
    readonly programs: { readonly folder: string; readonly failure: string | null };
  }
}

/** Starts the server, migrates the template and bundles the programs; the returned function undoes all three. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const programs = await buildPrograms();
  project.provide('programs', { folder: programs.folder, failure: programs.failure });
  const outside = process.env['TEST_DATABASE_URL'];
  let embedded: Embedded | undefined;
  let folder: string | undefined;
  if (outside === undefined || outside === '') {
    folder = mkdtempSync(join(tmpdir(), 'countersign-test-'));
    embedded = await startEmbedded({ folder, durable: false, settings: { autovacuum: 'off', jit: 'off' } });
  }
  const url = embedded?.url() ?? String(outside);
  const template = `template_${randomBytes(6).toString('hex')}`;
  const admin = new pg.Client({ connectionString: url });
  await admin.connect();
  if (embedded !== undefined) {
    // the password is hashed anew with one round instead of 4096: both ends pay them for every connection
    await admin.query('set scram_iterations = 1');
    await admin.query(`alter user postgres password ${admin.escapeLiteral(new URL(url).password)}`);
  }
  await admin.query(`create database ${template}`);
  await migrateDatabase(withDatabase(url, template));
  // a template that somebody is connected to cannot be cloned
  await admin.query(`alter database ${template} allow_connections false`);
  await admin.end();
  project.provide('postgresUrl', url);
  project.provide('postgresTemplate', template);
  return async () => {
    programs.remove();
    if (embedded !== undefined) {
      await embedded.stop();
      rmSync(embedded.folder, { recursive: true, force: true });
      if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
      return;
    }
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    await client.query(`drop database if exists ${template} with (force)`);
    await client.end();
  };
}

function withDatabase(url: string, database: string): string {
  const changed = new URL(url);
  changed.pathname = `/${database}`;
  return changed.href;
}
