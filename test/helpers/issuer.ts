/** A local OIDC issuer over real HTTP that counts how often its keys are fetched. */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { exportJWK, generateKeyPair, SignJWT } from 'jose';

/** An issuer in this process. */
export interface TestIssuer {
  readonly url: string;
  /** Fetches of the key set so far. */
  fetches(): number;
  /** Makes the key set unavailable (503) or available again. */
  breakKeys(broken: boolean): void;
  /** Signs claims; `undefined` removes one. */
  mint(claims: Record<string, unknown>, header?: Record<string, unknown>): Promise<string>;
  readonly publicPem: string;
  close(): Promise<void>;
}

/** Starts one on a free port. */
export async function testIssuer(): Promise<TestIssuer> {
  const { publicKey, privateKey } = await generateKeyPair('RS256', { extractable: true });
  const jwk = { ...(await exportJWK(publicKey)), kid: 'k1', alg: 'RS256', use: 'sig' };
  let fetches = 0;
  let broken = false;
  const server: Server = createServer((request, response) => {
    if (request.url?.endsWith('/.well-known/jwks') === true) {
      fetches++;
      response.writeHead(broken ? 503 : 200, { 'content-type': 'application/json' });
      response.end(broken ? '{}' : JSON.stringify({ keys: [jwk] }));
      return;
    }
    response.writeHead(404).end();
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    url,
    fetches: () => fetches,
    breakKeys: (value) => {
      broken = value;
    },
    async mint(claims, header = {}) {
      const now = Math.floor(Date.now() / 1000);
      const all = { iss: url, iat: now, nbf: now - 60, exp: now + 300, ...claims };
      const kept = Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined));
      return new SignJWT(kept)
        .setProtectedHeader({ alg: 'RS256', typ: 'JWT', kid: 'k1', ...header })
        .sign(privateKey);
    },
    publicPem: JSON.stringify(jwk),
    close: () =>
      new Promise((done) => {
        server.closeAllConnections();
        server.close(() => done());
      }),
  };
}
