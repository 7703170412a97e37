/**
 * A model's answer (REV-3): one strict JSON document or nothing. A verdict is read from here and from
 * no prose (REV-9); the nonce proves that the answer belongs to this ticket and not to a text in it.
 */
import * as z from 'zod';
import { severitySchema } from '../../app/domain/ledger/row-fields.ts';
import { pathKey, showPath, type WirePath } from '../../app/domain/path.ts';
import { unmark } from './prompt/quoted.ts';
import type { ClauseAnswer, EarlierAnswer, RawFinding } from './reviewer.ts';

const finding = z.strictObject({
  path: z.string(),
  start_line: z.int().min(1),
  end_line: z.int().min(1),
  severity: severitySchema,
  lens: z.string(),
  title: z.string(),
  body: z.string(),
  quote: z.string(),
  suggestion: z.string().nullable(),
});
const rest = {
  nonce: z.string(),
  verdict: z.enum(['approve', 'findings', 'cannot_review']),
  count: z.int().min(0),
  answers: z.array(
    z.strictObject({
      finding: z.int(),
      proposal: z.enum(['fixed', 'persists', 'withdrawn']),
      reason: z.string(),
    }),
  ),
  clauses: z.array(
    z.strictObject({
      clause: z.string(),
      status: z.enum(['met', 'unmet', 'unknown']),
      reason: z.string(),
    }),
  ),
};

/** The schema a provider is asked to answer in: every key required, as strict modes want it. */
export const askedSchema = z.strictObject({ ...rest, findings: z.array(finding) });

/** The schema in words, for those that cannot be given it as one. */
export function schemaText(): string {
  return JSON.stringify(z.toJSONSchema(askedSchema));
}

/** The same with findings one by one, so that a malformed one does not take the others with it. */
const readSchema = z.strictObject({ ...rest, findings: z.array(z.unknown()) });

/** What was read, or why the session is invalid; `reason` never quotes the model's text. */
export type ReadAnswer =
  | Readonly<{
      ok: true;
      verdict: 'approve' | 'findings' | 'cannot_review';
      findings: readonly RawFinding[];
      unplaced: readonly string[];
      answers: readonly EarlierAnswer[];
      clauses: readonly ClauseAnswer[];
    }>
  | Readonly<{ ok: false; end: 'bad_output' | 'empty_output' | 'truncated'; reason: string }>;

/**
 * Reads an answer to the ticket with this nonce about this path, given why the model stopped. `labels`
 * are those of the clauses that were shown, in order: words on other clauses are no words.
 */
export function readAnswer(
  text: string,
  of: {
    nonce: string;
    path: WirePath;
    finishReason: string;
    lenses: readonly string[];
    labels?: readonly string[];
  },
): ReadAnswer {
  const bad = (reason: string): ReadAnswer => ({ ok: false, end: 'bad_output', reason });
  if (of.finishReason === 'length') return { ok: false, end: 'truncated', reason: 'the answer was cut off' };
  if (of.finishReason === 'tool-calls') return bad('the model asked for a tool, and there is none');
  if (text.trim() === '') return { ok: false, end: 'empty_output', reason: 'the answer was empty' };
  if (of.finishReason !== 'stop') return bad(`the model stopped with reason ${of.finishReason}`);
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    return bad('the answer was not exactly one JSON document');
  }
  const parsed = readSchema.safeParse(json);
  if (!parsed.success) {
    const issue = parsed.error.issues[0];
    return bad(
      `the answer does not fit the schema at ${issue?.path.join('.') || 'its top'} (${issue?.code})`,
    );
  }
  const answer = parsed.data;
  if (answer.nonce !== of.nonce) return bad('the nonce is not the one of this request');
  if (answer.count !== answer.findings.length)
    return bad(`count says ${answer.count}, the list has ${answer.findings.length}`);
  if (answer.verdict === 'approve' && answer.findings.length > 0)
    return bad('the verdict is approve and there are findings');
  if (answer.verdict === 'findings' && answer.findings.length === 0)
    return bad('the verdict is findings and there are none');
  const findings: RawFinding[] = [];
  const unplaced: string[] = [];
  for (const item of answer.findings) {
    const one = finding.safeParse(item);
    const wrong = one.success ? misplaced(one.data, of.path) : 'malformed';
    if (!one.success || wrong !== null) {
      unplaced.push(`${wrong}: ${titleOf(item)}`);
      continue;
    }
    const { path: _, start_line, end_line, ...said } = one.data;
    // a lens of its own invention would name a finding apart from every other
    const lens = of.lenses.includes(said.lens) ? said.lens : (of.lenses[0] ?? 'correctness');
    findings.push({
      ...said,
      lens,
      quote: unmark(said.quote),
      startLine: start_line,
      endLine: Math.max(start_line, end_line),
    });
  }
  if (answer.findings.length > 0 && findings.length === 0) return bad('every finding was malformed');
  const clauses = answer.clauses.flatMap(({ clause, status }): ClauseAnswer[] => {
    const index = (of.labels ?? []).indexOf(clause.trim());
    return index < 0 || status === 'unknown' ? [] : [{ index, status }];
  });
  return { ok: true, verdict: answer.verdict, findings, unplaced, answers: answer.answers, clauses };
}

function misplaced(one: z.infer<typeof finding>, path: WirePath): string | null {
  const named = unmark(one.path).replace(/^\.\//, '');
  if (named !== showPath(path) && named !== pathKey(path)) return 'for another file';
  return one.title.trim() === '' || one.body.trim() === '' ? 'without title or body' : null;
}

function titleOf(item: unknown): string {
  const title = z.looseObject({ title: z.string() }).safeParse(item);
  return title.success && title.data.title.trim() !== '' ? title.data.title : 'a finding without a title';
}
