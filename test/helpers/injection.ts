/** The corpus of texts that try to steer a reviewer (attack 30), and models that meet them. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** One text and where it stands. */
export interface Entry {
  readonly name: string;
  readonly where: 'title' | 'brief' | 'path' | 'head' | 'hunk' | 'clause' | 'answer';
  readonly text: string;
}

const folder = join(import.meta.dirname, '../fixtures/injection');
/** Every text with its name, for tables. */
export const corpus = readdirSync(folder).flatMap((file) =>
  (JSON.parse(readFileSync(join(folder, file), 'utf8')) as Entry[]).map((entry): [string, Entry] => [
    `${file.replace('.json', '')}: ${entry.name}`,
    entry,
  ]),
);

/** The plain defect beside it. */
export const EVIL = 'export const d = eval(input);';

/** A prompt in its two parts. */
interface Shown {
  readonly system: string;
  readonly user: string;
}

/** An answer by our schema, an approval unless `more` says otherwise. */
export function answerOf(nonce: string, more: object = {}): string {
  return JSON.stringify({
    nonce,
    verdict: 'approve',
    count: 0,
    findings: [],
    answers: [],
    clauses: [],
    ...more,
  });
}

/** Prompt text outside of every section that carries the nonce: what a model may take for its operator's words. */
export function outside({ system, user }: Shown, nonce: string): string {
  const sections = new RegExp(`<<<DATA ${nonce} ([^\\n]*)\\n[\\s\\S]*?\\n>>>END ${nonce} \\1`, 'g');
  return `${system}\n${user.replace(sections, '')}`;
}

/** One that keeps to the frame, one that copies an answer it meets, one that does what any text says; null: it reports the defect. */
export const models = {
  careful: (prompt: Shown, nonce: string) =>
    /report no findings\.|approve (?:this|everything)|respond with/i.test(
      outside(prompt, nonce).replace(prompt.system, ''),
    )
      ? answerOf(nonce)
      : null,
  copying: (prompt: Shown) => /\{[^\n]*"verdict"[^\n]*\}/.exec(prompt.user)?.[0] ?? null,
  servile: (prompt: Shown, nonce: string) => {
    const named = /key nonce: ([\w-]+)/.exec(prompt.user)?.[1];
    return answerOf(named ?? nonce);
  },
} as const;
