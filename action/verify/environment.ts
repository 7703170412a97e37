/**
 * The environment of a verify command (VER-2): built from nothing. What the job has and a build needs is
 * on this list; what is not on it is not handed on. `ACTIONS_*`, `GITHUB_*` and `INPUT_*` never are: they hold
 * the job's tokens and the files by which a step speaks to the job.
 */

/** Variables of the job that a command gets, where they are set; docs/receipts.md lists them. */
export const HANDED_ON: readonly string[] = [
  'PATH',
  'HOME',
  'USER',
  'LOGNAME',
  'SHELL',
  'LANG',
  'LANGUAGE',
  'LC_ALL',
  'LC_CTYPE',
  'TZ',
  // where set-up actions put tools
  'RUNNER_OS',
  'RUNNER_ARCH',
  'RUNNER_TOOL_CACHE',
  'JAVA_HOME',
  'MAVEN_HOME',
  'GRADLE_HOME',
  'GOROOT',
  'GOPATH',
  'GOTOOLCHAIN',
  'CARGO_HOME',
  'RUSTUP_HOME',
  'RUSTUP_TOOLCHAIN',
  'DOTNET_ROOT',
  'PNPM_HOME',
  'pythonLocation',
  'PYTHONHOME',
  'VIRTUAL_ENV',
  'LD_LIBRARY_PATH',
  'PKG_CONFIG_PATH',
  'ANDROID_HOME',
  'ANDROID_SDK_ROOT',
  'CHROMEWEBDRIVER',
  'GECKOWEBDRIVER',
  // how the machine reaches the network
  'HTTP_PROXY',
  'HTTPS_PROXY',
  'NO_PROXY',
  'http_proxy',
  'https_proxy',
  'no_proxy',
  'SSL_CERT_FILE',
  'SSL_CERT_DIR',
  'NODE_EXTRA_CA_CERTS',
];

/** Handed on too, and another one in every job: by it GitHub's runner ends what outlives a job that it killed. */
export const TRACKING_VARIABLE = 'RUNNER_TRACKING_ID';

/** Variables that every command gets, and that say where it is. */
export const OUTPUT_VARIABLE = 'COUNTERSIGN_OUTPUT';
/** The name of the command, in its environment. */
export const COMMAND_VARIABLE = 'COUNTERSIGN_COMMAND';

/** A proxy's URL may carry a password: such a one is not handed on. */
function holdsPassword(value: string): boolean {
  return URL.canParse(value) && new URL(value).password !== '';
}

/** The environment of a command, and the part of it that is the same in every run, for its digest. */
export function commandEnvironment(of: {
  job: Readonly<Record<string, string>>;
  command: string;
  /** What the policy gives it. */
  env: Readonly<Record<string, string>>;
  ports: readonly { name: string; port: number }[];
  output: string;
  temp: string;
}): { env: Record<string, string>; lasting: Record<string, string> } {
  const lasting: Record<string, string> = {};
  for (const name of HANDED_ON) {
    const value = of.job[name];
    if (value !== undefined && !holdsPassword(value)) lasting[name] = value;
  }
  lasting['CI'] = 'true';
  lasting[COMMAND_VARIABLE] = of.command;
  Object.assign(lasting, of.env);
  const tracking = of.job[TRACKING_VARIABLE];
  return {
    lasting,
    env: {
      ...lasting,
      ...(tracking === undefined ? {} : { [TRACKING_VARIABLE]: tracking }),
      ...Object.fromEntries(of.ports.map(({ name, port }) => [name, String(port)])),
      TMPDIR: of.temp,
      [OUTPUT_VARIABLE]: of.output,
    },
  };
}
