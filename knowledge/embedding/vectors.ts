/**
 * A vector scaled to length 1.
 * @returns undefined for one that has no direction: all zero, or with a member that is not a finite number
 */
export function unitVector(values: ArrayLike<number>): Float32Array | undefined {
  const vector = Float32Array.from(values);
  let squares = 0;
  for (const value of vector) squares += value * value;
  const length = Math.sqrt(squares);
  if (!Number.isFinite(length) || length === 0) return undefined;
  for (let index = 0; index < vector.length; index++) vector[index] = (vector[index] as number) / length;
  return vector;
}
