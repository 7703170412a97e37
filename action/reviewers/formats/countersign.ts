/** Our own JSON for commands: `{"version": 1, "count": n, "findings": […]}`, the whole of standard output (REV-1a). */
import * as z from 'zod';
import { severitySchema } from '../../../app/domain/ledger/row-fields.ts';
import type { RawFinding } from '../reviewer.ts';
import type { ParseContext, Parsed } from './format.ts';

const finding = z.strictObject({
  path: z.string().optional(),
  start_line: z.int().min(1),
  end_line: z.int().min(1).optional(),
  severity: severitySchema,
  lens: z.string().min(1).max(60).optional(),
  title: z.string().min(1),
  body: z.string().min(1),
  suggestion: z.string().nullable().optional(),
});
const document = z.strictObject({
  version: z.literal(1),
  count: z.int().min(0),
  findings: z.array(z.unknown()),
});

/** Reads a whole document; the good findings of a list with a malformed one are kept, the other is unplaced (REV-3). */
export function parseCountersign(stdout: string, context: ParseContext): Parsed {
  let json: unknown;
  try {
    json = JSON.parse(stdout);
  } catch {
    return { ok: false, detail: 'standard output is not one JSON document' };
  }
  const parsed = document.safeParse(json);
  if (!parsed.success)
    return {
      ok: false,
      detail: `not our JSON: ${parsed.error.issues[0]?.path.join('.') ?? ''} ${parsed.error.issues[0]?.message ?? ''}`,
    };
  const { count, findings: list } = parsed.data;
  if (count !== list.length) return { ok: false, detail: `count says ${count}, the list has ${list.length}` };
  const findings: RawFinding[] = [];
  const unplaced: string[] = [];
  for (const item of list) {
    const one = finding.safeParse(item);
    if (!one.success) {
      unplaced.push(`A malformed finding (${one.error.issues[0]?.path.join('.') || 'not an object'})`);
      continue;
    }
    const { path, start_line: startLine, end_line: end, ...rest } = one.data;
    const endLine = Math.max(startLine, end ?? startLine);
    if ((path !== undefined && !context.isReviewed(path)) || endLine > context.lines.length) {
      unplaced.push(rest.title);
      continue;
    }
    findings.push({
      startLine,
      endLine,
      severity: rest.severity,
      lens: rest.lens ?? context.lens,
      title: rest.title,
      body: rest.body,
      quote: context.lines.slice(startLine - 1, endLine).join('\n'),
      suggestion: rest.suggestion ?? null,
    });
  }
  return { ok: true, findings, unplaced, reported: list.length };
}
