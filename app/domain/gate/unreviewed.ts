/** Paths that are recorded and not reviewed (L0): which of them the policy lets through (BLK-7). */
import { decodePath, type WirePath } from '../path.ts';

/** Lockfiles and the names of the manifests they come from; a name that starts with a dot is an ending. */
const MANIFESTS: Readonly<Record<string, readonly string[]>> = {
  'package-lock.json': ['package.json'],
  'npm-shrinkwrap.json': ['package.json'],
  'yarn.lock': ['package.json'],
  'pnpm-lock.yaml': ['package.json', 'pnpm-workspace.yaml'],
  'bun.lock': ['package.json'],
  'bun.lockb': ['package.json'],
  'deno.lock': ['deno.json', 'deno.jsonc'],
  'Cargo.lock': ['Cargo.toml'],
  'go.sum': ['go.mod'],
  'go.work.sum': ['go.work', 'go.mod'],
  'poetry.lock': ['pyproject.toml'],
  'pdm.lock': ['pyproject.toml'],
  'uv.lock': ['pyproject.toml'],
  'Pipfile.lock': ['Pipfile'],
  'composer.lock': ['composer.json'],
  'Gemfile.lock': ['Gemfile', '.gemspec'],
  'mix.lock': ['mix.exs'],
  'flake.lock': ['flake.nix'],
  'pubspec.lock': ['pubspec.yaml'],
  'Package.resolved': ['Package.swift'],
  'Podfile.lock': ['Podfile'],
  'packages.lock.json': ['.csproj', '.fsproj', '.vbproj', 'Directory.Packages.props'],
  'gradle.lockfile': ['build.gradle', 'build.gradle.kts', 'libs.versions.toml'],
  '.terraform.lock.hcl': ['.tf'],
  'Chart.lock': ['Chart.yaml'],
};

/** What decides whether an unreviewed path may stand. */
export interface UnreviewedPath {
  readonly path: WirePath;
  /** The reason of its level, `null` where none was recorded. */
  readonly reason: string | null;
}

/**
 * Those of the unreviewed paths that the policy does not let through: a reason outside of
 * `gate.allow_unreviewed`, none at all, or a lockfile whose manifest is not among the reviewed paths.
 */
export function refusedUnreviewed(
  unreviewed: readonly UnreviewedPath[],
  reviewed: readonly WirePath[],
  allowed: readonly string[],
): UnreviewedPath[] {
  const changed = reviewed.map(split);
  return unreviewed.filter(({ path, reason }) => {
    if (reason === null || !allowed.includes(reason)) return true;
    return reason === 'lockfile' && !hasManifest(path, changed);
  });
}

interface Split {
  readonly folder: string;
  readonly name: string;
}

function split(path: WirePath): Split {
  const text = decodePath(path).toString('latin1');
  const cut = text.lastIndexOf('/') + 1;
  return { folder: text.slice(0, cut), name: text.slice(cut) };
}

/** A workspace has one lockfile above many manifests: the manifest may lie beside it or below. */
function hasManifest(lockfile: WirePath, changed: readonly Split[]): boolean {
  const { folder, name } = split(lockfile);
  const manifests = Object.hasOwn(MANIFESTS, name) ? MANIFESTS[name] : undefined;
  if (manifests === undefined) return false;
  return changed.some(
    (file) =>
      file.folder.startsWith(folder) &&
      manifests.some(
        (manifest) => file.name === manifest || (manifest.startsWith('.') && file.name.endsWith(manifest)),
      ),
  );
}
