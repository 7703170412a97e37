/** One Postgres for the whole test run: a throw-away embedded one, or TEST_DATABASE_URL's. Files clone its template. */
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import type { TestProject } from 'vitest/node';
import { type Embedded, startEmbedded } from '../../db/embedded.ts';
import { migrateDatabase } from '../../db/migrate.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** Connection string of the server's maintenance database. */
    readonly postgresUrl: string;
    /** Name of the migrated template that `testDatabase` clones. */
    readonly postgresTemplate: string;
  }
}

/** Starts the server and migrates the template; the returned function undoes both. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const outside = process.env['TEST_DATABASE_URL'];
  let embedded: Embedded | undefined;
  let folder: string | undefined;
  if (outside === undefined || outside === '') {
    folder = mkdtempSync(join(tmpdir(), 'countersign-test-'));
    embedded = await startEmbedded({ folder, durable: false });
  }
  const url = embedded?.url() ?? String(outside);
  const template = `template_${randomBytes(6).toString('hex')}`;
  const admin = new pg.Client({ connectionString: url });
  await admin.connect();
  await admin.query(`create database ${template}`);
  await migrateDatabase(withDatabase(url, template));
  // a template that somebody is connected to cannot be cloned
  await admin.query(`alter database ${template} allow_connections false`);
  await admin.end();
  project.provide('postgresUrl', url);
  project.provide('postgresTemplate', template);
  return async () => {
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
