/** What was told of a verify command, as a row keeps it (VER-2). */
import { putTexts, textRef } from '../../../db/store/text.ts';
import type { RowData } from '../../domain/ledger/row-kinds.ts';
import type { WirePath } from '../../domain/path.ts';
import { redactor } from '../../domain/redact.ts';
import type { ReceiptDetail } from '../../protocol/receipt.ts';
import type { RunUnit } from '../append-rows.ts';

/** Bytes of the paths of a changed tree that a row keeps; it counts the rest. */
const PATH_BYTES = 8_000;

/** A detail as a row keeps it: structure here, texts in the erasable store, redacted once more (REV-8). */
export async function keepTold(
  unit: Pick<RunUnit, 'tx'>,
  detail: ReceiptDetail,
): Promise<NonNullable<RowData<'receipt.ended'>['told']>> {
  const { redact } = redactor();
  const texts: string[] = [];
  const ref = (text: string) => {
    const kept = redact(text);
    texts.push(kept);
    return textRef(kept);
  };
  const { stdout, stderr, artifacts, mutated } = detail;
  const paths = within(mutated.items);
  const told = {
    environment: detail.environment_sha256,
    input: detail.input_sha256,
    exit: detail.exit,
    signal: detail.signal,
    ms: detail.ms,
    tree: detail.tree,
    mutated: paths,
    mutated_count: mutated.items.length + mutated.more,
    stdout: { bytes: stdout.bytes, sha256: stdout.sha256, tail: ref(stdout.tail) },
    stderr: { bytes: stderr.bytes, sha256: stderr.sha256, tail: ref(stderr.tail) },
    found: artifacts.found.items.map(({ pattern, files, sha256 }) => ({
      pattern: ref(pattern),
      files,
      sha256,
    })),
    missing: artifacts.missing.items.map(ref),
    missing_count: artifacts.missing.items.length + artifacts.missing.more,
  };
  await putTexts(unit.tx, texts);
  return told;
}

function within(paths: readonly WirePath[]): WirePath[] {
  const kept: WirePath[] = [];
  let left = PATH_BYTES;
  for (const path of paths.slice(0, 50)) {
    left -= Buffer.byteLength(JSON.stringify(path)) + 1;
    if (left < 0) break;
    kept.push(path);
  }
  return kept;
}
