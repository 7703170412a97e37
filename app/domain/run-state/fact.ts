/** A verified row as the fold reads it: the body's fields that a verdict rests on, typed by kind. */
import type { Actor, Cause } from '../ledger/row-fields.ts';
import type { RowData, RowKind } from '../ledger/row-kinds.ts';

/** A verified row of one kind. `at` is ISO product time; `block` is the block it concerns, if any. */
export interface FactOf<K extends RowKind> {
  readonly seq: number;
  readonly at: string;
  readonly kind: K;
  readonly block: string | null;
  readonly actor: Actor;
  readonly cause: Cause;
  readonly data: RowData<K>;
}

/** A verified row of any kind; `kind` tells which. */
export type Fact = { [K in RowKind]: FactOf<K> }[RowKind];
