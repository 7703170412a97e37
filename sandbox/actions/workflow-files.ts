import type { Repository } from '../repository.ts';
import type { World } from '../world.ts';
import type { WorkflowFile } from './run.ts';
import { workflowName } from './workflow.ts';

/** Workflow files as GitHub registers them, by repository and path. */
export class WorkflowFiles {
  readonly world: World;
  readonly #files: WorkflowFile[] = [];

  constructor(world: World) {
    this.world = world;
  }

  /** The registered file with an id or file name; null when the default branch lacks it (facts/github.md §7). */
  async file(repository: Repository, idOrName: string): Promise<WorkflowFile | null> {
    const known = this.#files.find(
      (one) => one.repositoryId === repository.id && String(one.id) === idOrName,
    );
    const path = known?.path ?? `.github/workflows/${idOrName.replace(/^\.github\/workflows\//, '')}`;
    const text = await this.read(repository, await repository.tip(), path);
    if (text === null) return null;
    return this.register(repository, path, text);
  }

  /** The registration of a file by its path, made when missing: runs of pull requests register what they bring. */
  register(repository: Repository, path: string, text: string): WorkflowFile {
    const same = this.#files.find((one) => one.repositoryId === repository.id && one.path === path);
    if (same !== undefined) return same;
    const file: WorkflowFile = {
      id: this.world.id('workflow'),
      repositoryId: repository.id,
      path,
      name: workflowName(text, path),
      createdAt: this.world.stamp(),
    };
    this.#files.push(file);
    return file;
  }

  /** A file's text at a commit, or null. */
  async read(repository: Repository, commit: string, path: string): Promise<string | null> {
    return (await repository.git.file(commit, path))?.toString() ?? null;
  }
}
