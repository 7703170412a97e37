/**
 * What verify commands may use of a resident runner's machine (VER-1): images, room, memory and network. Policies of other
 * repositories name images and ask for a network; who runs the machine says here which of that they get.
 */
import { Refusal } from '../../app/errors.ts';

/** Options of `countersign runner`, as they were written. */
export type ContainerWords = Readonly<{
  images?: string | undefined;
  containers?: string | undefined;
  network?: string | undefined;
  memory?: string | undefined;
  processes?: string | undefined;
}>;

/** What they may use. */
export type ContainerAllowance = Readonly<{
  allows: (image: string) => boolean;
  /** Containers at once. */
  atOnce: number;
  network: 'none' | 'open';
  memoryMb: number;
  processes: number;
}>;

/** Any image that is on this machine. */
const ANY = 'any';

/** Reads them; null: no image may be used, so no verify command runs. Throws Refusal `bad_request`. */
export function readContainers(words: ContainerWords): ContainerAllowance | null {
  const images = new Set((words.images ?? '').split(',').flatMap((one) => one.trim() || []));
  const atOnce = whole('--containers', words.containers, 1, 1, 64);
  const memoryMb = whole('--memory', words.memory, 2048, 64, 1_048_576);
  const processes = whole('--processes', words.processes, 512, 16, 100_000);
  const network = words.network ?? 'none';
  if (network !== 'none' && network !== 'open')
    throw new Refusal('bad_request', '--network is not accepted', 'none or open');
  if (images.size === 0) return null;
  return {
    allows: (image) => images.has(ANY) || images.has(image),
    atOnce,
    network,
    memoryMb,
    processes,
  };
}

function whole(name: string, word: string | undefined, usual: number, least: number, most: number): number {
  const value = word === undefined ? usual : Number(word);
  if (Number.isInteger(value) && value >= least && value <= most) return value;
  throw new Refusal('bad_request', `${name} is not accepted`, `a whole number from ${least} to ${most}`);
}
