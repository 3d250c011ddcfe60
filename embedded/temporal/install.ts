import { execFile, spawn } from 'node:child_process';
import { createWriteStream } from 'node:fs';
import { chmod, mkdir, mkdtemp, readdir, rename, rm } from 'node:fs/promises';
import { basename, delimiter, dirname, join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { promisify } from 'node:util';
import { errorMessage } from '../../runtime/errors.js';

const run = promisify(execFile);

/** The version of the Temporal CLI to install; the measurements in the documentation were made with its server. */
export const CLI_VERSION = 'v1.5.1';

/** The lookup is short so that an offline machine continues quickly; a slow download may take longer. */
const LOOKUP_MS = 5_000;
const DOWNLOAD_MS = 300_000;
const GO_INSTALL_MS = 1_800_000;
const PROGRESS_MS = 10_000;
const ARCHITECTURES: Record<string, string> = { x64: 'amd64', arm64: 'arm64' };

/** Removes the temporary folders of interrupted installations. The caller holds the installation lock. */
export async function removeTemporary(target: string): Promise<void> {
  const folder = dirname(target);
  for (const name of await readdir(folder)) {
    if (!name.startsWith(`${basename(target)}-download-`) && !name.startsWith(`${basename(target)}-build-`)) continue;
    await rm(join(folder, name), { recursive: true, force: true, maxRetries: 5 });
  }
}

/** Downloads the CLI from temporal.download, as the Temporal SDKs do. @throws Error when it cannot be reached */
export async function downloadTemporal(target: string, onLine: (line: string) => void): Promise<void> {
  const arch = ARCHITECTURES[process.arch];
  if (!arch) throw new Error(`there is no download for ${process.arch}`);
  const query = new URLSearchParams({ arch, platform: process.platform, format: 'tar.gz' });
  onLine(`Looking for Temporal ${CLI_VERSION} at temporal.download`);
  const { archiveUrl, fileToExtract } = await fetchInfo(`https://temporal.download/cli/${CLI_VERSION}?${query}`);
  await mkdir(dirname(target), { recursive: true });
  const temporary = await mkdtemp(`${target}-download-`);
  try {
    const archive = join(temporary, 'archive.tar.gz');
    const response = await fetch(archiveUrl, { signal: AbortSignal.timeout(DOWNLOAD_MS) });
    if (!response.ok || !response.body) throw new Error(`${archiveUrl} answered ${response.status}`);
    await withProgress(
      'Downloading Temporal',
      onLine,
      pipeline(Readable.fromWeb(response.body), createWriteStream(archive)),
    );
    await run('tar', ['-xzf', archive, '-C', temporary, fileToExtract]);
    await chmod(join(temporary, fileToExtract), 0o755);
    await rename(join(temporary, fileToExtract), target);
  } finally {
    await rm(temporary, { recursive: true, force: true });
  }
}

/**
 * Every module is checked against the public checksum database, whatever this user has set for other modules by `go env -w`: an empty variable would
 * leave that as it is, so patterns that fit nothing take its place. Of the download above only TLS says that it is Temporal's.
 */
const NO_MODULE = 'none.invalid';
const CHECKED = {
  GOFLAGS: '',
  GOSUMDB: 'sum.golang.org',
  GONOSUMDB: NO_MODULE,
  GOPRIVATE: NO_MODULE,
  GOINSECURE: NO_MODULE,
};

/** Builds the CLI with `go install`. @throws Error when Go is missing or fails */
export async function goInstallTemporal(target: string, onLine: (line: string) => void): Promise<void> {
  const module = `github.com/temporalio/cli/cmd/temporal@${CLI_VERSION}`;
  await mkdir(dirname(target), { recursive: true });
  const temporary = await mkdtemp(`${target}-build-`);
  try {
    onLine(`Building Temporal with "go install ${module}": about 4 to 5 minutes, once`);
    await withProgress('Building Temporal (4 to 5 minutes, once)', onLine, goInstall(module, temporary));
    await rename(join(temporary, 'temporal'), target);
  } finally {
    await rm(temporary, { recursive: true, force: true });
  }
}

async function fetchInfo(url: string): Promise<{ archiveUrl: string; fileToExtract: string }> {
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(LOOKUP_MS) });
    if (!response.ok) throw new Error(`it answered ${response.status}`);
    return (await response.json()) as { archiveUrl: string; fileToExtract: string };
  } catch (error) {
    const cause = error instanceof Error && error.cause ? error.cause : error;
    throw new Error(`temporal.download cannot be used: ${errorMessage(cause)}`, { cause: error });
  }
}

/** Resolves when Go has installed the program into the folder. @throws Error with the end of Go's output */
function goInstall(module: string, folder: string): Promise<void> {
  const path = `${process.env.PATH ?? ''}${delimiter}/usr/local/go/bin`;
  return new Promise((resolve, reject) => {
    const child = spawn('go', ['install', module], {
      cwd: folder,
      env: { ...process.env, PATH: path, GOBIN: folder, ...CHECKED },
      stdio: ['ignore', 'ignore', 'pipe'],
      timeout: GO_INSTALL_MS,
    });
    let output = '';
    child.stderr.on('data', (chunk: Buffer) => {
      output = (output + chunk.toString()).slice(-2_000);
    });
    child.once('error', (error) => reject(new Error(`go cannot be run: ${errorMessage(error)}`)));
    child.once('close', (code) => {
      if (code === 0) resolve();
      else reject(new Error(`go install ended with ${code}: ${output.trim()}`));
    });
  });
}

/** Prints the elapsed time every ten seconds until the work ends. */
async function withProgress<T>(what: string, onLine: (line: string) => void, work: Promise<T>): Promise<T> {
  const began = performance.now();
  const timer = setInterval(() => {
    onLine(`${what}: ${Math.round((performance.now() - began) / 1000)} s so far`);
  }, PROGRESS_MS);
  try {
    return await work;
  } finally {
    clearInterval(timer);
  }
}
