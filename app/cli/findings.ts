/** `countersign findings`: what a run found, for other programs (SARIF, JSON) or for a person; verified rows only. */
import { parseArgs } from 'node:util';
import { loadDataConfig, loadServerUrl } from '../config.ts';
import { asciiJson, sarifOf } from '../domain/finding/sarif.ts';
import { showPath } from '../domain/path.ts';
import { Fault } from '../errors.ts';
import { listFindings, type RunFindings } from '../flow/list-findings.ts';
import { openReadOnly } from '../server/read-only.ts';
import { VERSION } from '../server/version.ts';
import { type Entry, read, Usage } from './entry.ts';
import { printLines } from './print.ts';

/** The command `findings`. */
export const findingsCommand: Entry = {
  usage: ['findings RUN [--sarif | --json]'],
  what: 'print the findings of a run, and which files were not reviewed; of rows that verify only, and nothing is written',
  options: [
    [
      '--sarif',
      'SARIF 2.1.0, for code scanners and editors: what stands, and what was dismissed as suppressed; severities as levels and security-severity',
    ],
    ['--json', 'one JSON object with every finding in its one state'],
  ],
  exits: [
    [0, 'printed, whatever was found'],
    [1, 'refused: there is no such run, or its rows do not verify'],
    [2, 'cannot tell: a key of its rows is not here'],
    [3, 'a wrong call'],
  ],
  run: findings,
};

const HOME = 'https://github.com/countersign-dev/countersign';

async function findings(args: readonly string[]): Promise<number> {
  const options = {
    sarif: { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
  } as const;
  const { values, positionals } = read(() => parseArgs({ args: [...args], options, allowPositionals: true }));
  const [id, ...rest] = positionals;
  if (id === undefined || rest.length > 0) throw new Usage('one run, by its id');
  if (values.sarif && values.json) throw new Usage('--sarif or --json, not both');
  const serverUrl = values.sarif ? loadServerUrl() : '';
  const { database, signer, close } = await openReadOnly(loadDataConfig());
  try {
    const found = await listFindings({ database, signer }, id);
    if (values.sarif) console.log(asciiJson(sarif(found, serverUrl)));
    else if (values.json) console.log(asciiJson({ version: 1, kind: 'findings', tool: VERSION, ...found }));
    else printLines(textOf(found));
    return 0;
  } catch (error) {
    if (!(error instanceof Fault && error.code === 'ledger_unverifiable')) throw error;
    console.error(`${error.code}: ${error.message}`);
    return 2;
  } finally {
    await close();
  }
}

function sarif(found: RunFindings, serverUrl: string): object {
  const { repository } = found;
  const address = repository === null ? '' : `/${repository.owner}/${repository.name}`;
  return sarifOf(
    { ...found, repositoryUrl: `${serverUrl}${address}`, tool: { version: VERSION, url: HOME } },
    found.findings,
    found.unreviewed,
  );
}

function textOf({ findings: all, unreviewed, verdict, head, ledger }: RunFindings): string[] {
  return [
    `${verdict} on ${head ?? 'no head that was read'}: ${all.length} finding(s), ${unreviewed.length} file(s) not reviewed; ${ledger.rows} rows verified, head ${ledger.hash}`,
    ...all.map(
      (one) =>
        `F${one.number} ${one.severity} ${one.lens} ${one.state}${one.blocks ? ', blocks' : ''} ${showPath(one.path)}:${one.startLine} ${one.title ?? '(erased)'}`,
    ),
    ...unreviewed.map(
      ({ path, standing, why }) =>
        `not reviewed: ${showPath(path)} (${why === null ? standing : `${standing}, ${why}`})`,
    ),
  ];
}
