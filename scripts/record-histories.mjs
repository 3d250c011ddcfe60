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
const setup = join(root, 'test', 'setup');
/** Two folders below the root, like the sources that find `dist/` by their own place. */
const compiled = join(setup, '.record-histories.mjs');

await esbuild.build({
  entryPoints: [join(setup, 'record-histories.ts')],
  outfile: compiled,
  bundle: true,
  packages: 'external',
  format: 'esm',
  platform: 'node',
  target: 'node20',
});
try {
  const { recordHistories } = await import(pathToFileURL(compiled).href);
  await recordHistories(join(root, 'test', 'histories'));
} finally {
  rmSync(compiled, { force: true });
}
