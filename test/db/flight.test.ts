/** What a flight's values are written as. */
import { expect, test } from 'vitest';
import { arrayText, fly } from '../../db/flight.ts';
import { testDatabase } from '../helpers/database.ts';

test('an array of any text, or of none, is what Postgres reads', async () => {
  const db = await testDatabase();
  try {
    for (const values of [[], ['a', null, 'NULL', ''], ['{"}', "it's", '\\', 'ü, {}', '"\\"']]) {
      const [answer] = await fly(db.database.pool, [
        { name: '', text: 'select to_json($1::text[])::text', values: [arrayText(values)] },
      ]);
      expect(JSON.parse(answer?.rows[0]?.[0] ?? '')).toEqual(values);
    }
  } finally {
    await db.drop();
  }
});
