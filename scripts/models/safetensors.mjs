import { readFileSync } from 'node:fs';

/**
 * Reads the 32-bit tensors of a safetensors file: a length, a JSON table, then the data.
 * @returns {(name: string) => { shape: number[], data: Float32Array }} throws for a name that the file lacks
 */
export function readSafetensors(path) {
  const file = readFileSync(path);
  const headerBytes = Number(file.readBigUInt64LE(0));
  const table = JSON.parse(file.toString('utf8', 8, 8 + headerBytes));
  return (name) => {
    const entry = table[name];
    if (entry?.dtype !== 'F32') throw new Error(`${path} has no 32-bit tensor ${name}`);
    const [start, end] = entry.data_offsets.map((offset) => offset + 8 + headerBytes);
    const copy = Uint8Array.prototype.slice.call(file, start, end); // aligned, unlike the file's own bytes
    return { shape: entry.shape, data: new Float32Array(copy.buffer) };
  };
}
