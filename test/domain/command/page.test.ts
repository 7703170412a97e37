import { expect, it } from 'vitest';
import { commandsPage } from '../../../app/domain/command/page.ts';

it('CMD-2: docs/commands.md is what the tables say; run with -u it writes it', async () => {
  await expect(commandsPage()).toMatchFileSnapshot('../../../docs/commands.md');
});
