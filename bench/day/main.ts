/**
 * `npm run day -- [--scale S] [--seed N] [--hours H] [--dumps TIMES] [--side NAME…] [--whole] [--write]`: lives a day on each
 * side, in processes of their own on one server, and prints the tables; `--write` puts them into docs/simulation.md.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import pg from 'pg';
import { connect } from '../../db/client.ts';
import { startEmbedded } from '../../db/embedded.ts';
import { migrateDatabase } from '../../db/migrate.ts';
import { versionsOf } from '../bench.ts';
import { type Scheme, simulateDay } from './day.ts';
import { figuresOf } from './measure.ts';
import { type SideFigures, tablesOf } from './report.ts';
import { traceOf } from './trace.ts';

const PAGE = fileURLToPath(new URL('../../docs/simulation.md', import.meta.url));
const [FROM, TO] = ['<!-- figures of npm run day -->', '<!-- end of the figures -->'];

const { values } = parseArgs({
  options: {
    scale: { type: 'string', default: '1' },
    seed: { type: 'string', default: '1' },
    hours: { type: 'string', default: '24' },
    dumps: { type: 'string', default: '1' },
    side: { type: 'string', multiple: true, default: ['ours', 'fifo', 'alone'] },
    whole: { type: 'boolean', default: false },
    write: { type: 'boolean', default: false },
  },
});
const trace = traceOf({
  seed: Number(values.seed),
  scale: Number(values.scale),
  hours: Number(values.hours),
  dumps: Number(values.dumps),
});

if (process.env['DAY_DATABASE_URL'] !== undefined) await liveOne(values.side[0] as Scheme);
else await liveAll(values.side);

/** In a process of its own: one side on the database it was given; its figures go to the parent. */
async function liveOne(side: Scheme): Promise<void> {
  const url = process.env['DAY_DATABASE_URL'] ?? '';
  const database = await connect(url, { max: 4 });
  try {
    const outcome = await simulateDay({ url, database }, trace, side, {
      lean: !values.whole,
      progress: (line) => console.error(line),
    });
    const figures: SideFigures = figuresOf(side, trace, outcome);
    await new Promise<void>((done) => process.send?.(figures, () => done()));
  } finally {
    await database.close();
    process.disconnect();
  }
}

async function liveAll(sides: readonly string[]): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'countersign-day-'));
  const server = await startEmbedded({
    folder,
    durable: false,
    settings: { shared_buffers: '512MB', max_wal_size: '4GB', jit: 'off' },
  });
  try {
    const admin = new pg.Client({ connectionString: server.url() });
    await admin.connect();
    for (const side of sides) {
      await admin.query(`create database day_${side}`);
      await admin.query(`alter database day_${side} set countersign.throwaway = 'on'`);
      await migrateDatabase(server.url(`day_${side}`));
    }
    const { rows } = await admin.query<{ v: string }>(`select current_setting('server_version') as v`);
    await admin.end();
    const figures = await Promise.all(sides.map((side) => liveApart(side, server.url(`day_${side}`))));
    const versions = versionsOf(['pg', 'graphile-worker'], { postgres: rows[0]?.v ?? '' });
    const said = say(figures, versions);
    console.log(said);
    for (const one of figures)
      console.log(one.side, `${Math.round(one.tookMs / 1_000)} s`, one.counts, one.violations.slice(0, 10));
    if (values.write) {
      const page = readFileSync(PAGE, 'utf8');
      const [before] = page.split(FROM);
      const [, after] = page.split(TO);
      writeFileSync(PAGE, `${before}${FROM}\n${said}\n${TO}${after}`);
    }
    if (figures.some((one) => one.violations.length > 0)) process.exitCode = 1;
  } finally {
    await server.stop();
    rmSync(server.folder, { recursive: true, force: true });
    rmSync(folder, { recursive: true, force: true });
  }
}

function liveApart(side: string, url: string): Promise<SideFigures> {
  const { scale, seed, hours, dumps, whole } = values;
  const day = ['--scale', scale, '--seed', seed, '--hours', hours, '--dumps', dumps];
  const child: ChildProcess = fork(
    fileURLToPath(import.meta.url),
    [...day, '--side', side, ...(whole ? ['--whole'] : [])],
    { env: { ...process.env, DAY_DATABASE_URL: url } },
  );
  return new Promise((done, failed) => {
    let figures: SideFigures | undefined;
    child.once('message', (message) => {
      figures = message as SideFigures;
    });
    child.once('close', (code) => {
      if (figures === undefined) failed(new Error(`side ${side} ended with ${code}`));
      else done(figures);
    });
  });
}

function say(figures: readonly SideFigures[], versions: Readonly<Record<string, string>>): string {
  const repositories = trace.tenants.reduce((sum, one) => sum + one.repositories.length, 0);
  const took = Math.max(...figures.map((one) => one.tookMs)) / 60_000;
  return `\`npm run day -- --scale ${values.scale} --seed ${values.seed}${values.hours === '24' ? '' : ` --hours ${values.hours}`}${values.dumps === '1' ? '' : ` --dumps ${values.dumps}`}${values.whole ? ' --whole' : ''}\`: ${trace.tickets} tickets
of ${trace.arrivals.length} pull requests in ${repositories} repositories of ${trace.tenants.length} tenants; lived in ${took.toFixed(0)} minutes with ${Object.entries(
    versions,
  )
    .map(([name, version]) => `${name} ${version}`)
    .join(', ')}.

${tablesOf(figures)}`;
}
