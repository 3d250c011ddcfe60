import type { LookupAddress } from 'node:dns';
import { expect, onTestFinished, test, vi } from 'vitest';
import { createOutbound, type Outbound, type OutboundOptions } from '../../http/outbound.js';
import { httpServer } from './loopback-server.js';

function outbound(options: Partial<OutboundOptions> = {}): Outbound {
  const client = createOutbound({ allowCidrs: [], ...options });
  onTestFinished(() => client.close());
  return client;
}

const greet = () => httpServer((_request, response) => response.setHeader('connection', 'close').end('hello'));
const v4 = (...addresses: string[]): LookupAddress[] => addresses.map((address) => ({ address, family: 4 }));
const refused = { code: 'FORBIDDEN_ADDRESS', requestSent: false };
const LIMIT = { timeoutMs: 5_000 };
const expectRefused = (client: Outbound, url: string) =>
  expect(client.request(url, LIMIT)).rejects.toMatchObject(refused);

const PRIVATE_HOSTS = [
  '127.0.0.1',
  '127.0.0.1.',
  '127.1',
  '127.255.255.254',
  '2130706433',
  '0x7f.1',
  '0x7f000001',
  '0177.0.0.1',
  '%31%32%37.0.0.1',
  '１２７.0.0.1',
  '0.0.0.0',
  '0',
  '[::]',
  '[::1]',
  '[::ffff:127.0.0.1]',
  '[::ffff:7f00:1]',
  '[::7f00:1]',
  '[::ffff:0:7f00:1]',
  '[64:ff9b::7f00:1]',
  '[2002:7f00:1::]',
  '[fe80::1]',
  '[fc00::1]',
  '[fd00:ec2::254]',
  '[fec0::1]',
  '[ff02::1]',
  '[2001:db8::1]',
  '[4000::1]',
  '10.0.0.1',
  '100.64.0.1',
  '169.254.169.254',
  '172.16.0.1',
  '192.0.0.1',
  '192.168.0.1',
  '198.18.0.1',
  '224.0.0.1',
  '240.0.0.1',
  '255.255.255.255',
];

test.each(PRIVATE_HOSTS)('refuses the private address %s without opening a connection', async (host) => {
  const server = await greet();
  const client = outbound();
  const url = `http://${host}:${server.port}/`;
  expect(() => client.checkUrl(url)).toThrow(expect.objectContaining(refused));
  await expectRefused(client, url);
  await expect(client.stream(url, { headersTimeoutMs: 5_000 })).rejects.toMatchObject(refused);
  expect(server.connections()).toBe(0);
});

test.each([
  'http://93.184.215.14/',
  'https://[2606:4700:4700::1111]/',
  'https://[::ffff:8.8.8.8]:8443/',
  'http://name.example/',
])('the URL %s passes the check of literal addresses', (url) => expect(outbound().checkUrl(url)).toBeUndefined());

test.each([
  'file:///etc/passwd',
  'ftp://name.example/',
  'data:,x',
  'http://user@name.example/',
  'http://:pass@name.example/',
  '//name.example/',
  'http://',
  '',
])('the URL "%s" is not one that can be requested', async (url) => {
  const client = outbound({ allowCidrs: ['0.0.0.0/0'] });
  const error = { code: 'BAD_URL', requestSent: false };
  expect(() => client.checkUrl(url)).toThrow(expect.objectContaining(error));
  await expect(client.request(url, LIMIT)).rejects.toMatchObject(error);
});

test.each(['http', 'https'])('refuses a name that resolves to a private address, for %s', async (scheme) => {
  const server = await greet();
  const client = outbound({ lookup: async () => v4('127.0.0.1') });
  const url = `${scheme}://name.example:${server.port}/`;
  await expectRefused(client, url);
  await expectRefused(outbound(), `${scheme}://localhost:${server.port}/`);
  expect(server.connections()).toBe(0);
});

test('refuses a name with one private address among allowed ones', async () => {
  const server = await greet();
  for (const addresses of [v4('127.0.0.1', '127.0.0.2'), v4('127.0.0.2', '127.0.0.1'), []]) {
    const client = outbound({ allowCidrs: ['127.0.0.1/32'], lookup: async () => addresses });
    await expectRefused(client, `http://name.example:${server.port}/`);
  }
  expect(server.connections()).toBe(0);
});

test('connects to what it checked, and checks again when the name is rebound', async () => {
  const server = await greet();
  const lookup = vi.fn().mockResolvedValueOnce(v4('127.0.0.1')).mockResolvedValue(v4('127.0.0.2'));
  const client = outbound({ allowCidrs: ['127.0.0.1/32'], lookup });
  const url = `http://name.example:${server.port}/`;
  await expect(client.request(url, LIMIT)).resolves.toMatchObject({ status: 200 });
  expect(lookup).toHaveBeenCalledTimes(1);
  await expectRefused(client, url);
  expect(server.connections()).toBe(1);
});

test('sends nothing when the peer of the open socket is not the address that was allowed', async () => {
  const server = await greet();
  const client = outbound({ allowCidrs: ['0.0.0.0/32'] });
  await expectRefused(client, `http://0.0.0.0:${server.port}/`);
  expect(server.requests).toEqual([]);
});

test.each([
  ['127.0.0.0/8', '127.0.0.1'],
  ['127.0.0.0/8', '[::ffff:7f00:1]'],
  ['::ffff:127.0.0.0/104', '127.0.0.1'],
])('allowCidrs %s opens %s', async (cidr, host) => {
  const server = await greet();
  const client = outbound({ allowCidrs: [cidr] });
  expect((await client.request(`http://${host}:${server.port}/`, LIMIT)).status).toBe(200);
  expect(() => client.checkUrl('http://[::7f00:1]/')).toThrow(expect.objectContaining(refused));
  expect(() => client.checkUrl('http://10.0.0.1/')).toThrow(expect.objectContaining(refused));
});

test('refuses to start with a range that is none', () => {
  expect(() => createOutbound({ allowCidrs: ['127.0.0.1/33'] })).toThrow(TypeError);
  expect(() => createOutbound({ allowCidrs: ['localhost'] })).toThrow(TypeError);
});

test('the log names the refused address, the error does not', async () => {
  const warn = vi.fn();
  const client = outbound({ log: { warn }, lookup: async () => v4('10.1.2.3') });
  const error = await client.request('http://name.example/', LIMIT).catch((thrown: Error) => thrown);
  expect(warn).toHaveBeenCalledExactlyOnceWith(
    { host: 'name.example', address: '10.1.2.3' },
    'outbound address refused',
  );
  expect(String(error)).not.toContain('10.1.2.3');
});
