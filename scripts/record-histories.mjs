/**
 * Records `test/histories/*.json` on a new platform: those that are named, for a course that is new; without names all, after an intended change
 * of the workflows that no running workflow has to survive.
 *
 *     npm run record-histories [-- NAME...]
 */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import * as esbuild from 'esbuild';

const root = join(import.meta.dirname, '..');
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
  await recordHistories(join(root, 'test', 'histories'), process.argv.slice(2));
} finally {
  rmSync(compiled, { force: true });
}
