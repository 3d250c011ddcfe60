/**
 * Records `test/histories/*.json` again, on a new platform. Run it after an intended change of the workflows that no running workflow has to
 * survive:
 *
 *     npm run record-histories
 */
import { rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import * as esbuild from 'esbuild';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const folder = join(root, 'test', 'setup', 'histories');
/** Three folders below the root, like the sources that locate `dist/` relative to their own path. */
const compiled = join(folder, '.record-histories.mjs');

await esbuild.build({
  entryPoints: [join(folder, 'record-histories.ts')],
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
