/** docs/limits.md, made of the table of numbers (OPS-10): its test holds the page to this text. */
import { LIMITS, type Limit } from '../limits.ts';

/** The page as Markdown. */
export function limitsPage(): string {
  const rows = Object.entries<Limit>(LIMITS).map(([name, limit]) => {
    const value = (n: number) => shown(name, n);
    const bounds = limit.min === limit.max ? '' : `${value(limit.min)} to ${value(limit.max)}`;
    return `| \`${name}\` | ${value(limit.default)} | ${bounds} | ${limit.says} |`;
  });
  return `# Numbers

Every bound and time that a rule names, as the program has it (\`app/domain/limits.ts\`; this page is made of it).
Where there are bounds, a policy, an input of the Action or a setting may choose between them; the others are fixed.
Rows of the ledger are kept for ever.

| name | default | bounds | what it is |
|---|---|---|---|
${rows.join('\n')}
`;
}

const TIMES = [
  [86_400_000, 'd'],
  [3_600_000, 'h'],
  [60_000, 'min'],
  [1_000, 's'],
] as const;
const SIZES = [
  [1_073_741_824, 'GiB'],
  [1_048_576, 'MiB'],
  [1_024, 'KiB'],
] as const;

/** A number with its unit, which the end of its name tells; the largest unit that leaves a whole number. */
function shown(name: string, value: number): string {
  if (name.endsWith('Days')) return `${value} d`;
  const units = name.endsWith('Ms') ? TIMES : name.endsWith('Bytes') ? SIZES : [];
  const unit = units.find(([size]) => value >= size && value % size === 0);
  if (unit !== undefined) return `${value / unit[0]} ${unit[1]}`;
  return name.endsWith('Ms') && value !== 0 ? `${value} ms` : String(value);
}
