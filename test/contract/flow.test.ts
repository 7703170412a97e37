import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { ORDER } from '../../app/flow/order.ts';

const documented = [...readFileSync('docs/flow.md', 'utf8').matchAll(/^### (\S+)$/gm)].map(
  (match) => match[1] ?? '',
);
const camel = (name: string) => name.replace(/-([a-z])/g, (_, letter: string) => letter.toUpperCase());

/** Files of the flow that export a function of their own name: the arrows. */
const arrows = readdirSync('app/flow')
  .filter((name) => name.endsWith('.ts'))
  .map((name) => name.slice(0, -3))
  .filter((name) =>
    new RegExp(`^export (async )?function ${camel(name)}\\b`, 'm').test(
      readFileSync(`app/flow/${name}.ts`, 'utf8'),
    ),
  );

describe('the flow: files, order and documents say the same', () => {
  it('every documented arrow is a file that exports a function of its name', () => {
    expect(documented.filter((name) => !existsSync(`app/flow/${name}.ts`))).toEqual([]);
    expect(documented.filter((name) => !arrows.includes(name))).toEqual([]);
  });

  it('every arrow that a job starts is documented, in the order the worker lists', () => {
    const jobs = ORDER.filter((arrow) => arrow.run !== undefined).map((arrow) => arrow.name);
    expect(documented.filter((name) => jobs.includes(name)).sort()).toEqual([...jobs].sort());
    const listed = jobs.filter((name) => name !== 'run-command');
    expect(documented.filter((name) => listed.includes(name))).toEqual(listed);
  });

  it('an arrow says what it reads, writes, calls and may fail with', () => {
    const silent = documented.filter((name) => {
      const text = readFileSync(`app/flow/${name}.ts`, 'utf8');
      return !/Reads?:[\s\S]*Calls?:/.test(text);
    });
    expect(silent).toEqual([]);
  });

  it('one log line bears the name of the arrow that a job starts', () => {
    const quiet = ORDER.filter((arrow) => arrow.run !== undefined)
      .map((arrow) => arrow.name)
      .filter((name) => !readFileSync(`app/flow/${name}.ts`, 'utf8').includes(`'${name}'`));
    expect(quiet).toEqual([]);
  });
});
