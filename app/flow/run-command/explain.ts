/**
 * `/explain F`: a finding in full, from what is stored; no model is asked (CMD-3).
 *
 * Reads: verified rows, texts. Writes nothing. May fail with: `unknown_finding`.
 */
import { readTexts } from '../../../db/store/text.ts';
import type { Command } from '../../domain/command/arguments.ts';
import { explainReply } from '../../domain/command/explain.ts';
import { redactor } from '../../domain/redact.ts';
import type { Markdown } from '../../domain/summary/markdown.ts';
import { findingNamed } from './finding-named.ts';
import type { Given } from './given.ts';

/** Says what is known of a finding. */
export async function explain(
  given: Given,
  command: Extract<Command, { name: 'dismiss' | 'answer' | 'explain' }>,
): Promise<Markdown> {
  const { unit, judged, prefix } = given;
  const finding = findingNamed(given, command.finding);
  const { title, body, quote, suggestion, answer } = finding;
  const stored = await readTexts(
    unit.tx,
    [title, body, quote, suggestion, answer].flatMap((ref) => ref ?? []),
  );
  const { redact } = redactor();
  const texts = new Map([...stored].map(([ref, text]) => [ref, text === null ? null : redact(text)]));
  return explainReply(prefix, finding, judged.decision.blocking.includes(finding.number), texts);
}
