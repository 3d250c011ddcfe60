import { execFile, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { createReadStream, createWriteStream } from 'node:fs';
import { chmod, mkdir, mkdtemp, readdir, rename, rm } from 'node:fs/promises';
import { basename, delimiter, dirname, join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { promisify } from 'node:util';
import { errorMessage } from '../../runtime/errors.js';

const run = promisify(execFile);

/** The version of the Temporal CLI to install; the measurements in the documentation were made with its server. */
export const CLI_VERSION = 'v1.5.1';

/** A release of the CLI and the SHA-256 that its archive must have. */
export interface Archive {
  url: string;
  sha256: string;
}

/** The sums of the archives of this version's release, by `process.platform` and Go's name of the architecture. They change with `CLI_VERSION`. */
const SHA256: Record<string, string> = {
  linux_amd64: 'ddc95e08b0b076efd4ea9733a3f488eb7d2be875f8834e616cd2a37358b4852d',
  linux_arm64: 'bd1b0db9f18b051026de8bf6cc1505f2510f14bbb7a8b9a4a91fff46c77454f5',
  darwin_amd64: 'bbb73e2a31135abe50a1f1cdb35030c42961df618e8ce9c60ae89f201540c5d9',
  darwin_arm64: 'cca01b7ea35ad56e2a328d9ae596bf716bd22313ef63c7a761c88354457c2415',
};

/** The first answer must come soon, so that an offline machine continues quickly; a slow download may take longer. */
const ANSWER_MS = 5_000;
const DOWNLOAD_MS = 300_000;
const GO_INSTALL_MS = 1_800_000;
const PROGRESS_MS = 10_000;
const ARCHITECTURES: Record<string, string> = { x64: 'amd64', arm64: 'arm64' };

/** The archive for a machine. @throws Error where there is none */
export function archiveFor(platform: string, arch: string): Archive {
  const machine = `${platform}_${ARCHITECTURES[arch]}`;
  const sha256 = SHA256[machine];
  if (!sha256) throw new Error(`there is no download for ${platform} on ${arch}`);
  const release = `https://github.com/temporalio/cli/releases/download/${CLI_VERSION}`;
  return { url: `${release}/temporal_cli_${CLI_VERSION.slice(1)}_${machine}.tar.gz`, sha256 };
}

/** Removes the temporary folders of interrupted installations. The caller holds the installation lock. */
export async function removeTemporary(target: string): Promise<void> {
  const folder = dirname(target);
  for (const name of await readdir(folder)) {
    if (!name.startsWith(`${basename(target)}-download-`) && !name.startsWith(`${basename(target)}-build-`)) continue;
    await rm(join(folder, name), { recursive: true, force: true, maxRetries: 5 });
  }
}

/** Downloads the CLI's release. Nothing of it is unpacked before its SHA-256 is right. @throws Error when it cannot be had, or is another file */
export async function downloadTemporal(
  target: string,
  onLine: (line: string) => void,
  { url, sha256 } = archiveFor(process.platform, process.arch),
): Promise<void> {
  onLine(`Looking for Temporal ${CLI_VERSION} at ${new URL(url).host}`);
  const body = await openDownload(url);
  await mkdir(dirname(target), { recursive: true });
  const temporary = await mkdtemp(`${target}-download-`);
  try {
    const archive = join(temporary, 'archive.tar.gz');
    await withProgress('Downloading Temporal', onLine, pipeline(body, createWriteStream(archive)));
    const found = await sha256Of(archive);
    if (found !== sha256)
      throw new Error(
        `${url} has the SHA-256 ${found} instead of ${sha256}, so something on the way has changed it; it was not run`,
      );
    await run('tar', ['-xzf', archive, '-C', temporary, 'temporal']);
    await chmod(join(temporary, 'temporal'), 0o755);
    await rename(join(temporary, 'temporal'), target);
  } finally {
    await rm(temporary, { recursive: true, force: true });
  }
}

/**
 * Every module is checked against the public checksum database, whatever this user has set for other modules by `go env -w`: an empty variable would
 * leave that as it is, so patterns that fit nothing take its place.
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

async function openDownload(url: string): Promise<Readable> {
  const unanswered = new AbortController();
  const timer = setTimeout(() => unanswered.abort(new Error(`no answer within ${ANSWER_MS} ms`)), ANSWER_MS);
  try {
    const response = await fetch(url, {
      signal: AbortSignal.any([unanswered.signal, AbortSignal.timeout(DOWNLOAD_MS)]),
    });
    if (!response.ok || !response.body) throw new Error(`it answered ${response.status}`);
    return Readable.fromWeb(response.body);
  } catch (error) {
    const cause = error instanceof Error && error.cause ? error.cause : error;
    throw new Error(`${url} cannot be used: ${errorMessage(cause)}`, { cause: error });
  } finally {
    clearTimeout(timer);
  }
}

async function sha256Of(file: string): Promise<string> {
  const hash = createHash('sha256');
  await pipeline(createReadStream(file), hash);
  return hash.digest('hex');
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
