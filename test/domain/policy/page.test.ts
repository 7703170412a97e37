import { expect, it } from 'vitest';
import { policyPage } from '../../../app/domain/policy/page.ts';

it('POL-3: docs/policy.md is what the tables say; `vitest run -u` writes it', async () => {
  await expect(policyPage()).toMatchFileSnapshot('../../../docs/policy.md');
});
