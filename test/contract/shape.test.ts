import { readdirSync, readFileSync, statSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';

function walk(dir: string): string[] {
  return readdirSync(dir).flatMap((name) => {
    const file = path.posix.join(dir, name);
    if (file === 'action/dist' || file === 'test/fixtures') return [];
    if (statSync(file).isDirectory()) return walk(file);
    return /\.tsx?$/.test(name) ? [file] : [];
  });
}

const product = ['app', 'action', 'db', 'sandbox', 'bench'].flatMap(walk);
const tests = walk('test');
const lines = (file: string) => readFileSync(file, 'utf8').split('\n').length - 1;

describe('house rules', () => {
  it('no source file is longer than 300 lines', () => {
    expect(product.filter((file) => lines(file) > 300).map((file) => `${file}: ${lines(file)}`)).toEqual([]);
  });

  it('no test file is longer than 600 lines', () => {
    expect(tests.filter((file) => lines(file) > 600).map((file) => `${file}: ${lines(file)}`)).toEqual([]);
  });

  it('no drawer: utils, helpers, common, lib, types', () => {
    const drawers = product.filter((file) =>
      /(^|\/)(utils?|helpers?|common|lib|types|misc|shared)(\/|\.tsx?$)/.test(file),
    );
    expect(drawers).toEqual([]);
  });

  it('no barrel: a file that only re-exports', () => {
    const barrels = product.filter((file) => {
      const code = readFileSync(file, 'utf8')
        .replace(/\/\*[\s\S]*?\*\/|\/\/.*$/gm, '')
        .trim();
      return (
        code !== '' &&
        code
          .split(';')
          .every(
            (statement) =>
              statement.trim() === '' || /^export\s+(\*|\{|type\s*\{)[\s\S]*\sfrom\s/.test(statement.trim()),
          )
      );
    });
    expect(barrels).toEqual([]);
  });

  it('a sentence stands on every export', () => {
    const bare = product
      .filter((file) => !file.startsWith('bench/') || file === 'bench/bench.ts')
      .flatMap((file) => {
        const text = readFileSync(file, 'utf8').split('\n');
        return text.flatMap((line, i) => {
          if (!/^export (async )?(function|const|class|interface|type|abstract)\b/.test(line)) return [];
          // overloads and consecutive signatures share the sentence of the first
          let above = i - 1;
          while (above >= 0 && /^export (async )?function .*;$/.test(text[above] ?? '')) above--;
          return /\*\/\s*$/.test(text[above] ?? '') ? [] : [`${file}:${i + 1} ${line.slice(0, 70)}`];
        });
      });
    expect(bare).toEqual([]);
  });

  it('no suppression and no any without a reason', () => {
    const bad = [...product, ...tests].flatMap((file) =>
      readFileSync(file, 'utf8')
        .split('\n')
        .flatMap((line, i) =>
          /@ts-(ignore|nocheck)|@ts-expect-error\s*$|biome-ignore [^:]*:\s*$|\bas any\b/.test(line) &&
          !file.startsWith('test/contract/')
            ? [`${file}:${i + 1}`]
            : [],
        ),
    );
    expect(bad).toEqual([]);
  });
});
