/** SARIF 2.1.0 as findings (REV-1a). The text is a program's that read an attacker's file: parsed strictly where we use it. */
import { isAbsolute, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import * as z from 'zod';
import type { RawFinding, Severity } from '../reviewer.ts';
import type { ParseContext, Parsed } from './format.ts';

const message = z.looseObject({ text: z.string().optional(), markdown: z.string().optional() });
const rule = z.looseObject({
  id: z.string(),
  name: z.string().optional(),
  helpUri: z.string().optional(),
  shortDescription: message.optional(),
  defaultConfiguration: z.looseObject({ level: z.string().optional() }).optional(),
  properties: z.looseObject({ 'security-severity': z.union([z.string(), z.number()]).optional() }).optional(),
});
const component = z.looseObject({ name: z.string(), rules: z.array(rule).optional() });
const line = z.int().min(1);
const result = z.looseObject({
  ruleId: z.string().optional(),
  ruleIndex: z.int().optional(),
  kind: z.string().optional(),
  level: z.enum(['none', 'note', 'warning', 'error']).optional(),
  message,
  suppressions: z.array(z.looseObject({ status: z.string().optional() })).optional(),
  locations: z
    .array(
      z.looseObject({
        physicalLocation: z
          .looseObject({
            artifactLocation: z.looseObject({ uri: z.string().optional() }).optional(),
            region: z.looseObject({ startLine: line.optional(), endLine: line.optional() }).optional(),
          })
          .optional(),
      }),
    )
    .optional(),
});
const sarif = z.looseObject({
  version: z.literal('2.1.0'),
  runs: z
    .array(
      z.looseObject({
        tool: z.looseObject({ driver: component, extensions: z.array(component).optional() }),
        invocations: z.array(z.looseObject({ executionSuccessful: z.boolean() })).optional(),
        results: z.array(result),
      }),
    )
    .min(1),
});
type Result = z.infer<typeof result>;
type Rule = z.infer<typeof rule>;

/** Reads a whole SARIF document; anything else (a second document, no results list) is invalid. */
export function parseSarif(stdout: string, context: ParseContext): Parsed {
  let json: unknown;
  try {
    json = JSON.parse(stdout);
  } catch {
    return { ok: false, detail: 'standard output is not one JSON document' };
  }
  const parsed = sarif.safeParse(json);
  if (!parsed.success)
    return {
      ok: false,
      detail: `not SARIF 2.1.0: ${parsed.error.issues[0]?.path.join('.') ?? ''} ${parsed.error.issues[0]?.message ?? ''}`,
    };
  const findings: RawFinding[] = [];
  const unplaced: string[] = [];
  let reported = 0;
  for (const run of parsed.data.runs) {
    if (run.invocations?.some((invocation) => !invocation.executionSuccessful) === true)
      return { ok: false, detail: `${run.tool.driver.name} says that it did not run to its end` };
    const rules = [run.tool.driver, ...(run.tool.extensions ?? [])].flatMap((part) => part.rules ?? []);
    for (const item of run.results) {
      if (item.kind !== undefined && item.kind !== 'fail') continue;
      if (isSuppressed(item)) continue;
      reported++;
      const of = rules.find((r) => r.id === item.ruleId) ?? run.tool.driver.rules?.[item.ruleIndex ?? -1];
      const title = titleOf(item, of, run.tool.driver.name);
      const place = item.locations?.[0]?.physicalLocation;
      const uri = place?.artifactLocation?.uri;
      const start = place?.region?.startLine;
      if (uri === undefined || !context.isReviewed(pathOf(uri, context.dir)) || start === undefined) {
        unplaced.push(title);
        continue;
      }
      if (start > context.lines.length) {
        unplaced.push(`${title} (line ${start}, the file has ${context.lines.length})`);
        continue;
      }
      const endLine = Math.min(Math.max(start, place?.region?.endLine ?? start), context.lines.length);
      findings.push({
        startLine: start,
        endLine,
        severity: severityOf(item, of, context),
        lens: context.lens,
        title,
        body: bodyOf(item, of),
        quote: context.lines.slice(start - 1, endLine).join('\n'),
        suggestion: null,
      });
    }
  }
  return { ok: true, findings, unplaced, reported };
}

function isSuppressed(item: Result): boolean {
  const all = item.suppressions ?? [];
  return all.length > 0 && all.every((s) => s.status === undefined || s.status === 'accepted');
}

/** The path a location names below the working directory; a path outside gives one that matches nothing. */
function pathOf(uri: string, dir: string): string {
  let path = uri;
  try {
    path = uri.startsWith('file:') ? fileURLToPath(uri) : uri;
    if (!isAbsolute(path) && path.includes('%')) path = decodeURIComponent(path);
  } catch {
    // not percent-encoded after all: the name itself
  }
  return isAbsolute(path) ? relative(dir, path) : path.replace(/^(?:\.\/)+/, '');
}

function severityOf(item: Result, of: Rule | undefined, context: ParseContext): Severity {
  const score = Number(of?.properties?.['security-severity'] ?? Number.NaN);
  if (score >= 9) return 'critical';
  if (score >= 7) return 'high';
  const level = item.level ?? of?.defaultConfiguration?.level ?? 'warning';
  if (level === 'error') return context.severity.error;
  if (level === 'note') return context.severity.note;
  return level === 'none' ? 'info' : context.severity.warning;
}

function titleOf(item: Result, of: Rule | undefined, tool: string): string {
  const name = item.ruleId ?? of?.id ?? tool;
  const said = (item.message.text ?? of?.shortDescription?.text ?? '').split('\n')[0]?.trim() ?? '';
  return said === '' ? name : `${name}: ${said}`;
}

function bodyOf(item: Result, of: Rule | undefined): string {
  const said = item.message.text ?? item.message.markdown ?? '';
  const about = of?.shortDescription?.text ?? '';
  const parts = [said, about === said ? '' : about, of?.helpUri ?? ''].map((part) => part.trim());
  return parts.filter((part) => part !== '').join('\n\n') || (item.ruleId ?? 'no message');
}
