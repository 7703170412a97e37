import { expect, it } from 'vitest';
import { gatePage } from '../../../app/domain/gate/page.ts';
import { REASONS } from '../../../app/domain/gate/reason.ts';

it('GAT-2: docs/gate.md is what the tables say; run with -u it writes it', async () => {
  await expect(gatePage()).toMatchFileSnapshot('../../../docs/gate.md');
});

it('GAT-2: every reason has its line, with class, meaning, what clears it and who may', () => {
  const lines = gatePage().split('\n');
  for (const [code, { what, clears, who }] of Object.entries(REASONS)) {
    const line = lines.find((one) => one.startsWith(`| \`${code}\` |`));
    for (const text of [what, clears, who]) expect(line, code).toContain(text.replaceAll('|', '\\|'));
  }
});
