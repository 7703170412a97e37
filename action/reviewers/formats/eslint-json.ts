/**
 * ESLint's `--format json` (REV-1a): a list with an entry for every file it read, so that a list
 * without the reviewed file is no "nothing found". The counts that it prints have to agree.
 */
import * as z from 'zod';
import type { ParseContext, Parsed } from './format.ts';
import { collect, pathBelow, titleFrom } from './place.ts';

const message = z.looseObject({
  ruleId: z.string().nullish(),
  severity: z.literal([1, 2]),
  message: z.string(),
  // absent for what concerns the whole file, such as that it was ignored
  line: z.number().nullish(),
  endLine: z.number().nullish(),
  fatal: z.boolean().optional(),
});
const file = z.looseObject({
  filePath: z.string().min(1),
  messages: z.array(message),
  errorCount: z.int().min(0),
  warningCount: z.int().min(0),
});

/** Reads a whole list of ESLint results about the reviewed file; anything else is invalid. */
export function parseEslintJson(stdout: string, context: ParseContext): Parsed {
  let json: unknown;
  try {
    json = JSON.parse(stdout);
  } catch {
    return { ok: false, detail: 'standard output is not one JSON document' };
  }
  const parsed = z.array(file).safeParse(json);
  if (!parsed.success) {
    const issue = parsed.error.issues[0];
    return { ok: false, detail: `not ESLint JSON: ${issue?.path.join('.') ?? ''} ${issue?.message ?? ''}` };
  }
  if (!parsed.data.some((one) => context.isReviewed(pathBelow(one.filePath, context.dir))))
    return { ok: false, detail: 'the list has no entry of the reviewed file: it was not read' };
  const said = collect(context);
  for (const { filePath, messages, errorCount, warningCount } of parsed.data) {
    const errors = messages.filter((one) => one.severity === 2).length;
    if (errors !== errorCount || messages.length - errors !== warningCount)
      return { ok: false, detail: 'the counts of a file disagree with its messages' };
    for (const one of messages) {
      const rule = one.ruleId ?? (one.fatal === true ? 'not parsed' : null);
      said.add({
        path: filePath,
        start: Number.isInteger(one.line) ? (one.line ?? null) : null,
        end: Number.isInteger(one.endLine) ? (one.endLine ?? null) : null,
        severity: one.severity === 2 ? context.severity.error : context.severity.warning,
        title: titleFrom(rule, one.message),
        body: one.message.trim() || (rule ?? 'no message'),
      });
    }
  }
  return said.result();
}
