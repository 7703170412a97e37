/** The sample repository of the demo: a small shop, its policy, and a pull request with real faults. */
import { randomBytes } from 'node:crypto';

/** Files by path; null deletes one. */
export type Files = Record<string, string | null>;

/** One commit of the sample: its message with trailers, and what it changes. */
export interface SampleCommit {
  readonly message: string;
  readonly files: Files;
}

/** A token that a secret scanner knows, made anew each time so that none lies in this repository. */
const leakedToken = () =>
  `gh${'p_'}${randomBytes(27).toString('base64').replace(/[+/=]/g, 'x').slice(0, 36)}`;

/** The policy of the sample: biome and secretlint on every file they read, a scripted model at L2 and above. */
export const samplePolicy = (modelUrl: string): string => `version: 1
gate:
  block_at: high
reviewers:
  biome:
    uses: command
    run: [biome, lint, --reporter=sarif, --max-diagnostics=none, '{path}']
    output: sarif
    paths: ['**/*.ts']
    config: [biome.json]
    lenses: [correctness]
    severity: { error: high, warning: medium, note: low }
    trusted: true
  secretlint:
    uses: command
    run: [secretlint, --format, '@secretlint/secretlint-formatter-sarif', '{path}']
    output: sarif
    paths: ['**']
    config: [.secretlintrc.json]
    lenses: [security]
    severity: { error: critical, warning: high, note: medium }
    trusted: true
  scripted-model:
    uses: openai-compatible
    model: scripted
    base_url: ${modelUrl}
    key: SCRIPTED_MODEL_KEY
levels:
  L1: [biome, secretlint]
  L2: [biome, secretlint, scripted-model]
  L3: [biome, secretlint, scripted-model]
`;

/** Files of the base branch, policy and workflow apart. */
export const baseFiles: Files = {
  'README.md': '# Tea shop\n\nA shop that sells tea.\n',
  'package.json': '{ "name": "tea-shop", "private": true, "type": "module" }\n',
  'biome.json': '{ "linter": { "rules": { "recommended": true } } }\n',
  '.secretlintrc.json': '{ "rules": [{ "id": "@secretlint/secretlint-rule-preset-recommend" }] }\n',
  'src/cart.ts':
    'export interface Item {\n  name: string;\n  cents: number;\n}\n\nexport function total(items: Item[]): number {\n  return items.reduce((sum, item) => sum + item.cents, 0);\n}\n',
  'src/price.ts':
    'export function format(cents: number): string {\n  return [(cents / 100).toFixed(2), "EUR"].join(" ");\n}\n\nexport function parse(text: string): number {\n  return Math.round(Number.parseFloat(text) * 100);\n}\n',
  'src/legacy.ts':
    'export function oldTotal(cents: number[]): number {\n  return cents.length === 0 ? 0 : cents.reduce((a, b) => a + b);\n}\n',
};

/** The commits of the pull request: two named blocks, a rename, a deletion, a leak, faults for linter and model. */
export function pullCommits(): SampleCommit[] {
  return [
    {
      message:
        'Add coupons\n\nA coupon takes an amount off the total.\n\nBlock: coupons\nOwns: src/coupons.ts\nOwns: src/cart.ts\n',
      files: {
        'src/coupons.ts':
          'import type { Item } from "./cart.ts";\n\nexport interface Coupon {\n  code: string;\n  cents: number;\n}\n\nexport function discounted(items: Item[], coupon: Coupon): number {\n  const sum = items.reduce((all, item) => all + item.cents, 0);\n  if (coupon.code == "") return sum;\n  return sum - coupon.cents;\n}\n',
      },
    },
    {
      message: 'Use coupons in the cart\n\nBlock: coupons\n',
      files: {
        'src/cart.ts':
          'import { type Coupon, discounted } from "./coupons.ts";\n\nexport interface Item {\n  name: string;\n  cents: number;\n}\n\nexport function total(items: Item[], coupon?: Coupon): number {\n  if (coupon) return discounted(items, coupon);\n  return items.reduce((sum, item) => sum + item.cents, 0);\n}\n',
      },
    },
    {
      message:
        'Rename the price module\n\nIt formats money, so it is called money.\n\nBlock: money\nOwns: src/money.ts\nOwns: src/price.ts\nOwns: src/legacy.ts\n',
      files: {
        'src/price.ts': null,
        'src/money.ts':
          'export function format(cents: number, currency = "EUR"): string {\n  return [(cents / 100).toFixed(2), currency].join(" ");\n}\n\nexport function parse(text: string): number {\n  return Math.round(Number.parseFloat(text) * 100);\n}\n',
        'src/legacy.ts': null,
      },
    },
    {
      message: 'Talk to the supplier\n',
      files: {
        'src/supplier.ts': `const token = "${leakedToken()}";\n\nexport async function order(name: string): Promise<Response> {\n  return fetch("https://supplier.example/order", {\n    method: "POST",\n    headers: { authorization: ["Bearer", token].join(" ") },\n    body: JSON.stringify({ name }),\n  });\n}\n`,
        'README.md': '# Tea shop\n\nA shop that sells tea, now with coupons.\n',
      },
    },
  ];
}

/** The commits that mend all of it: one names its block, the other is a fixup of the commit it mends. */
export const fixCommits: readonly SampleCommit[] = [
  {
    message: 'Floor the discount and compare strictly\n\nBlock: coupons\n',
    files: {
      'src/coupons.ts':
        'import type { Item } from "./cart.ts";\n\nexport interface Coupon {\n  code: string;\n  cents: number;\n}\n\nexport function discounted(items: Item[], coupon: Coupon): number {\n  const sum = items.reduce((all, item) => all + item.cents, 0);\n  if (coupon.code === "") return sum;\n  return Math.max(0, sum - coupon.cents);\n}\n',
    },
  },
  {
    message: 'fixup! Talk to the supplier\n',
    files: {
      'src/supplier.ts':
        'export async function order(name: string, token: string): Promise<Response> {\n  return fetch("https://supplier.example/order", {\n    method: "POST",\n    headers: { authorization: ["Bearer", token].join(" ") },\n    body: JSON.stringify({ name }),\n  });\n}\n',
    },
  },
];
