import { expect, test } from 'vitest';
import { STRICTER } from '../../../app/domain/setting/hold.ts';
import { POLICY_SETTINGS } from '../../../app/domain/setting/key.ts';
import { settingsPage } from '../../../app/domain/setting/page.ts';

test('POL-2: docs/settings.md is made of the tables', async () => {
  await expect(settingsPage()).toMatchFileSnapshot('../../../docs/settings.md');
});

test('POL-2: what has an order is a key that can be set', () => {
  expect(Object.keys(STRICTER).filter((key) => !POLICY_SETTINGS.includes(key))).toEqual([]);
});
