import { execFile } from 'node:child_process';
import { appendFileSync, cpSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { FUNCTION_SCHEMA } from '../../../db/migrate.js';
import { withClient } from '../with-client.js';

const run = promisify(execFile);
const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const MIGRATIONS = join('db', 'migrations');

/**
 * The release before this one. Until the first release, migrations may change in place, and such a database is not upgraded: then this is to be
 * the newest commit that has today's. Afterwards it is the tag of the last release.
 */
const PREVIOUS_RELEASE = 'ee02618e7746f775f8cbc74edbdbb6df41abe8c7';

/** A change of the schema as a release may bring it. Its name sorts behind all others. */
const NEXT_MIGRATION = `
  ALTER TABLE messages ADD COLUMN of_next_release text;
  ALTER TABLE running_messages ADD COLUMN of_next_release text;
  ALTER TABLE agents ADD COLUMN of_next_release text DEFAULT 'is there'`;

/** A build that runs beside others. */
export interface Release {
  /** What is started. */
  start: string;
  /** The Postgres schema of its functions. */
  functionSchema: string;
}

function folderWithModules(folder: string): string {
  mkdirSync(folder);
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
  return folder;
}

function thisBuildIn(folder: string): string {
  cpSync(join(ROOT, 'dist'), join(folderWithModules(folder), 'dist'), { recursive: true });
  return folder;
}

async function releaseIn(folder: string): Promise<Release> {
  const migrate = pathToFileURL(join(folder, 'dist', 'db', 'migrate.js')).href;
  const module = (await import(`${migrate}?${performance.now()}`)) as { FUNCTION_SCHEMA: string };
  return { start: join(folder, 'dist', 'start.js'), functionSchema: module.FUNCTION_SCHEMA };
}

/** Whether a database of that checkout can be migrated by this one. */
function isUpgradable(checkout: string): boolean {
  const read = (root: string, name: string) => readFileSync(join(root, MIGRATIONS, name), 'utf8');
  const own = readdirSync(join(ROOT, MIGRATIONS)).sort();
  const before = readdirSync(join(checkout, MIGRATIONS)).sort();
  return before.every((name, place) => own[place] === name && read(ROOT, name) === read(checkout, name));
}

/** Checks the commit out of this repository and builds it, in a few seconds. @returns false where this is not a repository that has it */
async function checkOut(commit: string, folder: string): Promise<boolean> {
  const git = (...args: string[]) => run('git', ['-C', ROOT, ...args]);
  const isKnown = await git('cat-file', '-e', `${commit}^{commit}`).then(
    () => true,
    () => false,
  );
  if (!isKnown) return false;
  folderWithModules(folder);
  await git('archive', '--output', join(folder, 'checkout.tar'), commit);
  await run('tar', ['-xf', join(folder, 'checkout.tar'), '-C', folder]);
  return true;
}

/**
 * The build of the release before, or where it cannot be had or upgraded, this one's with other functions; standard error says so.
 * @throws Error in CI, where the commit is missing
 * @param runDir where it is put
 */
export async function previousRelease(runDir: string): Promise<Release> {
  const folder = join(runDir, 'previous-release');
  const isThere = await checkOut(PREVIOUS_RELEASE, folder);
  if (!isThere && process.env.CI)
    throw new Error(`the previous release ${PREVIOUS_RELEASE} is not in this checkout: fetch the whole history`);
  if (isThere && isUpgradable(folder)) {
    await run(process.execPath, [join(folder, 'scripts', 'build.mjs')], { cwd: folder });
    const release = await releaseIn(folder);
    return release.functionSchema === FUNCTION_SCHEMA ? withOtherFunctions(folder) : release;
  }
  const why = isThere ? 'its migrations were changed in place' : 'this checkout does not have it';
  process.stderr.write(`[test] ${PREVIOUS_RELEASE} is not the previous release: ${why}. This build stands for it\n`);
  return withOtherFunctions(thisBuildIn(join(runDir, 'previous-build')));
}

/** The same functions in a schema of another name, which follows from their text. */
function withOtherFunctions(folder: string): Promise<Release> {
  const functions = join(folder, 'dist', 'db', 'functions');
  const [first] = readdirSync(functions).filter((name) => name.endsWith('.sql'));
  appendFileSync(join(functions, first as string), '-- the release before\n');
  return releaseIn(folder);
}

/** This build with one more migration: the next release. @param runDir where it is put */
export async function nextRelease(runDir: string): Promise<Release> {
  const folder = join(runDir, 'next-release');
  thisBuildWith(folder, '9999_next_release.sql', NEXT_MIGRATION);
  return releaseIn(folder);
}

/** This build with one more migration. @returns the path of its `db/migrate.js` */
export function thisBuildWith(folder: string, name: string, sql: string): string {
  const dist = join(thisBuildIn(folder), 'dist');
  writeFileSync(join(dist, MIGRATIONS, name), sql);
  return join(dist, 'db', 'migrate.js');
}

/** Makes a database of the tests empty, so that the release that starts first makes its tables. */
export async function empty(databaseUrl: string): Promise<void> {
  const sql = `DROP SCHEMA public, ${FUNCTION_SCHEMA} CASCADE; CREATE SCHEMA public; GRANT USAGE ON SCHEMA public TO PUBLIC`;
  await withClient(databaseUrl, (client) => client.query(sql));
}
