/** How runners come and go (AUT-1, AUT-2, RID-1): the messages of login and logout. */
import * as z from 'zod';
import { LIMITS } from '../domain/limits.ts';

const text = (max: number) => z.string().max(max);

const descriptor = {
  protocol: text(20),
  version: text(60),
  capacity: z.int().min(1).max(64),
  /** Names of the variables that hold keys in this runner's environment, never a value; null: not told (RUN-9). */
  keys: z.array(text(100)).max(100).nullable(),
};
/** `POST /api/v1/login` of a workflow runner: its OIDC token and the nonce its dispatch carried (AUT-1). */
const workflowLogin = z.strictObject({
  ...descriptor,
  oidc: text(LIMITS.oidcBytes.default),
  nonce: text(100).nullable(),
});
/** Of a resident runner: a token of its pool, and its own name of its process (AUT-2, RID-1). */
const poolLogin = z.strictObject({
  ...descriptor,
  pool: text(40),
  token: text(200),
  instance: z.string().regex(/^[A-Za-z0-9-]{8,64}$/),
  /** Its container runtime with its version, where it takes verify commands (protocol 1.3). */
  runtime: text(60).min(1).nullable().optional(),
});
/** `POST /api/v1/login`: what a runner proves itself with. */
export const loginRequest = z.union([workflowLogin, poolLogin]);
/** The answer to a login: the token is shown once and renewed by heartbeats of its own leases. */
export const loginResponse = z.strictObject({
  token: text(200),
  expires_at: z.iso.datetime(),
  runner: text(64),
  session: text(64),
  run: text(64).nullable(),
});

/** `POST /api/v1/logout`. */
export const logoutRequest = z.strictObject({});
