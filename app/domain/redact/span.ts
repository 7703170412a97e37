/** A stretch of text that holds a secret: offsets in UTF-16 units, end exclusive, and what it is. */
export type SecretSpan = Readonly<{ start: number; end: number; kind: string }>;
