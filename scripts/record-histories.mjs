/**
 * Records `test/histories/*.json` again, from a platform that it starts for this. To be run when the workflows were changed on
 * purpose and no running workflow has to survive the change:
 *
 *     npm run record-histories
 */
import { rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import * as esbuild from 'esbuild';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const folder = join(root, 'test', 'histories');
/** Two folders below the root, like the sources that find `dist/` by their own place. */
const compiled = join(folder, '.record.mjs');

await esbuild.build({
  entryPoints: [join(folder, 'record.ts')],
  outfile: compiled,
  bundle: true,
  packages: 'external',
  format: 'esm',
  platform: 'node',
  target: 'node20',
});
try {
  const { recordHistories } = await import(pathToFileURL(compiled).href);
  await recordHistories(folder);
} finally {
  rmSync(compiled, { force: true });
}
