/**
 * Text that speaks to a reviewer instead of a reader (REV-9, attack 30). Where a change brings such
 * text no model's word on it is enough: the review calls for a person. A list of what is plain, no
 * judge of meaning: what it does not know is left to the nonce, the schema and the second reviewer.
 */
import { showPath } from '../../../app/domain/path.ts';
import type { LeasedTicket } from '../../../app/protocol/runner.ts';
import type { ChangedFile } from '../../objects/diff.ts';
import type { Neighbour } from '../../objects/neighbours.ts';
import type { ReviewText } from '../reviewer.ts';

/** Up to eight characters that are no letters: spaces, line breaks with comment signs, punctuation. */
const _ = String.raw`[\W_]{1,8}`;
const pattern = (source: string) => new RegExp(source.replaceAll(' ', _), 'iu');

const PHRASES: readonly RegExp[] = [
  pattern(
    String.raw`\b(?:ignore|disregard|forget|override) (?:(?:all|any|the|every|your|my|these|of|previous|prior|earlier|preceding|above|foregoing|former|system) ){1,5}(?:\w{1,20} ){0,1}(?:instructions?|prompts?|rules|directions|guidelines)\b`,
  ),
  pattern(
    String.raw`\b(?:(?:do not|don t|never) (?:report|raise|flag|mention) (?:any |the |this |these )?(?:\w{1,20} )?(?:findings?|issues?|problems?|bugs?|vulnerabilit(?:y|ies)|defects?)|(?:report|raise) (?:no|zero|0) findings)\b`,
  ),
  pattern(
    String.raw`\b(?:answer|respond|reply) (?:only )?with (?:only )?(?:the |a )?(?:verdict )?(?:of )?(?:approved?|approval)\b`,
  ),
  pattern(
    String.raw`\b(?:note|notice|message|instructions?|attention) (?:to|for) (?:the |any |all |every )?(?:ai|llm|automated|language|large language|code review|review) (?:code )?(?:reviewers?|models?|agents?|assistants?|bots?)\b`,
  ),
  pattern(
    String.raw`\byou are (?:now |no longer )(?:a |an |the )?(?:\w{1,20} ){0,2}(?:reviewer|assistant|model|agent|mode)\b`,
  ),
  // a verdict of our own schema, ready to be copied
  /["']verdict["']\s*:\s*["']approve["']/i,
  // the frame of a prompt
  /<<<\s*DATA\b|>>>\s*END\b/,
];

/** Controls that reorder what a person sees, and tag characters outside of a flag's emoji. */
const HIDDEN = /[\u202a-\u202e\u2066-\u2069]|(?<![\u{1f3f4}\u{e0020}-\u{e007f}])[\u{e0020}-\u{e007e}]/u;
const INVISIBLE = /[\u00ad\u200b-\u200f\u2060-\u2064\ufeff\u{e0000}-\u{e0fff}]/gu;
/** Text looked at, of each piece; a longer one is looked at in parts that overlap. */
const WINDOW = 20_000;
const LAP = 400;

/** Whether one of these texts tries to steer who reviews them. */
export function steers(texts: Iterable<string>): boolean {
  for (const text of texts) {
    if (HIDDEN.test(text)) return true;
    const plain = text.normalize('NFKC').replace(INVISIBLE, '');
    for (let at = 0; at < plain.length; at += WINDOW - LAP) {
      const part = plain.slice(at, at + WINDOW);
      if (PHRASES.some((phrase) => phrase.test(part))) return true;
    }
  }
  return false;
}

/** What of the change a prompt brings to a model's eyes: names, words, answers, and the lines that are new. */
export function* textsShown(
  ticket: LeasedTicket,
  review: ReviewText,
  others: readonly ChangedFile[],
  neighbours: readonly Neighbour[],
): Generator<string> {
  yield showPath(ticket.path);
  yield `${ticket.block.title}\n${ticket.block.brief}`;
  yield* ticket.clauses ?? [];
  for (const { answer } of ticket.earlier) if (answer !== null) yield answer;
  if (review.side === 'head') yield review.base === null ? review.text : addedLines(review.diff);
  for (const { path } of others.slice(0, OTHERS)) yield showPath(path);
  for (const { hunks } of neighbours) yield addedLines(`@@ \n${hunks}`);
}

/** Names of other files that a prompt lists at most. */
const OTHERS = 200;

/** The lines that a unified diff adds. */
function addedLines(diff: string): string {
  let inHunk = false;
  const added: string[] = [];
  for (const line of diff.split('\n')) {
    if (line.startsWith('@@ ')) inHunk = true;
    else if (inHunk && line.startsWith('+')) added.push(line.slice(1));
  }
  return added.join('\n');
}
