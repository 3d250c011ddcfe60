import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { basename } from 'node:path';

/** The SHA-256 of a file, in hex. */
export async function sha256(path) {
  const hash = createHash('sha256');
  for await (const chunk of createReadStream(path)) hash.update(chunk);
  return hash.digest('hex');
}

/** Throws unless a file has this SHA-256. */
export async function checkSha256(path, expected) {
  const found = await sha256(path);
  if (found !== expected) throw new Error(`${basename(path)} has the SHA-256 ${found} instead of ${expected}`);
}
