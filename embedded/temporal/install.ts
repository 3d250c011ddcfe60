import { execFile, spawn } from 'node:child_process';
import { createWriteStream } from 'node:fs';
import { chmod, mkdir, mkdtemp, readdir, rename, rm } from 'node:fs/promises';
import { basename, delimiter, dirname, join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { promisify } from 'node:util';
import { errorMessage } from '../../runtime/errors.js';

const run = promisify(execFile);

/** The version of the Temporal CLI that is installed; its server is the one the measurements in the documentation were made on. */
export const CLI_VERSION = 'v1.5.1';

/** Milliseconds: an offline machine goes on quickly, a slow line may take its time once bytes come. */
const LOOKUP_MS = 5_000;
const DOWNLOAD_MS = 300_000;
const GO_INSTALL_MS = 1_800_000;
const PROGRESS_MS = 10_000;
const ARCHITECTURES: Record<string, string> = { x64: 'amd64', arm64: 'arm64' };

/** Removes what an interrupted installation left beside the target. The caller holds the lock of the installation. */
export async function removeUnfinished(target: string): Promise<void> {
  const folder = dirname(target);
  for (const name of await readdir(folder)) {
    if (!name.startsWith(`${basename(target)}-download-`) && !name.startsWith(`${basename(target)}-build-`)) continue;
    await rm(join(folder, name), { recursive: true, force: true, maxRetries: 5 });
  }
}

/** Downloads the CLI from where Temporal's SDKs take theirs. @throws Error when that place cannot be reached */
export async function downloadTemporal(target: string, onLine: (line: string) => void): Promise<void> {
  const arch = ARCHITECTURES[process.arch];
  if (!arch) throw new Error(`there is no download for ${process.arch}`);
  const query = new URLSearchParams({ arch, platform: process.platform, format: 'tar.gz' });
  onLine(`Looking for Temporal ${CLI_VERSION} at temporal.download`);
  const { archiveUrl, fileToExtract } = await fetchInfo(`https://temporal.download/cli/${CLI_VERSION}?${query}`);
  await mkdir(dirname(target), { recursive: true });
  const workshop = await mkdtemp(`${target}-download-`);
  try {
    const archive = join(workshop, 'archive.tar.gz');
    const answer = await fetch(archiveUrl, { signal: AbortSignal.timeout(DOWNLOAD_MS) });
    if (!answer.ok || !answer.body) throw new Error(`${archiveUrl} answered ${answer.status}`);
    await withProgress(
      'Downloading Temporal',
      onLine,
      pipeline(Readable.fromWeb(answer.body), createWriteStream(archive)),
    );
    await run('tar', ['-xzf', archive, '-C', workshop, fileToExtract]);
    await chmod(join(workshop, fileToExtract), 0o755);
    await rename(join(workshop, fileToExtract), target);
  } finally {
    await rm(workshop, { recursive: true, force: true });
  }
}

/** Builds the CLI with Go's own tool. @throws Error when there is no Go or it fails */
export async function goInstallTemporal(target: string, onLine: (line: string) => void): Promise<void> {
  const module = `github.com/temporalio/cli/cmd/temporal@${CLI_VERSION}`;
  await mkdir(dirname(target), { recursive: true });
  const workshop = await mkdtemp(`${target}-build-`);
  try {
    onLine(`Building Temporal with "go install ${module}": about 4 to 5 minutes, once`);
    await withProgress('Building Temporal (4 to 5 minutes, once)', onLine, goInstall(module, workshop));
    await rename(join(workshop, 'temporal'), target);
  } finally {
    await rm(workshop, { recursive: true, force: true });
  }
}

async function fetchInfo(url: string): Promise<{ archiveUrl: string; fileToExtract: string }> {
  try {
    const answer = await fetch(url, { signal: AbortSignal.timeout(LOOKUP_MS) });
    if (!answer.ok) throw new Error(`it answered ${answer.status}`);
    return (await answer.json()) as { archiveUrl: string; fileToExtract: string };
  } catch (error) {
    const cause = error instanceof Error && error.cause ? error.cause : error;
    throw new Error(`temporal.download cannot be used: ${errorMessage(cause)}`, { cause: error });
  }
}

/** Resolves when Go has put the program into the folder; the end of what it printed is in the error otherwise. */
function goInstall(module: string, folder: string): Promise<void> {
  const path = `${process.env.PATH ?? ''}${delimiter}/usr/local/go/bin`;
  return new Promise((resolve, reject) => {
    const child = spawn('go', ['install', module], {
      cwd: folder,
      env: { ...process.env, PATH: path, GOBIN: folder, GOFLAGS: '' },
      stdio: ['ignore', 'ignore', 'pipe'],
      timeout: GO_INSTALL_MS,
    });
    let printed = '';
    child.stderr.on('data', (chunk: Buffer) => {
      printed = (printed + chunk.toString()).slice(-2_000);
    });
    child.once('error', (error) => reject(new Error(`go cannot be run: ${errorMessage(error)}`)));
    child.once('close', (code) => {
      if (code === 0) resolve();
      else reject(new Error(`go install ended with ${code}: ${printed.trim()}`));
    });
  });
}

/** Shows the elapsed time about every ten seconds until the work ends. */
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
