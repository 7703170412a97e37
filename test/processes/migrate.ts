/** A process that migrates the database of its argument, and says what it did. */
import { migrateDatabase } from '../../db/migrate.ts';

const done = await migrateDatabase(String(process.argv[2]));
console.log(JSON.stringify(done));
