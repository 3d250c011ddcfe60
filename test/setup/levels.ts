import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';

/**
 * The least that a test file needs: `unit` no server, `record` the run's Postgres or Temporal, `platform` a platform that runs as a process of
 * its own.
 */
export type Level = 'unit' | 'record' | 'platform';

const STARTS_PLATFORM = /test\/setup\/platform\/platform-process\.ts$/;
/** A file that runs the platform by itself. */
const SPAWNS_PLATFORM = /dist\/(start|examples)|bench\/campaign/;
const USES_SERVERS = /inject\('(postgresUrl|temporalAddress)'\)/;
/** Imports of types alone load nothing. */
const LOCAL_IMPORT = /^(?:import|export) (?!type )[^;]*? from '(\.[^']+)'|import\('(\.[^']+)'\)/gm;

/** The test files of a checkout with their levels, told by what they import. @param root the checkout */
export function testLevels(root: string): Map<string, Level> {
  const read = cachedReader();
  const folders = ['test', join('sdk', 'adapters', 'test')];
  const files = folders.flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' }).map((path) => join(folder, path)),
  );
  const tests = files.filter((path) => path.endsWith('.test.ts')).sort();
  return new Map(tests.map((path) => [path, levelOf(join(root, path), root, read)]));
}

function levelOf(file: string, root: string, read: (path: string) => SourceFile | undefined): Level {
  let level: Level = 'unit';
  const seen = new Set<string>();
  const pending = [file];
  for (let path = pending.pop(); path; path = pending.pop()) {
    if (seen.has(path)) continue;
    seen.add(path);
    if (STARTS_PLATFORM.test(relative(root, path))) return 'platform';
    const source = read(path);
    if (source?.spawnsPlatform) return 'platform';
    if (source?.usesServers) level = 'record';
    pending.push(...(source?.imports ?? []));
  }
  return level;
}

interface SourceFile {
  /** Absolute paths of files in `test/` that it loads. */
  imports: string[];
  usesServers: boolean;
  spawnsPlatform: boolean;
}

/** Reads each file once; the product's own sources are not followed. */
function cachedReader(): (path: string) => SourceFile | undefined {
  const known = new Map<string, SourceFile | undefined>();
  return (path) => {
    if (!known.has(path)) known.set(path, readSource(path));
    return known.get(path);
  };
}

function readSource(path: string): SourceFile | undefined {
  if (!/\/test\/.*\.ts$/.test(path)) return undefined;
  const text = readFileSync(path, 'utf8');
  const imports = [...text.matchAll(LOCAL_IMPORT)].map(([, named = '', loaded]) => {
    return resolve(dirname(path), loaded ?? named).replace(/\.js$/, '.ts');
  });
  return { imports, usesServers: USES_SERVERS.test(text), spawnsPlatform: SPAWNS_PLATFORM.test(text) };
}
