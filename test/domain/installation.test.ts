import { expect, it } from 'vitest';
import { missingKeys } from '../../app/domain/installation.ts';

it.each<[string, (string | null)[], string[], string | null]>([
  ['no model at all', [], [], null],
  ['one that needs no key', ['A_KEY', null], [], null],
  ['one of two has its key', ['A_KEY', 'B_KEY'], ['B_KEY'], null],
  ['none has', ['B_KEY', 'A_KEY', 'B_KEY'], ['C_KEY'], 'A_KEY, B_KEY'],
])('RUN-9: keys of models: %s', (_, wanted, held, named) => {
  const said = missingKeys(wanted, held);
  if (named === null) expect(said).toBeNull();
  else expect(said).toContain(`it needs ${named},`);
});
