import type { CommitObject } from '../git/objects.ts';
import type { GitRepository } from '../git/repository.ts';
import type { Json } from '../model.ts';
import type { Repository } from '../repository.ts';
import { nodeId } from '../world.ts';
import { userJson } from './accounts.ts';

const FIELDS = ['%T', '%P', '%an', '%ae', '%aI', '%cn', '%ce', '%cI', '%B'];

/** Commits as GitHub's `commit`, in the order of the ids. */
export async function commitsJson(repository: Repository, ids: readonly string[]): Promise<Json[]> {
  const { git } = repository;
  const plain = ids.map((id) => git.objects.commit(id));
  const commits = plain.every((commit) => commit !== null) ? plain : await readCommits(git, ids);
  return commits.map((commit, i) => commitJson(repository, ids[i] ?? '', commit));
}

async function readCommits(git: GitRepository, ids: readonly string[]): Promise<CommitObject[]> {
  const format = `--format=${FIELDS.join('%x00')}%x00%x01`;
  const args = ['log', '--no-walk=unsorted', '--stdin', format];
  const out = (await git.run(args, `${ids.join('\n')}\n`)).toString();
  return out
    .split('\0\x01')
    .map((record) => record.replace(/^\n/, '').split('\0'))
    .filter((fields) => fields.length === FIELDS.length)
    .map(([tree = '', parents = '', an = '', ae = '', ad = '', cn = '', ce = '', cd = '', message = '']) => ({
      tree,
      parents: parents.split(' ').filter(Boolean),
      author: { name: an, email: ae, date: new Date(ad) },
      committer: { name: cn, email: ce, date: new Date(cd) },
      message,
    }));
}

function commitJson(
  repository: Repository,
  sha: string,
  { tree, parents, author: written, committer: put, message }: CommitObject,
): Json {
  const { world, fullName } = repository;
  const api = `${world.apiUrl}/repos/${fullName}`;
  const html = `${world.url}/${fullName}/commit`;
  const author = world.userByEmail(written.email);
  const committer = world.userByEmail(put.email);
  return {
    sha,
    node_id: nodeId('C', `${repository.id}:${sha}`),
    commit: {
      author: { name: written.name, email: written.email, date: utc(written.date) },
      committer: { name: put.name, email: put.email, date: utc(put.date) },
      message: message.replace(/\n+$/, ''),
      tree: { sha: tree, url: `${api}/git/trees/${tree}` },
      url: `${api}/git/commits/${sha}`,
      comment_count: 0,
      verification: {
        verified: false,
        reason: 'unsigned',
        signature: null,
        payload: null,
        verified_at: null,
      },
    },
    url: `${api}/commits/${sha}`,
    html_url: `${html}/${sha}`,
    comments_url: `${api}/commits/${sha}/comments`,
    author: author === undefined ? null : userJson(world, author),
    committer: committer === undefined ? null : userJson(world, committer),
    parents: parents.map((parent) => ({
      sha: parent,
      url: `${api}/commits/${parent}`,
      html_url: `${html}/${parent}`,
    })),
  };
}

function utc(date: Date): string {
  return date.toISOString().replace(/\.\d+Z$/, 'Z');
}

/** A commit as GitHub's `simple-commit`, or null when the repository lacks it. */
export async function simpleCommitJson(repository: Repository, sha: string): Promise<Json | null> {
  if ((await repository.git.commitId(sha)) === null) return null;
  const [full] = await commitsJson(repository, [sha]);
  if (full === undefined) return null;
  const commit = full['commit'] as { tree: { sha: string }; message: string; author: Json; committer: Json };
  return {
    id: sha,
    tree_id: commit.tree.sha,
    message: commit.message,
    timestamp: commit.author['date'],
    author: { name: commit.author['name'], email: commit.author['email'] },
    committer: { name: commit.committer['name'], email: commit.committer['email'] },
  };
}
