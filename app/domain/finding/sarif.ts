/**
 * Findings as SARIF 2.1.0, the form that code scanners, editors and dashboards read. A result is a finding
 * that stands on the head, or one that a person dismissed and that is shown as suppressed; what was fixed,
 * withdrawn or never grounded is no result, and is counted beside. Pure.
 */
import { decodePath, showPath, type WirePath } from '../path.ts';
import type { ListedFinding, UnreviewedFile } from './listed.ts';

/** What the findings are of, and who says so. */
export interface SarifSource {
  readonly run: string;
  /** The repository's address on GitHub, without a trailing slash. */
  readonly repositoryUrl: string;
  /** The head that was read; null: none was read yet. */
  readonly head: string | null;
  readonly base: string | null;
  /** The gate's present verdict. */
  readonly verdict: string;
  /** The chain that was verified: how many rows, and the hash of the last one in lower-case hex. */
  readonly ledger: { readonly rows: number; readonly hash: string };
  readonly tool: { readonly version: string; readonly url: string };
}

type Severity = ListedFinding['severity'];

const LEVELS: Readonly<Record<Severity, 'error' | 'warning' | 'note'>> = {
  critical: 'error',
  high: 'error',
  medium: 'warning',
  low: 'note',
  info: 'note',
};
/** The middle of each severity's band, as code scanners read `security-severity`. */
const SCORES: Readonly<Record<Severity, string>> = {
  critical: '9.5',
  high: '8.0',
  medium: '5.5',
  low: '2.5',
  info: '0.5',
};
/** The key of our fingerprint: the number rises when another way of making it would give the same finding another one. */
const FINGERPRINT = 'countersign/v1';
const SCHEMA = 'https://json.schemastore.org/sarif-2.1.0.json';

/** Where the paths of a location start: the head's tree, or the base's for what was deleted. */
const ROOTS = { head: '%SRCROOT%', base: '%BASEROOT%' } as const;

/** The log with one run. */
export function sarifOf(
  source: SarifSource,
  findings: readonly ListedFinding[],
  unreviewed: readonly UnreviewedFile[],
): object {
  const shown = findings.filter(
    ({ state }) => state === 'open' || state === 'answered' || state === 'dismissed',
  );
  const rules = rulesOf(shown);
  const index = new Map(rules.map(({ id }, i) => [id, i]));
  const missing = unreviewed.filter(({ standing }) => standing !== 'unreviewed');
  return {
    $schema: SCHEMA,
    version: '2.1.0',
    runs: [
      {
        tool: {
          driver: {
            name: 'Countersign',
            version: source.tool.version,
            informationUri: source.tool.url,
            rules,
          },
        },
        automationDetails: { id: `countersign/${source.run}` },
        // whoever reads this must not take a file that nobody read for a file without findings
        invocations: [
          {
            executionSuccessful: source.head !== null && missing.length === 0,
            toolExecutionNotifications: unreviewed.map(notificationOf),
          },
        ],
        ...(source.head === null
          ? {}
          : {
              versionControlProvenance: [
                {
                  repositoryUri: source.repositoryUrl,
                  revisionId: source.head,
                  mappedTo: { uriBaseId: ROOTS.head },
                },
              ],
            }),
        originalUriBaseIds: {
          [ROOTS.head]: { description: { text: 'The root of the repository at the head.' } },
          [ROOTS.base]: { description: { text: 'The root of the repository at the merge base.' } },
        },
        columnKind: 'utf16CodeUnits',
        results: shown.map((one) => resultOf(one, index.get(ruleIdOf(one)) ?? -1)),
        properties: {
          run: source.run,
          head: source.head,
          base: source.base,
          verdict: source.verdict,
          ledger: source.ledger,
          leftOut: Object.fromEntries(
            (['fixed', 'withdrawn', 'ungrounded'] as const).map((state) => [
              state,
              findings.filter((one) => one.state === state).length,
            ]),
          ),
        },
      },
    ],
  };
}

/** A lens has one rule a severity: readers take the score of a rule, not of a result. */
const ruleIdOf = ({ lens, severity }: Pick<ListedFinding, 'lens' | 'severity'>): string =>
  `${lens}/${severity}`;

