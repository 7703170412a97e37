import { expect, it } from 'vitest';
import { policyPage } from '../../../app/domain/policy/page.ts';
import { policySchemaJson } from '../../../app/domain/policy/schema.ts';

/** JSON as the formatter of this repository leaves it: short lists of words on one line. */
function formatted(value: unknown): string {
  const text = JSON.stringify(value, null, 2).replaceAll(
    /^( *(?:"[^"\n]*": )?)\[\n((?: *(?:"[^"\n]*"|[0-9]+),?\n)+) *\](,?)$/gm,
    (whole, lead: string, items: string, comma: string) => {
      const line = `${lead}[${items
        .trim()
        .split('\n')
        .map((item) => item.trim())
        .join(' ')}]${comma}`;
      return line.length <= 110 ? line : whole;
    },
  );
  return `${text}\n`;
}

it('POL-3: docs/policy.md is what the tables say; run with -u it writes it', async () => {
  await expect(policyPage()).toMatchFileSnapshot('../../../docs/policy.md');
});

it('POL-3: docs/policy.schema.json, which editors load, is the schema; run with -u it writes it', async () => {
  await expect(formatted(policySchemaJson())).toMatchFileSnapshot('../../../docs/policy.schema.json');
});
