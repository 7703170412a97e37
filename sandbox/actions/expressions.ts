/** A value of an expression. */
export type Value = null | boolean | number | string | readonly Value[] | { readonly [key: string]: Value };

/** The named values an expression may read, and what its status functions answer. */
export interface Scope {
  readonly contexts: { readonly [name: string]: Value };
  readonly status: 'success' | 'failure' | 'cancelled';
}

/** An expression GitHub would not accept: the workflow does not start. */
export class BadExpression extends Error {}

const TOKEN =
  /\s*(?:('(?:[^']|'')*')|(0x[0-9a-f]+|-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)|(&&|\|\||==|!=|<=|>=|[!<>()[\],.*])|([A-Za-z_][\w-]*))/iy;

const NAMED = new Set([
  'env',
  'github',
  'inputs',
  'job',
  'jobs',
  'matrix',
  'needs',
  'runner',
  'secrets',
  'steps',
  'strategy',
  'vars',
]);

/** Replaces every `${{ … }}` of a text; a text that is one expression keeps only its value's text form. */
export function interpolate(text: string, scope: Scope): string {
  return text.replace(/\$\{\{(.*?)\}\}/gs, (_, expression: string) => toText(evaluate(expression, scope)));
}

/** The value of one expression, without its `${{ }}`. */
export function evaluate(expression: string, scope: Scope): Value {
  const parser = new Parser(tokens(expression), scope);
  const value = parser.or();
  parser.end();
  return value;
}

