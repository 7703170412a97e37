/**
 * The settings of an installation and of the whole app, with why each was set (POL-2).
 *
 * Reads: setting, installation, texts. Writes: nothing. Calls: nothing. May fail with: `not_found`.
 */
import { findInstallation } from '../../db/store/installation.ts';
import { listSettings, WHOLE_APP } from '../../db/store/setting.ts';
import { readTexts } from '../../db/store/text.ts';
import { Refusal } from '../errors.ts';
import type { UnitDeps } from './append-rows.ts';

/** One setting as people read it; `installation` is `all` for the whole app. */
export interface SettingLine {
  readonly installation: string;
  readonly key: string;
  readonly value: unknown;
  readonly by: string;
  /** Null: erased. */
  readonly reason: string | null;
  readonly at: Date;
}

/** Settings of the whole app, then of the installation; null: the whole app's alone. */
export async function readSettings(
  { database }: Pick<UnitDeps, 'database'>,
  installation: string | null,
): Promise<SettingLine[]> {
  if (installation !== null && (await findInstallation(database.db, installation)) === null)
    throw new Refusal('not_found', `there is no installation ${installation}`);
  const rows = await listSettings(
    database.db,
    installation === null ? [WHOLE_APP] : [WHOLE_APP, installation],
  );
  const texts = await readTexts(
    database.db,
    rows.map((row) => row.reason),
  );
  return rows.map((row) => ({
    installation: row.installationId === WHOLE_APP ? 'all' : row.installationId,
    key: row.key,
    value: row.value,
    by: row.actor,
    reason: texts.get(row.reason) ?? null,
    at: row.setAt,
  }));
}
