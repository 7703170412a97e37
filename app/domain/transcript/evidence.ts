/**
 * The part of an agent's log that a result brings, so that the server can scan what the session did
 * again (REV-7): whole events with their long texts cut, as many as the size allows, what was done first.
 */
import { type AgentKind, type LogLine, linesOfLog } from '../transcript.ts';

/** Most bytes of one session's evidence as a string in JSON: sixteen of them fit beside a result's findings. */
export const EVIDENCE_BYTES = 16_000;
/** A text that shows what was done is recognised by its beginning. */
const TEXT_SHOWN = 160;
const ITEMS_SHOWN = 40;
const DEPTH_SHOWN = 8;

/** The evidence of a log; `redact` is applied to every text before it is cut (REV-8). */
export function evidenceOf(kind: AgentKind, log: string, redact: (text: string) => string): string {
  const lines: { rank: number; text: string; size: number }[] = [];
  let size = 2;
  for (const one of linesOfLog(kind, log)) {
    const text =
      one.event === null ? cut(redact(one.text)) : JSON.stringify(shorten(one.event, DEPTH_SHOWN, redact));
    const bytes = Buffer.byteLength(JSON.stringify(text), 'utf8');
    lines.push({ rank: rankOf(one), text, size: bytes });
    size += bytes;
  }
  if (size <= EVIDENCE_BYTES) return lines.map((one) => one.text).join('\n');
  let left = EVIDENCE_BYTES - 2;
  const kept = new Set<(typeof lines)[number]>();
  for (const one of [...lines].sort((a, b) => a.rank - b.rank)) {
    if (one.size > left) continue;
    left -= one.size;
    kept.add(one);
  }
  return lines
    .filter((one) => kept.has(one))
    .map((one) => one.text)
    .join('\n');
}

/** What has to be seen again first: the beginning, what was done, the end, what is no event, what was said. */
function rankOf({ line, event, steps }: LogLine): number {
  if (line === 1 || steps.some((step) => step.kind === 'start')) return 0;
  if (steps.some((step) => step.kind === 'act')) return 1;
  if (steps.some((step) => step.kind === 'end' || step.kind === 'fail')) return 2;
  if (event === null || steps.some((step) => step.kind === 'unknown')) return 3;
  return steps.some((step) => step.kind === 'say') ? 4 : 5;
}

function cut(text: string): string {
  const clean = text.toWellFormed().replaceAll('\0', '\ufffd');
  return clean.length <= TEXT_SHOWN ? clean : `${clean.slice(0, TEXT_SHOWN - 1).toWellFormed()}…`;
}

function shorten(value: unknown, depth: number, redact: (text: string) => string): unknown {
  if (typeof value === 'string') return cut(redact(value));
  if (typeof value !== 'object' || value === null) return value;
  if (depth === 0) return '…';
  if (Array.isArray(value))
    return value.slice(0, ITEMS_SHOWN).map((item) => shorten(item, depth - 1, redact));
  return Object.fromEntries(
    Object.entries(value)
      .slice(0, ITEMS_SHOWN)
      .map(([key, item]) => [cut(redact(key)), shorten(item, depth - 1, redact)]),
  );
}
