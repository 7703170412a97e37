import { createVerify, randomBytes } from 'node:crypto';
import type { Installation, Permissions, Token, User } from '../model.ts';
import type { World } from '../world.ts';
import { type Bearer, Refused } from './call.ts';

const HOUR = 3_600_000;
const DRIFT_SECONDS = 60;

// Credentials live by the machine's clock, whatever advance() did: Octokit and jose judge them by it as well.

/** Finds out who sent an Authorization header; 401 for what is not valid. */
export function authenticate(world: World, header: string | undefined): Bearer {
  if (header === undefined) return { kind: 'nobody' };
  const [scheme = '', credential = ''] = header.split(/\s+/);
  if (!/^(bearer|token)$/i.test(scheme)) throw new Refused(401, 'Bad credentials');
  if (/^ey[^.]*\.[^.]*\.[^.]*$/.test(credential)) return { kind: 'app', app: appOfJwt(world, credential) };
  const token = findToken(world, credential);
  if (token === null) throw new Refused(401, 'Bad credentials');
  return { kind: 'token', token };
}

/** A token that has not expired and whose installation still exists. */
export function findToken(world: World, credential: string): Token | null {
  const token = world.tokens.get(credential);
  if (token === undefined || token.expiresAt <= Date.now()) return null;
  return token.installation?.deleted === true ? null : token;
}

// GK, and docs "Generating a JSON Web Token (JWT) for a GitHub App": RS256, iss = app id (Octokit sends a number:
// facts/stack.md §3c) or client id, iat in the past, exp at most 10 minutes ahead. GitHub's own wordings.
function appOfJwt(world: World, jwt: string) {
  const undecodable = new Refused(401, 'A JSON web token could not be decoded');
  const [head = '', body = '', signature = ''] = jwt.split('.');
  let header: Record<string, unknown>;
  let claims: Record<string, unknown>;
  try {
    header = JSON.parse(Buffer.from(head, 'base64url').toString());
    claims = JSON.parse(Buffer.from(body, 'base64url').toString());
  } catch {
    throw undecodable;
  }
  if (header['alg'] !== 'RS256') throw undecodable;
  const issuer = String(claims['iss']);
  const app = world.apps.find(
    (candidate) => String(candidate.id) === issuer || candidate.clientId === issuer,
  );
  if (app === undefined || app.publicKey === '') throw new Refused(401, 'Integration not found');
  const valid = createVerify('RSA-SHA256')
    .update(`${head}.${body}`)
    .verify(app.publicKey, Buffer.from(signature, 'base64url'));
  if (!valid) throw undecodable;
  const now = Date.now() / 1000;
  const { iat, exp } = claims;
  if (typeof iat !== 'number' || iat > now + DRIFT_SECONDS)
    throw new Refused(
      401,
      "'Issued at' claim ('iat') must be an Integer representing the time that the assertion was issued",
    );
  if (typeof exp !== 'number' || exp < now - DRIFT_SECONDS)
    throw new Refused(
      401,
      "'Expiration time' claim ('exp') must be a numeric value representing the future time at which the assertion expires",
    );
  if (exp > now + 600 + DRIFT_SECONDS)
    throw new Refused(401, "'Expiration time' claim ('exp') is too far in the future");
  return app;
}

/**
 * Makes an installation or job token: 1 hour, in the long `ghs_APPID_JWT` form that is being rolled out, so that code
 * that expects 40 characters fails (facts/github.md §0).
 */
export function issueToken(
  world: World,
  init: {
    kind: 'installation' | 'job';
    appId: number;
    installation: Installation | null;
    user: User;
    permissions: Permissions;
    repositoryIds: ReadonlySet<number> | null;
    lifetime?: number;
  },
): Token {
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
  const jwt = [
    part({ typ: 'JWT', alg: 'RS256' }),
    part({ iss: init.appId }),
    randomBytes(256).toString('base64url'),
  ];
  const token: Token = {
    token: `ghs_${init.appId}_${jwt.join('.')}`,
    kind: init.kind,
    installation: init.installation,
    user: init.user,
    permissions: { metadata: 'read', ...init.permissions },
    repositoryIds: init.repositoryIds,
    expiresAt: Date.now() + (init.lifetime ?? HOUR),
  };
  world.tokens.set(token.token, token);
  return token;
}
