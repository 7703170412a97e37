/** Puts what a program said on the lines of the reviewed file; what has no place there is told as text (REV-1a). */
import { isAbsolute, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { RawFinding, Severity } from '../reviewer.ts';
import type { ParseContext } from './format.ts';

/** One thing a program said, as its format has it; null where it did not say. */
export type Said = Readonly<{
  path: string | null;
  start: number | null;
  end: number | null;
  severity: Severity;
  title: string;
  body: string;
  suggestion?: string | null;
}>;

/** Collects what a program said: findings on lines of the reviewed file, and the rest as text that makes the ticket partial. */
export function collect(context: ParseContext): {
  add: (said: Said) => void;
  result: () => { ok: true; findings: RawFinding[]; unplaced: string[]; reported: number };
} {
  const findings: RawFinding[] = [];
  const unplaced: string[] = [];
  return {
    add({ path, start, end, severity, title, body, suggestion }) {
      if (path === null || !context.isReviewed(pathBelow(path, context.dir)) || start === null || start < 1)
        return void unplaced.push(title);
      const { length } = context.lines;
      if (start > length) return void unplaced.push(`${title} (line ${start}, the file has ${length})`);
      const endLine = Math.min(Math.max(start, end ?? start), length);
      findings.push({
        startLine: start,
        endLine,
        severity,
        lens: context.lens,
        title,
        body,
        quote: context.lines.slice(start - 1, endLine).join('\n'),
        suggestion: suggestion ?? null,
      });
    },
    result: () => ({ ok: true, findings, unplaced, reported: findings.length + unplaced.length }),
  };
}

/** The path that a program named, below the working directory; one outside gives a path that matches nothing. */
export function pathBelow(named: string, dir: string): string {
  let path = named;
  if (named.startsWith('file:')) {
    try {
      path = fileURLToPath(named);
    } catch {
      // not a file URL after all: the name itself
    }
  }
  return isAbsolute(path) ? relative(dir, path) : path.replace(/^(?:\.\/)+/, '');
}

/** The first line of a message after its rule, as a title; never empty. */
export function titleFrom(rule: string | null, message: string): string {
  const line = message.split('\n')[0]?.trim() ?? '';
  const name = rule?.trim() ?? '';
  if (name === '') return line === '' ? 'no message' : line;
  return line === '' ? name : `${name}: ${line}`;
}
