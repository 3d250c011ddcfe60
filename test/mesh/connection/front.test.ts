import { once } from 'node:events';
import { connect } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { Front } from '../../../mesh/server/front.js';
import { localCertificate } from '../../sdk/certificate.js';

it('does not wait for a client that begins a TLS handshake and falls silent', async () => {
  const { cert, key } = await localCertificate();
  const front = new Front({
    tls: { cert, key },
    handshakeTimeoutMs: 50,
    trustProxyCidrs: [],
    corsOrigins: [],
    onRequest: (_request, response) => void response.end(),
    onUpgrade: (_request, socket) => void socket.destroy(),
  });
  const port = await front.listen('127.0.0.1', 0);
  onTestFinished(() => front.close());
  const client = connect(port, '127.0.0.1');
  onTestFinished(() => void client.destroy());
  const closed = once(client, 'close');
  client.on('error', () => undefined); // a reset is as good an end
  client.resume().write(Buffer.from([0x16, 3, 1, 2, 0]));
  await closed;
  expect(client.bytesRead).toBe(0);
});
