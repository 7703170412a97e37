/**
 * The bytes of a policy file as plain data with the line of every key and value. The file comes from
 * the base branch, which is trusted to decide and still not to be well formed: size, depth, aliases,
 * tags and doubled keys are refused before the schema sees anything.
 */
import { isAlias, isMap, isScalar, isSeq, LineCounter, type Node, parseDocument } from 'yaml';

/** Most bytes of a policy file. */
export const POLICY_MAX_BYTES = 65_536;
const MAX_DEPTH = 16;

/** Where a path of keys and indexes stands in the file. */
export type LineOf = (path: readonly (string | number)[]) => number;

/** The data of a YAML 1.2 file, or the first things that are wrong with it. */
export type YamlReading =
  | { readonly ok: true; readonly data: unknown; readonly lineOf: LineOf }
  | { readonly ok: false; readonly faults: readonly { readonly line: number; readonly message: string }[] };

class Unacceptable extends Error {
  readonly offset: number;
  constructor(message: string, offset: number) {
    super(message);
    this.offset = offset;
  }
}

/** Reads YAML 1.2 (core schema, one document, no aliases, no tags, unique keys); integers past 2^53 stay text. */
export function readYaml(bytes: Uint8Array): YamlReading {
  if (bytes.byteLength > POLICY_MAX_BYTES) {
    return refuse(1, `the file is larger than ${POLICY_MAX_BYTES} bytes`);
  }
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return refuse(1, 'the file is not UTF-8');
  }
  const counter = new LineCounter();
  const lines = new Map<string, number>();
  try {
    const document = parseDocument(text, {
      version: '1.2',
      schema: 'core',
      uniqueKeys: true,
      strict: true,
      lineCounter: counter,
      prettyErrors: false,
    });
    const faults = new Map<string, { line: number; message: string }>();
    for (const fault of [...document.errors, ...document.warnings]) {
      const found = {
        line: counter.linePos(fault.pos[0]).line || 1,
        message: meaning(fault.code, fault.message),
      };
      faults.set(`${found.line} ${found.message}`, found);
    }
    if (faults.size > 0) return { ok: false, faults: [...faults.values()].slice(0, 20) };
    if (document.contents === null) return refuse(1, 'the file is empty');
    const data = plain(document.contents as Node, [], lines, counter);
    return { ok: true, data, lineOf: (path) => nearestLine(lines, path) };
  } catch (error) {
    if (error instanceof Unacceptable) return refuse(counter.linePos(error.offset).line || 1, error.message);
    // the composer recurses: `[[[[…` of a whole file ends here and nowhere else
    if (error instanceof RangeError) return refuse(1, 'the file is nested too deeply');
    throw error;
  }
}

/** The parser's own words, but for the two that speak of its insides. */
function meaning(code: string, message: string): string {
  if (code === 'MULTIPLE_DOCS') return 'the file holds more than one document';
  return code === 'IMPOSSIBLE' ? 'the file is nested too deeply or cannot be read' : message;
}

const refuse = (line: number, message: string): YamlReading => ({ ok: false, faults: [{ line, message }] });

function nearestLine(lines: ReadonlyMap<string, number>, path: readonly (string | number)[]): number {
  for (let length = path.length; length >= 0; length--) {
    const line = lines.get(JSON.stringify(path.slice(0, length)));
    if (line !== undefined) return line;
  }
  return 1;
}

function plain(
  node: Node,
  path: (string | number)[],
  lines: Map<string, number>,
  counter: LineCounter,
): unknown {
  const offset = node.range?.[0] ?? 0;
  const key = JSON.stringify(path);
  if (!lines.has(key)) lines.set(key, counter.linePos(offset).line || 1);
  if (path.length > MAX_DEPTH) throw new Unacceptable('the file is nested too deeply', offset);
  if (isAlias(node)) throw new Unacceptable('aliases are not accepted; write the value out', offset);
  if ('anchor' in node && node.anchor !== undefined) {
    throw new Unacceptable('anchors are not accepted; write the value out', offset);
  }
  if (node.tag !== undefined && isExplicitTag(node.tag)) {
    throw new Unacceptable(`the tag ${node.tag} is not accepted`, offset);
  }
  if (isScalar(node)) {
    const value = node.value;
    const wide =
      typeof value === 'number' && !Number.isSafeInteger(value) && /^[0-9]+$/.test(node.source ?? '');
    return wide ? node.source : value;
  }
  if (isSeq(node)) {
    return node.items.map((item, i) => plain(item as Node, [...path, i], lines, counter));
  }
  if (isMap(node)) {
    const object: Record<string, unknown> = {};
    for (const pair of node.items) {
      const name = pair.key;
      if (!isScalar(name)) throw new Unacceptable('a key must be a word', offset);
      const at = name.range?.[0] ?? offset;
      const text = typeof name.value === 'string' ? name.value : (name.source ?? String(name.value));
      if (text === '__proto__') throw new Unacceptable('the key __proto__ is not accepted', at);
      const inner = [...path, text];
      lines.set(JSON.stringify(inner), counter.linePos(at).line || 1);
      object[text] = pair.value === null ? null : plain(pair.value as Node, inner, lines, counter);
    }
    return object;
  }
  throw new Unacceptable('this is not accepted here', offset);
}

/** Tags that the file itself wrote: the core schema gives plain nodes none. */
const isExplicitTag = (tag: string) => !/^tag:yaml\.org,2002:(map|seq|str|int|float|bool|null)$/.test(tag);
