/**
 * The closed set of error codes. Two classes, never confused: a `Refusal` is the caller's or a
 * person's fault and says what would be accepted; a `Fault` is ours, the network's or the machine's
 * and says whether trying again helps. Nothing recognises an error by its message text.
 */

/** Codes of what a caller or a person did wrong; each is stable and documented where it is thrown. */
export type RefusalCode =
  // policy and paths
  | 'config_invalid'
  | 'bad_owned'
  | 'bad_path'
  | 'bad_trailer'
  | 'bad_after'
  | 'dependency_cycle'
  | 'guarded'
  | 'not_supported'
  // requests
  | 'bad_request'
  | 'too_large'
  | 'unauthorized'
  | 'forbidden'
  | 'not_found'
  | 'bad_signature'
  | 'protocol_version'
  // runner identity and leases (LSE-3, RID-1, AUT-1)
  | 'owner_mismatch'
  | 'owner_invalid'
  | 'expired'
  | 'revoked'
  | 'superseded'
  | 'fenced'
  | 'conflict'
  | 'wrong_content'
  | 'bad_ticket'
  | 'provider_capacity'
  | 'budget'
  // commands
  | 'bad_command'
  | 'denied'
  | 'too_late'
  | 'rate_limited'
  | 'nothing_to_release'
  | 'too_many_reserved'
  | 'unknown_block'
  | 'unknown_finding'
  | 'lookup_failed';

/** Codes of what went wrong on our side or beyond it. */
export type FaultCode =
  | 'config_missing'
  | 'config_value'
  | 'database_unreachable'
  | 'database_refused'
  | 'schema_newer'
  | 'embedded_failed'
  | 'ledger_invalid'
  | 'ledger_unverifiable'
  | 'key_invalid'
  | 'row_invalid'
  | 'nested_unit_of_work'
  | 'run_missing'
  | 'bad_decision'
  | 'config-snapshot'
  | 'git_unavailable'
  | 'no_merge_base'
  | 'github_unavailable'
  | 'github_refused'
  | 'github_not_found'
  | 'github_rate_limited'
  | 'installation_gone'
  | 'permissions_missing'
  | 'oidc_unavailable'
  | 'server_unavailable'
  | 'server_refused'
  | 'lock_busy'
  | 'stopping'
  | 'bug';

/** What a caller or a person did wrong: `code` is stable, `accepted` says what would have been accepted. */
export class Refusal extends Error {
  override readonly name = 'Refusal';
  readonly code: RefusalCode;
  readonly accepted: string | undefined;
  constructor(code: RefusalCode, message: string, accepted?: string) {
    super(message);
    this.code = code;
    this.accepted = accepted;
  }
}

/** What went wrong on our side: `retryable` says whether the same call may succeed later, `retryAfterMs` when it was told. */
export class Fault extends Error {
  override readonly name = 'Fault';
  readonly code: FaultCode;
  readonly retryable: boolean;
  readonly retryAfterMs: number | undefined;
  constructor(
    code: FaultCode,
    message: string,
    options: { cause?: unknown; retryable?: boolean; retryAfterMs?: number } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.retryable = options.retryable ?? false;
    this.retryAfterMs = options.retryAfterMs;
  }
}
