/** Opens the sample pull request of the demo. */
import { workflowFile } from '../../app/domain/workflow.ts';
import type { Pull } from '../pull.ts';
import { baseFiles, fixCommits, pullCommits, samplePolicy } from './sample.ts';
import type { Stage } from './stage.ts';

/** An open pull request, what to tell about it, and how to mend it (null: nobody does). */
export interface Opened {
  readonly pull: Pull;
  readonly said: readonly string[];
  readonly fix: (() => Promise<string>) | null;
}

/** Makes the tea shop's repository with policy and workflow, and opens a pull request with faults. */
export async function openSample({ gh, app, owner, author, model, server }: Stage): Promise<Opened> {
  const repository = await gh.createRepository({
    owner,
    name: 'tea-shop',
    files: {
      ...baseFiles,
      '.github/countersign.yml': samplePolicy(model.url),
      '.github/workflows/countersign.yml': workflowFile({
        serverUrl: server.url,
        ref: 'countersign-dev/countersign@v0',
        keys: ['SCRIPTED_MODEL_KEY'],
      }),
    },
    collaborators: [[author, 'write']],
  });
  repository.secrets['SCRIPTED_MODEL_KEY'] = 'a key that the scripted model does not ask for';
  repository.requireCheck('countersign', app);
  await gh.installApp(app, repository);
  for (const { message, files } of pullCommits())
    await repository.commit({ branch: 'coupons', author, message, files });
  const pull = await repository.openPull({ head: 'coupons', user: author, title: 'Coupons' });
  return {
    pull,
    said: [
      `${repository.fullName}#${pull.number}: 4 commits, 2 named blocks, a rename, a deletion,`,
      'a leaked token (secretlint), a loose comparison (biome), a wrong total (the scripted model)',
    ],
    async fix() {
      let sha = pull.head.sha;
      for (const { message, files } of fixCommits) sha = await pull.push({ message, files });
      return sha;
    },
  };
}
