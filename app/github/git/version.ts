/** The git binary that is needed (GIT-1): older ones lack what reading without a work tree rests on. */
import { Fault } from '../../errors.ts';
import { callGit, GIT_LIMITS } from './command.ts';

const LEAST = [2, 38] as const;

/** Throws `git_unavailable`, saying what was found, unless git 2.38 or newer is on the PATH that is inherited. */
export async function requireGit(environment: Readonly<Record<string, string>>): Promise<void> {
  const call = { gitDir: '/', args: ['--version'], environment, limits: GIT_LIMITS };
  const { exit, stdout } = await callGit(call);
  const found = /^git version (\d+)\.(\d+)/.exec(stdout.toString('latin1'));
  const [major, minor] = [Number(found?.[1]), Number(found?.[2])];
  if (exit === 0 && (major > LEAST[0] || (major === LEAST[0] && minor >= LEAST[1]))) return;
  const said = found === null ? 'a program that is not git' : `git ${major}.${minor}`;
  throw new Fault('git_unavailable', `git ${LEAST.join('.')} or newer must be on PATH: found ${said}`);
}
