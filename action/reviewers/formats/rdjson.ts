/**
 * Reviewdog's `rdjson`: one `DiagnosticResult` (REV-1a). Its list has to be there: `{}` or a line of
 * `rdjsonl` would else pass for "nothing found". Both spellings of the protocol buffer's JSON are taken.
 */
import * as z from 'zod';
import type { Severity } from '../reviewer.ts';
import type { ParseContext, Parsed } from './format.ts';
import { collect, titleFrom } from './place.ts';

const position = z.looseObject({ line: z.int().min(0).optional(), column: z.int().min(0).optional() });
const range = z.looseObject({ start: position.optional(), end: position.optional() });
const severity = z.union([z.enum(['UNKNOWN_SEVERITY', 'ERROR', 'WARNING', 'INFO']), z.literal([0, 1, 2, 3])]);
const source = z.looseObject({ name: z.string().optional(), url: z.string().optional() });
const diagnostic = z.looseObject({
  message: z.string(),
  location: z.looseObject({ path: z.string().optional(), range: range.optional() }).optional(),
  severity: severity.optional(),
  source: source.optional(),
  code: z.looseObject({ value: z.string().optional(), url: z.string().optional() }).optional(),
  suggestions: z.array(z.looseObject({ range: range.optional(), text: z.string().optional() })).nullish(),
});
const document = z.looseObject({
  source: source.optional(),
  severity: severity.optional(),
  diagnostics: z.array(diagnostic),
});
type Diagnostic = z.infer<typeof diagnostic>;

/** Reads a whole rdjson document; anything else (JSON Lines, no list, a malformed diagnostic) is invalid. */
export function parseRdjson(stdout: string, context: ParseContext): Parsed {
  let json: unknown;
  try {
    json = JSON.parse(stdout);
  } catch {
    return { ok: false, detail: 'standard output is not one JSON document' };
  }
  const parsed = document.safeParse(json);
  if (!parsed.success) {
    const issue = parsed.error.issues[0];
    return { ok: false, detail: `not rdjson: ${issue?.path.join('.') ?? ''} ${issue?.message ?? ''}` };
  }
  const said = collect(context);
  for (const one of parsed.data.diagnostics) {
    const { start, end } = one.location?.range ?? {};
    const tool = one.source?.name ?? parsed.data.source?.name ?? null;
    const parts = [one.message, one.code?.url ?? one.source?.url ?? ''].map((part) => part.trim());
    said.add({
      path: one.location?.path ?? null,
      start: start?.line ?? null,
      end: lastLine(start?.line, end),
      severity: severityOf(one.severity, parsed.data.severity, context),
      title: titleFrom(one.code?.value ?? tool, one.message),
      body: parts.filter((part) => part !== '').join('\n\n') || (one.code?.value ?? 'no message'),
      suggestion: suggestionOf(one),
    });
  }
  return said.result();
}

/** The last line that holds something of a range: its end is exclusive, so column 1 of a line holds nothing of it. */
function lastLine(start: number | undefined, end: z.infer<typeof position> | undefined): number | null {
  if (start === undefined || end?.line === undefined) return null;
  return end.column === 1 && end.line > start ? end.line - 1 : end.line;
}

function severityOf(
  own: z.infer<typeof severity> | undefined,
  all: z.infer<typeof severity> | undefined,
  context: ParseContext,
): Severity {
  const known = [own, all].find((one) => one !== undefined && one !== 0 && one !== 'UNKNOWN_SEVERITY');
  if (known === 'ERROR' || known === 1) return context.severity.error;
  if (known === 'INFO' || known === 3) return context.severity.note;
  return context.severity.warning;
}

/** The one suggestion that replaces exactly the whole lines of the diagnostic; one with columns would be half a line. */
function suggestionOf(one: Diagnostic): string | null {
  const [only, ...more] = one.suggestions ?? [];
  const at = one.location?.range;
  if (only?.text === undefined || more.length > 0 || at?.start?.line === undefined) return null;
  const { start, end } = only.range ?? {};
  const whole = start?.column === undefined && end?.column === undefined && at.end?.column === undefined;
  const same = start?.line === at.start.line && (end?.line ?? start.line) === (at.end?.line ?? at.start.line);
  return whole && same ? only.text.replace(/\n$/, '') : null;
}
