import { type KeyObject, randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { exportJWK, type JWK, SignJWT } from 'jose';
import type { Job, WorkflowRun } from './actions/run.ts';
import type { Answer } from './http/call.ts';
import { Refused } from './http/call.ts';
import { keyPair } from './keys.ts';
import type { User } from './model.ts';
import type { Repository } from './repository.ts';
import type { World } from './world.ts';

// A Enterprise Server serves its issuer below this path of its own host (facts/github.md §9).
const ISSUER_PATH = '/_services/token';
const REQUEST_PATH = '/_services/pipelines/idtoken';
// facts/github.md §9: exp - iat = 300 s, nbf = iat - 600 s in the documentation's example.
const LIFETIME = 300;
const EARLIER = 600;

/** Claims of a token; ids are strings (facts/github.md §9). */
export type Claims = Readonly<Record<string, unknown>>;

/** The job that claims are about. */
export interface ClaimSource {
  readonly actor: User;
  readonly attempt: number;
  readonly environment: string | null;
  readonly event: string;
  readonly job: number;
  readonly number: number;
  /** Path of the workflow file. */
  readonly path: string;
  readonly ref: string;
  readonly run: number;
  readonly sha: string;
  /** Name of the workflow. */
  readonly workflow: string;
}

const ANY_JOB = {
  attempt: 1,
  environment: null,
  event: 'workflow_dispatch',
  job: 61_900_000_001,
  number: 1,
  path: '.github/workflows/countersign.yml',
  run: 31_900_000_001,
  sha: '0'.repeat(40),
  workflow: 'Countersign',
} as const;

/** The issuer of workflow identity: discovery, JWKS, and the endpoint that jobs ask. */
export class OidcIssuer {
  readonly world: World;
  readonly kid = randomUUID();
  readonly privateKey: KeyObject;
  readonly #publicKey: KeyObject;
  readonly #requests = new Map<string, { run: WorkflowRun; job: Job }>();
  /** Milliseconds by which its clock differs from the machine's: tokens of a skewed or a moved clock. */
  clockOffset = 0;
  /** How often the key set was fetched. */
  jwksFetches = 0;

  constructor(world: World) {
    this.world = world;
    const pair = keyPair('issuer');
    this.privateKey = pair.privateKey;
    this.#publicKey = pair.publicKey;
  }

  /** The `iss` of its tokens: the product's ACTIONS_OIDC_ISSUER. */
  get issuer(): string {
    return `${this.world.url}${ISSUER_PATH}`;
  }

  /** Where a job asks for tokens, and with what; the URL has a `?` because clients append `&audience=`. */
  admit(run: WorkflowRun, job: Job): { url: string; token: string } {
    const token = randomUUID();
    this.#requests.set(token, { run, job });
    return { url: `${this.world.url}${REQUEST_PATH}/${job.id}?api-version=2.0`, token };
  }

  /** The job has ended: its request token is worth nothing. */
  dismiss(job: Job): void {
    for (const [token, known] of this.#requests) if (known.job === job) this.#requests.delete(token);
  }

  /** Signs any claims, by default with this issuer's key and times; for tests of what a verifier refuses. */
  async mint(
    claims: Claims,
    options: { alg?: string; key?: KeyObject | Uint8Array; kid?: string } = {},
  ): Promise<string> {
    const now = Math.floor((Date.now() + this.clockOffset) / 1000);
    const times = { jti: randomUUID(), iss: this.issuer, nbf: now - EARLIER, iat: now, exp: now + LIFETIME };
    const all = Object.entries({ ...times, ...claims }).filter(([, value]) => value !== undefined);
    return new SignJWT(Object.fromEntries(all))
      .setProtectedHeader({ alg: options.alg ?? 'RS256', typ: 'JWT', kid: options.kid ?? this.kid })
      .sign(options.key ?? this.privateKey);
  }

  /** What a token of this job says. */
  claims(run: WorkflowRun, job: Job, audience: string): Claims {
    return this.claimsFor(run.repository, audience, {
      actor: run.actor,
      attempt: run.attempt,
      environment: job.environment,
      event: run.event,
      job: job.id,
      number: run.number,
      path: run.workflow.path,
      ref: run.ref,
      run: run.id,
      sha: run.headSha,
      workflow: run.workflow.name,
    });
  }

  /** What a token of any job of a repository would say; for tests that need none to run. */
  claimsFor(repository: Repository, audience: string, of: Partial<ClaimSource> = {}): Claims {
    const { owner } = repository;
    const source: ClaimSource = {
      ...ANY_JOB,
      actor: owner,
      ref: `refs/heads/${repository.defaultBranch}`,
      ...of,
    };
    const { actor, environment, ref } = source;
    const file = `${repository.fullName}/${source.path}@${ref}`;
    // Repositories made after 2026-07-15 have ids in their sub; `:` is escaped (facts/github.md §9).
    const context = environment === null ? `ref:${ref}` : `environment:${environment.replaceAll(':', '%3A')}`;
    return {
      aud: audience,
      sub: `repo:${owner.login}@${owner.id}/${repository.name}@${repository.id}:${context}`,
      actor: actor.login,
      actor_id: String(actor.id),
      base_ref: '',
      check_run_id: String(source.job),
      ...(environment === null ? {} : { environment }),
      event_name: source.event,
      head_ref: '',
      job_workflow_ref: file,
      job_workflow_sha: source.sha,
      ref,
      ref_protected: 'false',
      ref_type: ref.startsWith('refs/tags/') ? 'tag' : 'branch',
      repository: repository.fullName,
      repository_id: String(repository.id),
      repository_owner: owner.login,
      repository_owner_id: String(owner.id),
      repository_visibility: repository.private ? 'private' : 'public',
      run_attempt: String(source.attempt),
      run_id: String(source.run),
      run_number: String(source.number),
      runner_environment: 'github-hosted',
      sha: source.sha,
      workflow: source.workflow,
      workflow_ref: file,
      workflow_sha: source.sha,
    };
  }

  /** Serves the issuer's own paths; undefined for all others. */
  async serve(request: IncomingMessage, url: URL): Promise<Answer | undefined> {
    const { pathname } = url;
    if (pathname === `${ISSUER_PATH}/.well-known/openid-configuration`)
      return { status: 200, body: this.#discovery() };
    if (pathname === `${ISSUER_PATH}/.well-known/jwks`) {
      this.jwksFetches++;
      return { status: 200, body: { keys: [await this.#jwk()] } };
    }
    if (!pathname.startsWith(`${REQUEST_PATH}/`)) return undefined;
    const token = /^bearer\s+(\S+)$/i.exec(request.headers.authorization ?? '')?.[1] ?? '';
    const known = this.#requests.get(token);
    if (known === undefined || pathname !== `${REQUEST_PATH}/${known.job.id}`)
      throw new Refused(401, 'Unauthorized');
    const { run, job } = known;
    // Default audience: the URL of the repository's owner (facts/github.md §9).
    const audience = url.searchParams.get('audience') ?? `${this.world.url}/${run.repository.owner.login}`;
    return { status: 200, body: { value: await this.mint(this.claims(run, job, audience)) } };
  }

  #discovery() {
    return {
      issuer: this.issuer,
      jwks_uri: `${this.issuer}/.well-known/jwks`,
      subject_types_supported: ['public', 'pairwise'],
      response_types_supported: ['id_token'],
      id_token_signing_alg_values_supported: ['RS256'],
      scopes_supported: ['openid'],
      claims_supported: [
        'sub',
        'aud',
        'exp',
        'iat',
        'iss',
        'jti',
        'nbf',
        'repository_id',
        'run_id',
        'run_attempt',
      ],
    };
  }

  async #jwk(): Promise<JWK> {
    return { ...(await exportJWK(this.#publicKey)), kid: this.kid, alg: 'RS256', use: 'sig' };
  }
}
