/**
 * Where a pattern of ours and the same text in a CODEOWNERS file differ (case 22): what people copy from
 * there is refused with what to write, or noted. CODEOWNERS as GitHub's documentation describes it.
 */
import { isGlob } from './pattern.ts';

/** Why a text is a line of CODEOWNERS and no pattern of ours, as words that go on from "the pattern"; null when it may be one. */
export function codeownersFault(text: string): string | null {
  if (/\s@\S+$/.test(text)) {
    return 'ends in an owner; a list holds paths only, and who may clear them the policy says';
  }
  if (text.startsWith('/') && text.length > 1) {
    const rest = text.replace(/^\/+/, '');
    return `starts with a slash; every pattern starts at the root of the repository: write ${rest}`;
  }
  if (text.includes('\\ ')) return 'holds a backslash; a space is written as it is';
  return null;
}

/** What CODEOWNERS would mean by a valid pattern beside what it means here, as a sentence; null when it means the same. */
export function codeownersNote(text: string): string | null {
  const directory = text.endsWith('/');
  const body = directory ? text.slice(0, -1) : text;
  const rooted = body.includes('/');
  const last = body.slice(body.lastIndexOf('/') + 1);
  if (text === '*') return '* is every file at the root; CODEOWNERS means every file, which is ** here';
  if (!rooted && isGlob(body)) {
    if (body === '**') return null;
    return `${text} is at the root only; CODEOWNERS means every folder, which is **/${text} here`;
  }
  if (!rooted && directory) {
    return `${text} is the folder at the root; CODEOWNERS means every folder of that name, which is **/${text}** here`;
  }
  if (!rooted) {
    return `${text} is the one file at the root; CODEOWNERS means every file and folder of that name, which are **/${text} and **/${text}/** here`;
  }
  // a name with a dot is a file as a rule, and a file is the same in both
  if (!directory && !isGlob(last) && !last.includes('.')) {
    return `${text} is this one path; CODEOWNERS means what lies in a folder of that name too, which is ${text}/** here`;
  }
  return null;
}