/** Whether an `if:` lets a job or step run: without a status function it means `success() && (…)`. */
export function condition(source: string | undefined, scope: Scope): boolean {
  const expression = source === undefined ? 'success()' : source.replace(/^\s*\$\{\{(.*)\}\}\s*$/s, '$1');
  const asked = /\b(success|failure|cancelled|always)\s*\(/.test(expression);
  const value = truthy(evaluate(expression, scope));
  return asked ? value : value && scope.status === 'success';
}

interface Token {
  readonly kind: 'string' | 'number' | 'sign' | 'name';
  readonly text: string;
}

function tokens(source: string): Token[] {
  const found: Token[] = [];
  const text = source.trim();
  TOKEN.lastIndex = 0;
  while (TOKEN.lastIndex < text.length) {
    const match = TOKEN.exec(text);
    if (match === null) throw new BadExpression(`Unexpected symbol in expression: ${text}`);
    const [, string, number, sign, name] = match;
    if (string !== undefined) found.push({ kind: 'string', text: string.slice(1, -1).replaceAll("''", "'") });
    else if (number !== undefined) found.push({ kind: 'number', text: number });
    else if (sign !== undefined) found.push({ kind: 'sign', text: sign });
    else found.push({ kind: 'name', text: name ?? '' });
  }
  return found;
}

class Parser {
  readonly #tokens: readonly Token[];
  readonly #scope: Scope;
  #at = 0;

  constructor(list: readonly Token[], scope: Scope) {
    this.#tokens = list;
    this.#scope = scope;
  }

  end(): void {
    if (this.#at < this.#tokens.length) this.#fail();
  }

  or(): Value {
    let left = this.#and();
    while (this.#take('||')) {
      const right = this.#and();
      left = truthy(left) ? left : right;
    }
    return left;
  }

  #and(): Value {
    let left = this.#comparison();
    while (this.#take('&&')) {
      const right = this.#comparison();
      left = truthy(left) ? right : left;
    }
    return left;
  }

  #comparison(): Value {
    const left = this.#not();
    for (const sign of ['==', '!=', '<=', '>=', '<', '>']) {
      if (!this.#take(sign)) continue;
      const right = this.#not();
      if (sign === '==') return same(left, right);
      if (sign === '!=') return !same(left, right);
      const [a, b] = [Number(left), Number(right)];
      return sign === '<' ? a < b : sign === '>' ? a > b : sign === '<=' ? a <= b : a >= b;
    }
    return left;
  }

  #not(): Value {
    return this.#take('!') ? !truthy(this.#not()) : this.#path();
  }

  #path(): Value {
    let value = this.#primary();
    for (;;) {
      if (this.#take('.')) {
        if (this.#take('*')) {
          value = values(value);
          continue;
        }
        const name = this.#name();
        value = Array.isArray(value) ? value.map((one: Value) => get(one, name)) : get(value, name);
      } else if (this.#take('[')) {
        const key = this.or();
        this.#expect(']');
        value = get(value, toText(key));
      } else return value;
    }
  }

  #primary(): Value {
    if (this.#take('(')) {
      const value = this.or();
      this.#expect(')');
      return value;
    }
    const token = this.#tokens[this.#at++];
    if (token === undefined || token.kind === 'sign') return this.#fail();
    if (token.kind === 'string') return token.text;
    if (token.kind === 'number') return Number(token.text);
    if (this.#take('(')) return this.#call(token.text.toLowerCase());
    if (token.text === 'true') return true;
    if (token.text === 'false') return false;
    if (token.text === 'null') return null;
    if (!NAMED.has(token.text.toLowerCase()))
      throw new BadExpression(`Unrecognized named-value: '${token.text}'`);
    return get(this.#scope.contexts, token.text);
  }

  #call(name: string): Value {
    const args: Value[] = [];
    while (!this.#take(')')) {
      args.push(this.or());
      if (!this.#take(',') && this.#tokens[this.#at]?.text !== ')') this.#fail();
    }
    const [first = null, second = null] = args;
    const { status } = this.#scope;
    switch (name) {
      case 'success':
      case 'failure':
      case 'cancelled':
        return status === name;
      case 'always':
        return true;
      case 'contains':
        if (Array.isArray(first)) return first.some((one: Value) => same(one, second));
        return toText(first).toLowerCase().includes(toText(second).toLowerCase());
      case 'startswith':
        return toText(first).toLowerCase().startsWith(toText(second).toLowerCase());
      case 'endswith':
        return toText(first).toLowerCase().endsWith(toText(second).toLowerCase());
      case 'format':
        return toText(first).replace(/\{(\d+)\}/g, (_, index: string) =>
          toText(args[Number(index) + 1] ?? null),
        );
      case 'join':
        return (Array.isArray(first) ? first : [first])
          .map(toText)
          .join(second === null ? ',' : toText(second));
      case 'tojson':
        return JSON.stringify(first, null, 2);
      case 'fromjson':
        return JSON.parse(toText(first)) as Value;
      default:
        throw new BadExpression(`Unrecognized function: '${name}'`);
    }
  }

  #name(): string {
    const token = this.#tokens[this.#at++];
    if (token === undefined || token.kind !== 'name') return this.#fail();
    return token.text;
  }

  #take(sign: string): boolean {
    const token = this.#tokens[this.#at];
    if (token?.kind !== 'sign' || token.text !== sign) return false;
    this.#at++;
    return true;
  }

  #expect(sign: string): void {
    if (!this.#take(sign)) this.#fail();
  }

  #fail(): never {
    throw new BadExpression(`Unexpected symbol: '${this.#tokens[this.#at]?.text ?? ''}'`);
  }
}

// Names are case-insensitive; what is not there is null.
function get(value: Value, name: string): Value {
  if (typeof value !== 'object' || value === null) return null;
  const key = Object.keys(value).find((one) => one.toLowerCase() === name.toLowerCase());
  return key === undefined ? null : ((value as { readonly [key: string]: Value })[key] ?? null);
}

function values(value: Value): Value {
  return typeof value === 'object' && value !== null ? (Object.values(value) as Value[]) : [];
}

// Text compares without case; different types compare as numbers.
function same(a: Value, b: Value): boolean {
  if (typeof a === 'string' && typeof b === 'string') return a.toLowerCase() === b.toLowerCase();
  if (typeof a === typeof b) return a === b;
  return toNumber(a) === toNumber(b);
}

function toNumber(value: Value): number {
  if (value === null) return 0;
  return typeof value === 'object' ? Number.NaN : Number(value);
}

function truthy(value: Value): boolean {
  return !(value === null || value === false || value === 0 || value === '');
}

/** A value as text: null is empty, objects are `Object`, as the runner prints them. */
export function toText(value: Value): string {
  if (value === null) return '';
  if (Array.isArray(value)) return 'Array';
  return typeof value === 'object' ? 'Object' : String(value);
}
