/** The numbers of OPS-10 that the edge keeps: the runner API, the webhook, answers about a run. */
import { LIMITS } from '../domain/limits.ts';

/** Sizes in bytes, times in ms. */
export const EDGE_LIMITS = {
  requestBytes: LIMITS.requestBytes.default,
  submitBytes: LIMITS.submitBytes.default,
  heartbeatMs: LIMITS.heartbeatMs.default,
  answerBytes: LIMITS.answerBytes.default,
  deliveryBytes: LIMITS.deliveryBytes.default,
  oidcBytes: LIMITS.oidcBytes.default,
  oidcToleranceMs: LIMITS.oidcToleranceMs.default,
  oidcAgeMs: LIMITS.oidcAgeMs.default,
} as const;
