import { execFile } from 'node:child_process';
import { access, chmod, constants, mkdir, mkdtemp, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { DataConverter } from '@temporalio/common';
import { TestWorkflowEnvironment } from '@temporalio/testing';
import { waitForLock } from '../embedded/lock-file.js';
import { userCacheDir } from '../runtime/cache-dir.js';

const run = promisify(execFile);
const VERSION = '1.38.0';
const MAVEN_MS = 600_000;

/**
 * The path of a program that runs Temporal's Java test server, which skips time. Its jars are fetched with Maven into the user's cache
 * folder, once for every checkout.
 * @throws Error naming what is missing: Java, Maven or the repository
 */
export async function ensureTimeSkippingServer(): Promise<string> {
  const folder = join(userCacheDir(), `temporal-test-server-${VERSION}`);
  const program = join(folder, 'temporal-test-server');
  if (await isExecutable(program)) return program;
  await requireProgram('java', '-version');
  const lock = await waitForLock(`${folder}.lock`, ({ pid }) =>
    process.stderr.write(`Process ${pid} is fetching the Temporal test server; waiting for it\n`),
  );
  try {
    if (!(await isExecutable(program))) await fetchServer(folder);
    return program;
  } finally {
    await lock.release();
  }
}

/** Starts it, on a busy machine at the second or third try: each has only the five seconds that Temporal's library gives it. */
export async function startTimeSkipping(dataConverter: DataConverter = {}): Promise<TestWorkflowEnvironment> {
  const path = await ensureTimeSkippingServer();
  const start = () =>
    TestWorkflowEnvironment.createTimeSkipping({
      server: { executable: { type: 'existing-path', path } },
      client: { dataConverter },
    });
  return start().catch(start).catch(start);
}

/** The folder appears under its name when it is complete. */
async function fetchServer(folder: string): Promise<void> {
  await requireProgram('mvn', '-version');
  const workshop = await mkdtemp(`${folder}-`);
  try {
    await mkdir(join(workshop, 'lib'));
    await writeFile(join(workshop, 'pom.xml'), POM);
    const goal = [
      'dependency:copy-dependencies',
      `-DoutputDirectory=${join(workshop, 'lib')}`,
      '-DincludeScope=runtime',
    ];
    await run('mvn', ['-B', '-q', '-f', join(workshop, 'pom.xml'), ...goal], { timeout: MAVEN_MS });
    const jars = await readdir(join(workshop, 'lib'));
    if (!jars.includes(`temporal-test-server-${VERSION}.jar`)) throw new Error('Maven did not bring the test server');
    await writeFile(join(workshop, 'temporal-test-server'), WRAPPER);
    await chmod(join(workshop, 'temporal-test-server'), 0o755);
    await rm(folder, { recursive: true, force: true });
    await rename(workshop, folder);
  } finally {
    await rm(workshop, { recursive: true, force: true });
  }
}

const POM = `<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>local</groupId>
  <artifactId>time-skipping</artifactId>
  <version>1</version>
  <dependencies>
    <dependency>
      <groupId>io.temporal</groupId>
      <artifactId>temporal-test-server</artifactId>
      <version>${VERSION}</version>
    </dependency>
  </dependencies>
</project>
`;

const WRAPPER = `#!/bin/sh
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
exec java -cp "$here/lib/*" io.temporal.testserver.TestServer "$@"
`;

async function requireProgram(name: string, argument: string): Promise<void> {
  await run(name, [argument]).catch((cause: unknown) => {
    throw new Error(
      `${name} is needed for tests that skip time, and does not run here: install it (Java 11 or later, Maven 3)`,
      {
        cause,
      },
    );
  });
}

async function isExecutable(path: string): Promise<boolean> {
  return access(path, constants.X_OK).then(
    () => true,
    () => false, // absent: not fetched yet
  );
}
