/** The numbers of OPS-10 that the edge of the runner API keeps. */
import { LIMITS } from '../domain/limits.ts';

/** Sizes in bytes, times in ms. */
export const RUNNER_LIMITS = {
  requestBytes: LIMITS.requestBytes.default,
  submitBytes: LIMITS.submitBytes.default,
  heartbeatMs: LIMITS.heartbeatMs.default,
} as const;
