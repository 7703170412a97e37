/** The kill switch for programs (CTL-5). */
import * as z from 'zod';

/** An installation by its number, or the whole app. */
const scope = z.string().regex(/^(all|[1-9][0-9]{0,18})$/, 'the number of an installation, or all');

/** `GET /api/v1/kill-switch`. */
export const killQuery = z.strictObject({ installation: scope });
/** Its answer: the switches that hold there, the whole app's first; none: nothing is stopped. */
export const killStateResponse = z.strictObject({
  installation: scope,
  switches: z.array(
    z.strictObject({
      installation: scope,
      by: z.string(),
      /** Null: erased. */
      reason: z.string().nullable(),
      at: z.iso.datetime(),
    }),
  ),
});

/** `POST /api/v1/kill-switch`: puts it on, which stops everything at once, or off. */
export const killRequest = z.strictObject({
  installation: scope,
  on: z.boolean(),
  reason: z.string().trim().min(1).max(500),
});
/** Its answer; `changed` false: it was so already. */
export const killResponse = z.strictObject({
  installation: scope,
  on: z.boolean(),
  changed: z.boolean(),
  /** Chains that bear a row of it. */
  installations: z.int(),
  /** Leases that were revoked. */
  revoked: z.int(),
});
