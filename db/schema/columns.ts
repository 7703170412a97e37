/** Column types shared by the tables: bytes, 64-bit ids, product times. */
import { bigint, customType, timestamp } from 'drizzle-orm/pg-core';

/** Bytes as a Buffer. */
export const bytea = customType<{ data: Buffer; driverData: Buffer }>({ dataType: () => 'bytea' });

/** A 64-bit id: bigint in Postgres, a decimal string in TypeScript (RUN-1). */
export const bigintId = customType<{ data: string; driverData: string }>({ dataType: () => 'bigint' });

/** A moment of product time, as a Date. */
export const moment = (name?: string) =>
  name === undefined
    ? timestamp({ withTimezone: true, mode: 'date' })
    : timestamp(name, { withTimezone: true, mode: 'date' });

/** A count that may pass 2^31 but never 2^53, as a number. */
export const count = (name?: string) =>
  name === undefined ? bigint({ mode: 'number' }) : bigint(name, { mode: 'number' });
