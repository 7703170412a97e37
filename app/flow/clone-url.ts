/** Where git reads a repository. */
import type { RepositoryAddress } from '../github/port.ts';
import type { FlowSettings } from './deps.ts';

/** The clone URL of a repository under its present name; it holds no token. */
export function cloneUrl(
  settings: Pick<FlowSettings, 'serverUrl'>,
  repository: Pick<RepositoryAddress, 'owner' | 'name'>,
): string {
  return `${settings.serverUrl}/${repository.owner}/${repository.name}.git`;
}