function rulesOf(findings: readonly ListedFinding[]): { id: string }[] {
  const kinds = new Map(findings.map((one) => [ruleIdOf(one), one]));
  return [...kinds]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([id, { lens, severity }]) => ({
      id,
      name: id,
      shortDescription: { text: `A finding of severity ${severity} under the lens ${lens}` },
      defaultConfiguration: { level: LEVELS[severity] },
      properties: {
        tags: [lens],
        ...(lens === 'security' ? { 'security-severity': SCORES[severity] } : {}),
        'problem.severity': LEVELS[severity] === 'note' ? 'recommendation' : LEVELS[severity],
      },
    }));
}

function resultOf(one: ListedFinding, ruleIndex: number): object {
  const region = {
    startLine: Math.max(1, one.startLine),
    endLine: Math.max(1, one.startLine, one.endLine),
    ...(one.quote === null ? {} : { snippet: { text: one.quote } }),
  };
  const artifactLocation = locationOf(one.path, one.side);
  return {
    ruleId: ruleIdOf(one),
    ruleIndex,
    level: LEVELS[one.severity],
    message: { text: messageOf(one) },
    locations: [{ physicalLocation: { artifactLocation, region } }],
    partialFingerprints: { [FINGERPRINT]: one.fingerprint },
    ...(one.state === 'dismissed'
      ? {
          suppressions: [
            { kind: 'external', status: 'accepted', justification: one.ended?.text ?? 'its text was erased' },
          ],
        }
      : { suppressions: [] }),
    ...(one.suggestion === null || one.side !== 'head' || one.state === 'dismissed'
      ? {}
      : {
          fixes: [
            {
              artifactChanges: [
                {
                  artifactLocation,
                  replacements: [
                    {
                      deletedRegion: { startLine: region.startLine, endLine: region.endLine },
                      insertedContent: { text: one.suggestion },
                    },
                  ],
                },
              ],
            },
          ],
        }),
    properties: {
      finding: `F${one.number}`,
      severity: one.severity,
      state: one.state,
      blocks: one.blocks,
      reviewer: one.reviewer,
      blob: one.blob,
      ...(one.answer === null ? {} : { answer: one.answer }),
    },
  };
}

function notificationOf({ path, standing, why }: UnreviewedFile): object {
  const reason = why === null ? '' : ` (${why})`;
  const text = {
    pending: `${showPath(path)} is not reviewed yet${reason}`,
    unavailable: `${showPath(path)} could not be reviewed${reason}`,
    unreviewed: `${showPath(path)} is not reviewed, as the policy has it${reason}`,
  }[standing];
  return {
    level: standing === 'unreviewed' ? 'note' : 'error',
    message: { text: literal(text) },
    locations: [{ physicalLocation: { artifactLocation: locationOf(path, 'head') } }],
  };
}

function messageOf({ title, body }: ListedFinding): string {
  if (title === null && body === null) return 'The text of this finding was erased.';
  return [title, body]
    .filter((part) => part !== null && part !== '')
    .map((part) => literal(part ?? ''))
    .join('\n\n');
}

/** A reader makes links of brackets in a message, and this text is a model's about an attacker's file: none of them is ours. */
function literal(text: string): string {
  return text.replace(/[[\]\\]/g, '\\$&');
}

function locationOf(path: WirePath, side: 'head' | 'base'): { uri: string; uriBaseId: string } {
  return { uri: uriOf(path), uriBaseId: ROOTS[side] };
}

/** A path's bytes as a relative reference: what is not plain is percent-encoded, so that no name is a scheme or a query. */
function uriOf(path: WirePath): string {
  return Array.from(decodePath(path), (byte) => {
    const character = String.fromCharCode(byte);
    return /[A-Za-z0-9._~/-]/.test(character)
      ? character
      : `%${byte.toString(16).toUpperCase().padStart(2, '0')}`;
  }).join('');
}

/** JSON that is plain ASCII: what terminals or editors obey, hide or reorder is an escape in it, and the value is the same. */
export function asciiJson(value: unknown): string {
  return JSON.stringify(value, null, 2).replace(
    /[\u007f-\uffff]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}
