import { execFile } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { readFile, stat, truncate, writeFile } from 'node:fs/promises';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { connect } from 'node:tls';
import { promisify } from 'node:util';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type CertificateFiles, ensureCertificate } from '../../embedded/certificate.js';
import { scratch } from './host.js';

const run = promisify(execFile);
let folder: Awaited<ReturnType<typeof scratch>>;

beforeEach(async () => {
  folder = await scratch();
});

afterEach(() => folder.remove());

async function serve<T>(files: CertificateFiles, use: (port: number) => Promise<T>): Promise<T> {
  const server = createServer(
    { cert: await readFile(files.certFile), key: await readFile(files.keyFile) },
    (_, answer) => answer.end('hello'),
  );
  await once(server.listen(0, '127.0.0.1'), 'listening');
  try {
    return await use((server.address() as AddressInfo).port);
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

async function handshake(port: number, ca: Buffer, servername: string): Promise<boolean> {
  const socket = connect({ port, host: '127.0.0.1', ca, servername: servername.includes(':') ? '' : servername });
  try {
    await once(socket, 'secureConnect');
    return socket.authorized;
  } finally {
    socket.destroy();
  }
}

const fingerprint = async (path: string) => new X509Certificate(await readFile(path)).fingerprint256;

describe('local certificate', () => {
  test('is accepted by Node and curl for every name in it, and by nobody who does not trust the authority', async () => {
    const files = await ensureCertificate({ dataDir: folder.dir, hosts: ['fleet.example.test'] });
    const ca = await readFile(files.caFile);
    await serve(files, async (port) => {
      expect(await handshake(port, ca, 'localhost')).toBe(true);
      expect(await handshake(port, ca, 'fleet.example.test')).toBe(true);
      await expect(handshake(port, ca, 'other.example.test')).rejects.toMatchObject({
        code: 'ERR_TLS_CERT_ALTNAME_INVALID',
      });
      const other = await scratch();
      const stranger = await ensureCertificate({ dataDir: other.dir });
      await expect(handshake(port, await readFile(stranger.caFile), 'localhost')).rejects.toThrow();
      await other.remove();
      const { stdout } = await run('curl', [
        '-sS',
        '--noproxy',
        '*',
        '--cacert',
        files.caFile,
        `https://127.0.0.1:${port}`,
      ]);
      expect(stdout).toBe('hello');
    });
  });

  test('is valid for 825 days at most, with the authority above it, and keeps its key private', async () => {
    const { caFile, certFile, keyFile } = await ensureCertificate({ dataDir: folder.dir });
    const leaf = new X509Certificate(await readFile(certFile));
    const days = (Date.parse(leaf.validTo) - Date.parse(leaf.validFrom)) / 86_400_000;
    expect(days).toBeLessThanOrEqual(825);
    expect(leaf.ca).toBe(false);
    expect(leaf.subjectAltName).toBe('DNS:localhost, IP Address:127.0.0.1, IP Address:0:0:0:0:0:0:0:1');
    expect(new X509Certificate(await readFile(caFile)).ca).toBe(true);
    expect((await stat(keyFile)).mode & 0o777).toBe(0o600);
    await expect(run('openssl', ['verify', '-x509_strict', '-CAfile', caFile, certFile])).resolves.toMatchObject({
      stdout: `${certFile}: OK\n`,
    });
  });

  test('stays the same until the hosts change, and the authority stays even then', async () => {
    const first = await ensureCertificate({ dataDir: folder.dir, hosts: ['::1', 'a.test'] });
    const [ca, leaf] = [await fingerprint(first.caFile), await fingerprint(first.certFile)];
    await ensureCertificate({ dataDir: folder.dir, hosts: ['a.test'] });
    expect(await fingerprint(first.certFile)).toBe(leaf);
    await ensureCertificate({ dataDir: folder.dir, hosts: ['b.test'] });
    expect(await fingerprint(first.certFile)).not.toBe(leaf);
    expect(await fingerprint(first.caFile)).toBe(ca);
  });

  test('is renewed when less than 30 days are left, by the same authority', async () => {
    const day = 86_400_000;
    const made = await ensureCertificate({ dataDir: folder.dir, nowMs: Date.now() - 796 * day });
    const [ca, leaf] = [await fingerprint(made.caFile), await fingerprint(made.certFile)];
    await ensureCertificate({ dataDir: folder.dir, nowMs: Date.now() - 2 * day });
    expect(await fingerprint(made.certFile)).toBe(leaf);
    await ensureCertificate({ dataDir: folder.dir });
    expect(await fingerprint(made.certFile)).not.toBe(leaf);
    expect(await fingerprint(made.caFile)).toBe(ca);
  });

  test.each(['cut short', 'of another certificate'])('is made anew when its key is %s', async (damage) => {
    const first = await ensureCertificate({ dataDir: folder.dir });
    if (damage === 'cut short') await truncate(first.keyFile, 20);
    else await writeFile(first.keyFile, await readFile(first.caFile.replace('ca.pem', 'ca-key.pem')));
    const second = await ensureCertificate({ dataDir: folder.dir });
    await serve(second, async (port) => {
      expect(await handshake(port, await readFile(second.caFile), 'localhost')).toBe(true);
    });
  });
});
