import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { archiveFor, downloadTemporal } from '../../embedded/temporal/install.js';
import { scratch } from './host.js';

const print = () => undefined;

/** A server with a small archive, which holds a file `temporal`. */
async function released(dir: string): Promise<{ url: string; sha256: string }> {
  await writeFile(join(dir, 'temporal'), '#!/bin/sh\n');
  execFileSync('tar', ['-czf', join(dir, 'archive.tar.gz'), '-C', dir, 'temporal']);
  const archive = await readFile(join(dir, 'archive.tar.gz'));
  const server = createServer((_request, response) => response.end(archive)).listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}/archive.tar.gz`, sha256: createHash('sha256').update(archive).digest('hex') };
}

test('an archive with the SHA-256 of the release is installed; another one is refused and leaves nothing', async () => {
  const { dir } = await scratch();
  const archive = await released(dir);
  const target = join(dir, 'cache', 'temporal');
  const other = { ...archive, sha256: '0'.repeat(64) };
  await expect(downloadTemporal(target, print, other)).rejects.toThrow(
    `${archive.url} has the SHA-256 ${archive.sha256} instead of ${other.sha256}`,
  );
  expect(await readdir(join(dir, 'cache'))).toEqual([]);
  await downloadTemporal(target, print, archive);
  expect(await readdir(join(dir, 'cache'))).toEqual(['temporal']);
});

test.each(
  ['linux', 'darwin'].flatMap((platform) =>
    [
      ['x64', 'amd64'],
      ['arm64', 'arm64'],
    ].map((arch) => [platform, ...arch]),
  ),
)('there is a sum for %s on %s', (platform = '', arch = '', released = '') => {
  const { url, sha256 } = archiveFor(platform, arch);
  expect(url).toMatch(new RegExp(`/v([\\d.]+)/temporal_cli_\\1_${platform}_${released}\\.tar\\.gz$`));
  expect(sha256).toMatch(/^[0-9a-f]{64}$/);
});

test('a machine without a release builds the program instead of running another', () => {
  expect(() => archiveFor('linux', 'riscv64')).toThrow('there is no download for linux on riscv64');
  expect(() => archiveFor('win32', 'x64')).toThrow('there is no download for win32 on x64');
});
