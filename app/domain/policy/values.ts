/** The small values that a policy is made of, each with the words a person reads when it is wrong (POL-1). */
import * as z from 'zod';
import { codeownersFault } from './codeowners.ts';
import { patternFault } from './pattern.ts';

const UNIT_MS = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

/** The milliseconds of `90s`, `30m`, `6h` or `2d`; null when it is no duration. */
export function durationMs(text: string): number | null {
  const match = /^([0-9]{1,6})(s|m|h|d)$/.exec(text);
  const unit = match?.[2] as keyof typeof UNIT_MS | undefined;
  return match === null || unit === undefined ? null : Number(match[1]) * UNIT_MS[unit];
}

/** A duration within bounds, in milliseconds once read. */
export const duration = (least: string, most: string, description: string) =>
  z
    .string(`a duration such as 30m, from ${least} to ${most}`)
    .regex(/^[0-9]{1,6}(s|m|h|d)$/, `a duration such as 30m, from ${least} to ${most}`)
    .refine((text) => {
      const ms = durationMs(text) ?? -1;
      return ms >= (durationMs(least) ?? 0) && ms <= (durationMs(most) ?? 0);
    }, `a duration such as 30m, from ${least} to ${most}`)
    .transform((text) => durationMs(text) ?? 0)
    .describe(`${description} A duration from ${least} to ${most}, in s, m, h or d.`);

/** A whole number within bounds. */
export const count = (least: number, most: number, description: string) =>
  z
    .int(`a whole number from ${least} to ${most}`)
    .min(least, `a whole number from ${least} to ${most}`)
    .max(most, `a whole number from ${least} to ${most}`)
    .describe(description);

/** A path pattern (OWN-1). */
export const pattern = z.string('a path, a directory ending in /, or a glob').superRefine((text, context) => {
  const fault = codeownersFault(text) ?? patternFault(text);
  if (fault !== null) context.addIssue({ code: 'custom', message: `the pattern ${fault}` });
});
/** A list of path patterns. */
export const patterns = (most: number) => z.array(pattern, 'a list of paths, directories or globs').max(most);

const account = 'the numeric id of a GitHub account (api.github.com/users/LOGIN shows it)';
/** A GitHub account id; a decimal string once read. */
export const userId = z
  .union([z.int(account).positive(account), z.string().regex(/^[1-9][0-9]{0,18}$/, account)], account)
  .transform(String);

/** The name of a lens (REV-6). */
export const lens = z
  .string('a lens: a word')
  .regex(/^[a-z][a-z0-9-]{0,39}$/, 'a lens: lower-case letters, digits and -');
/** The name of a resident pool: no file of a workflow pool can bear it, since it has no dot. */
export const residentName = z
  .string()
  .regex(/^[a-z][a-z0-9-]{0,39}$/, 'a name: lower-case letters, digits and -, at most 40');
/** The name of a reviewer. */
export const reviewerName = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,59}$/, 'a name: letters, digits, ".", "_" and "-", at most 60');
/** A list of reviewer names. */
export const names = z
  .array(reviewerName, 'a list of reviewer names')
  .min(1, 'at least one reviewer')
  .max(10);
