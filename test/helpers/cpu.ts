/**
 * CPU milliseconds that this process has used so far: the difference shows a blow-up on a machine of
 * any load. A bound on it lies far above what linear work costs and far below what quadratic work would.
 */
export function cpuNow(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}
