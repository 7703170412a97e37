/** One cold measurement in a process of its own: compile 4,000 patterns of 200 blocks, match 3,000 paths; prints milliseconds and hits. */
import picomatch from 'picomatch';
import { compileDeclarations, type Declaration } from '../../app/domain/ownership/match.ts';

const BLOCKS = 200;
const PATTERNS = 20;
const PATHS = 3_000;

let seed = 42;
/** The same pseudo-random numbers in every process, so that both sides see the same input. */
function random(below: number): number {
  seed = (seed * 1_103_515_245 + 12_345) & 0x7fffffff;
  return seed % below;
}

const areas = Array.from({ length: 40 }, (_, i) => `area${i}`);
const parts = Array.from({ length: 12 }, (_, i) => `part${i}`);
const extensions = ['ts', 'tsx', 'md', 'json', 'css', 'py'];
const pick = (list: readonly string[]): string => list[random(list.length)] ?? '';

function pattern(): string {
  const folder = `packages/${pick(areas)}/${pick(parts)}`;
  switch (random(8)) {
    case 0:
      return `**/${pick(parts)}/file${random(60)}.${pick(extensions)}`;
    case 1:
      return `${folder}/`;
    case 2:
      return `${folder}/**`;
    case 3:
      return `${folder}/**/*.${pick(extensions)}`;
    case 4:
      return `${folder}/*/file${random(60)}.*`;
    case 5:
      return `packages/*/${pick(parts)}/*.{${pick(extensions)},${pick(extensions)}}`;
    default:
      return `${folder}/${pick(parts)}/file${random(60)}.${pick(extensions)}`;
  }
}

const declarations: Declaration[] = Array.from({ length: BLOCKS }, (_, i) => ({
  block: `block-${i}`,
  entries: Array.from({ length: PATTERNS }, pattern),
}));
const paths = Array.from(
  { length: PATHS },
  () => `packages/${pick(areas)}/${pick(parts)}/${pick(parts)}/file${random(60)}.${pick(extensions)}`,
);

/** The plain way: one regular expression of alternatives a block. */
function alternations(): (path: string) => number {
  const tests = declarations.map(({ entries }) => {
    const sources = entries.map(
      (entry) => picomatch.makeRe(entry.endsWith('/') ? `${entry}**` : entry, { dot: true }).source,
    );
    return new RegExp(sources.join('|'));
  });
  return (path) => tests.filter((test) => test.test(path)).length;
}

function trie(): (path: string) => number {
  const owners = compileDeclarations(declarations);
  return (path) => owners(path).length;
}

const start = performance.now();
const match = process.argv[2] === 'peer' ? alternations() : trie();
let hits = 0;
for (const path of paths) hits += match(path);
console.log(JSON.stringify({ ms: performance.now() - start, hits }));
