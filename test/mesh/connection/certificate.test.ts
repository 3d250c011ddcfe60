import { X509Certificate } from 'node:crypto';
import { mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect } from 'node:tls';
import { expect, it, onTestFinished } from 'vitest';
import { Loop } from '../../../runtime/loop.js';
import { selfSigned } from '../../runtime/self-signed.js';
import { freshDatabase } from '../../setup/database.js';
import { until } from '../../setup/until.js';
import { certificate, MeshFixture } from '../mesh-fixture.js';

/** The fingerprint of the certificate that a new TLS connection is shown. */
function shownBy(port: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: '127.0.0.1', rejectUnauthorized: false }, () => {
      resolve(socket.getPeerCertificate().fingerprint256);
      socket.destroy();
    });
    socket.once('error', reject);
  });
}

const fingerprintOf = (cert: string) => new X509Certificate(cert).fingerprint256;
const isFailing = () => [...Loop.failing].some(({ name }) => name === 'certificate');

it('uses a replaced certificate for new connections, keeps living ones, and keeps the one in use where files are broken', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'fleet-tls-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  const [certFile, keyFile] = [join(folder, 'tls.crt'), join(folder, 'tls.key')];
  const replace = async (file: string, text: string) => {
    await writeFile(`${file}.new`, text);
    await rename(`${file}.new`, file);
  };
  const read = async () => ({ cert: await readFile(certFile, 'utf8'), key: await readFile(keyFile, 'utf8') });
  const [first, second] = [certificate, selfSigned()];
  await replace(certFile, first.cert);
  await replace(keyFile, first.key);
  const database = await freshDatabase();
  onTestFinished(() => database.drop());
  const fixture = await new MeshFixture(database).reset();
  await fixture.register('agent-1');
  const tls = { ...(await read()), read };
  const node = await fixture.node({ tls, clocks: { certificateMs: 10 } });
  const { agent } = await node.join('agent-1');
  expect(await shownBy(node.port)).toBe(fingerprintOf(first.cert));

  // The certificate without its key.
  await replace(certFile, second.cert);
  await until(isFailing, { what: 'the loop fails' });
  expect(await shownBy(node.port)).toBe(fingerprintOf(first.cert));
  await replace(certFile, 'no certificate');
  expect(await shownBy(node.port)).toBe(fingerprintOf(first.cert));

  await replace(keyFile, second.key);
  await replace(certFile, second.cert);
  const isNew = async () => (await shownBy(node.port)) === fingerprintOf(second.cert);
  await until(isNew, { what: 'the new certificate' });
  await until(() => !isFailing(), { what: 'the loop works again' });
  const endsAtMs = Date.parse(new X509Certificate(second.cert).validTo);
  expect(node.server.certificateEndsAtMs).toBe(endsAtMs);
  agent.send('ping', { nonce: 'living' });
  expect((await agent.nextOfType('pong')).payload).toEqual({ nonce: 'living' });
});
