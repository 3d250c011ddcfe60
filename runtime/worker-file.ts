import { join, relative } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const ROOT = fileURLToPath(new URL('..', import.meta.url));

/**
 * The compiled file of a worker thread. Threads run JavaScript only: where tests run the sources, the thread's file is that of `dist/`.
 * @param name the file beside the caller's, with the ending `.js`
 * @param importer `import.meta.url` of the caller
 */
export function workerFile(name: string, importer: string): URL {
  const beside = new URL(name, importer);
  if (!importer.endsWith('.ts')) return beside;
  return pathToFileURL(join(ROOT, 'dist', relative(ROOT, fileURLToPath(beside))));
}
