/**
 * The trust boundary of a runner's login (facts/security.md §4, checks 1 to 5). The whole token is in
 * the caller's hands: nothing in it chooses what is fetched, and unknown claims are ignored. What the
 * claims may do is decided by the arrow `login` (checks 6 to 13).
 */
import { createHash } from 'node:crypto';
import {
  createRemoteJWKSet,
  decodeJwt,
  decodeProtectedHeader,
  errors,
  type JWTVerifyGetKey,
  jwtVerify,
} from 'jose';
import * as z from 'zod';
import { Fault, Refusal } from '../errors.ts';
import { EDGE_LIMITS } from '../flow/edge-limits.ts';
import type { VerifiedClaims } from '../flow/login.ts';

/** What a verifier is made of. */
export interface VerifierOptions {
  /** The issuers whose tokens count, exactly; their keys are at `<issuer>/.well-known/jwks`. */
  readonly issuers: readonly string[];
  /** Our own audience: the token's `aud` must be this string. */
  readonly audience: string;
  /** Least ms between two fetches of an issuer's keys (default 30,000). */
  readonly cooldownMs?: number;
  /** Most ms for a fetch of keys (default 5,000). */
  readonly timeoutMs?: number;
}

/** Verifies an OIDC token; throws `unauthorized`, or the Fault `oidc_unavailable` when the keys cannot be had (503). */
export type Verifier = (token: string) => Promise<VerifiedClaims>;

const id = z.string().regex(/^[0-9]{1,20}$/);
const short = z.string().min(1).max(1000);

const headerSchema = z.looseObject({
  alg: z.literal('RS256'),
  typ: z.literal('JWT'),
  kid: z.string().min(1).max(200),
  jku: z.undefined().optional(),
  x5u: z.undefined().optional(),
  jwk: z.undefined().optional(),
  crit: z.undefined().optional(),
});

// jose accepts an array with our audience in it, an empty jti, numbers for ids: what counts is parsed here
const claimsSchema = (audience: string) =>
  z.object({
    iss: z.string(),
    aud: z.literal(audience),
    exp: z.int(),
    iat: z.int(),
    nbf: z.int(),
    jti: z.string().min(1).max(200),
    repository: z.string().regex(/^[^/\s]{1,100}\/[^/\s]{1,100}$/),
    repository_id: id,
    repository_owner_id: id,
    run_id: id,
    run_attempt: z
      .string()
      .regex(/^[1-9][0-9]{0,5}$/)
      .transform(Number),
    event_name: short,
    ref: short,
    ref_type: short,
    workflow_ref: short,
    job_workflow_ref: short.optional(),
    check_run_id: id.optional(),
    runner_environment: short.optional(),
    sha: short.optional(),
    workflow_sha: short.optional(),
  });

/** Makes the verifier; each issuer's keys are fetched when first needed and at most once a cooldown. */
export function createVerifier(options: VerifierOptions): Verifier {
  const schema = claimsSchema(options.audience);
  const keys = new Map<string, JWTVerifyGetKey>(
    options.issuers.map((issuer) => [
      issuer,
      createRemoteJWKSet(new URL(`${issuer.replace(/\/$/, '')}/.well-known/jwks`), {
        cooldownDuration: options.cooldownMs ?? 30_000,
        timeoutDuration: options.timeoutMs ?? 5_000,
      }),
    ]),
  );
  return async (token) => {
    const issuer = allowedIssuer(token, keys);
    const found = keys.get(issuer);
    if (found === undefined) throw refused('issuer');
    const payload = await verified(token, found, issuer, options.audience);
    const claims = schema.safeParse(payload);
    if (!claims.success) throw refused(String(claims.error.issues[0]?.path[0] ?? 'claims'));
    const { data } = claims;
    // the workflow that runs is the one of the commit that is named: no later edit, no other file's version
    if (data.sha !== undefined && data.workflow_sha !== undefined && data.sha !== data.workflow_sha)
      throw refused('workflow_sha');
    return {
      issuer,
      tokenId: data.jti,
      expiresInS: Math.max(0, data.exp - Math.floor(Date.now() / 1000)),
      digest: createHash('sha256').update(token).digest('hex'),
      repositoryId: data.repository_id,
      ownerId: data.repository_owner_id,
      repository: data.repository,
      event: data.event_name,
      ref: data.ref,
      refType: data.ref_type,
      workflowRef: data.workflow_ref,
      jobWorkflowRef: data.job_workflow_ref ?? null,
      workflowRun: data.run_id,
      attempt: data.run_attempt,
      sha: data.sha ?? null,
      job: data.check_run_id ?? null,
      environment: data.runner_environment ?? null,
    };
  };
}

/** Checks 1 and 2: shape, algorithm and issuer, before anything is fetched. */
function allowedIssuer(token: string, keys: ReadonlyMap<string, unknown>): string {
  if (Buffer.byteLength(token) > EDGE_LIMITS.oidcBytes || token.split('.').length !== 3)
    throw refused('shape');
  try {
    if (!headerSchema.safeParse(decodeProtectedHeader(token)).success) throw refused('header');
    const { iss } = decodeJwt(token);
    if (typeof iss !== 'string' || !keys.has(iss)) throw refused('issuer');
    return iss;
  } catch (error) {
    throw error instanceof Refusal ? error : refused('shape');
  }
}

/** Checks 3 and 4: signature, audience, times. An answer that is no key set is the issuer's failure, not the caller's. */
async function verified(token: string, key: JWTVerifyGetKey, issuer: string, audience: string) {
  try {
    const { payload } = await jwtVerify(token, key, {
      issuer,
      audience,
      algorithms: ['RS256'],
      clockTolerance: EDGE_LIMITS.oidcToleranceMs / 1000,
      maxTokenAge: EDGE_LIMITS.oidcAgeMs / 1000,
      requiredClaims: ['exp', 'iat', 'nbf', 'jti'],
    });
    return payload;
  } catch (error) {
    if (error instanceof errors.JOSEError && !UNREACHABLE.has(error.code)) throw refused(reasonOf(error));
    throw new Fault('oidc_unavailable', 'the keys of the token issuer cannot be had', {
      cause: error,
      retryable: true,
    });
  }
}

const UNREACHABLE = new Set(['ERR_JWKS_TIMEOUT', 'ERR_JWKS_INVALID', 'ERR_JOSE_GENERIC']);

function reasonOf(error: errors.JOSEError): string {
  if (error instanceof errors.JWTExpired) return 'exp';
  if (error instanceof errors.JWTClaimValidationFailed) return error.claim;
  return 'signature';
}

/** Which check failed, and nothing of the token. */
function refused(check: string): Refusal {
  return new Refusal(
    'unauthorized',
    `the OIDC token was refused: ${/^[a-z_]{1,40}$/.test(check) ? check : 'claims'}`,
    'a fresh token of a workflow run with id-token: write, for our audience',
  );
}
