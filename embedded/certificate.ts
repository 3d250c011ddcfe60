import { createPrivateKey, X509Certificate as NodeCertificate, randomBytes, type webcrypto } from 'node:crypto';
import { chmod, mkdir } from 'node:fs/promises';
import { isIP } from 'node:net';
import { join } from 'node:path';
import 'reflect-metadata'; // @peculiar/x509 does not load without it
import {
  AuthorityKeyIdentifierExtension,
  BasicConstraintsExtension,
  ExtendedKeyUsage,
  ExtendedKeyUsageExtension,
  KeyUsageFlags,
  KeyUsagesExtension,
  PemConverter,
  SubjectAlternativeNameExtension,
  SubjectKeyIdentifierExtension,
  X509Certificate,
  X509CertificateGenerator,
} from '@peculiar/x509';
import { readIfExists, writeAtomic } from './atomic-file.js';

const DAY_MS = 86_400_000;
const AUTHORITY_DAYS = 3_650;
/** Apple's systems refuse server certificates that are valid for longer than 825 days. */
const SERVER_DAYS = 825;
const RENEW_DAYS = 30;
/** Set back, so that a clock that is a little behind accepts a new certificate. */
const CLOCK_SKEW_MS = 3_600_000;
const CURVE = { name: 'ECDSA', namedCurve: 'P-256' };
const SIGNATURE = { name: 'ECDSA', hash: 'SHA-256' };
const ALWAYS = ['localhost', '127.0.0.1', '::1'];

/** Paths of PEM files. */
export interface CertificateFiles {
  /** The local authority: what a client trusts (`ca` in Node, `curl --cacert`). */
  caFile: string;
  certFile: string;
  keyFile: string;
}

interface Pair {
  certificate: string;
  key: string;
}

/**
 * A server certificate for localhost, 127.0.0.1, ::1 and the given hosts, from an authority of this data directory. Both are made when
 * they are missing or damaged; the certificate anew when less than 30 days are left or a host is not in it, the authority only near its
 * own end, because clients hold on to it.
 * @param options.nowMs the time to judge by, in milliseconds since 1970; the clock's when absent
 */
export async function ensureCertificate(options: {
  dataDir: string;
  hosts?: string[];
  nowMs?: number;
}): Promise<CertificateFiles> {
  const { nowMs = Date.now() } = options;
  const folder = join(options.dataDir, 'tls');
  await mkdir(folder, { recursive: true });
  await chmod(folder, 0o755);
  const hosts = [...new Set([...ALWAYS, ...(options.hosts ?? [])])];
  const authority = await stored(
    folder,
    'ca',
    (pair) => lasts(pair, SERVER_DAYS + RENEW_DAYS, nowMs),
    () => makeAuthority(nowMs),
  );
  const usable = (pair: Pair) =>
    lasts(pair, RENEW_DAYS, nowMs) && isIssuedBy(pair, authority) && namesOnly(pair, hosts);
  await stored(folder, 'server', usable, () => makeServer(authority, hosts, nowMs));
  return {
    caFile: certificateFile(folder, 'ca'),
    certFile: certificateFile(folder, 'server'),
    keyFile: keyFile(folder, 'server'),
  };
}

/** The pair on disk when it is whole and the check likes it, else a new one. A crash between the two files is seen as damage. */
async function stored(
  folder: string,
  name: string,
  isUsable: (pair: Pair) => boolean,
  make: () => Promise<Pair>,
): Promise<Pair> {
  const certificate = await readIfExists(certificateFile(folder, name));
  const key = await readIfExists(keyFile(folder, name));
  if (certificate && key && belongTogether({ certificate, key }) && isUsable({ certificate, key })) {
    return { certificate, key };
  }
  const made = await make();
  await writeAtomic(keyFile(folder, name), made.key, 0o600);
  await writeAtomic(certificateFile(folder, name), made.certificate, 0o644);
  return made;
}

function certificateFile(folder: string, name: string): string {
  return join(folder, `${name}.pem`);
}

function keyFile(folder: string, name: string): string {
  return join(folder, `${name}-key.pem`);
}

function belongTogether({ certificate, key }: Pair): boolean {
  try {
    return new NodeCertificate(certificate).checkPrivateKey(createPrivateKey(key));
  } catch {
    return false; // a file that does not parse is damaged, and is made anew
  }
}

function lasts({ certificate }: Pair, days: number, nowMs: number): boolean {
  return Date.parse(new NodeCertificate(certificate).validTo) - nowMs > days * DAY_MS;
}

function isIssuedBy({ certificate }: Pair, authority: Pair): boolean {
  const ca = new NodeCertificate(authority.certificate);
  const server = new NodeCertificate(certificate);
  return server.checkIssued(ca) && server.verify(ca.publicKey);
}

function namesOnly({ certificate }: Pair, hosts: string[]): boolean {
  const found = new X509Certificate(certificate).getExtension(SubjectAlternativeNameExtension)?.names.items ?? [];
  const wanted = alternativeNames(hosts);
  const key = (name: { type: string; value: string }) => `${name.type}:${name.value}`;
  const present = new Set(found.map(key));
  return found.length === wanted.length && wanted.every((name) => present.has(key(name)));
}

async function makeAuthority(nowMs: number): Promise<Pair> {
  const keys = await newKeys();
  const certificate = await X509CertificateGenerator.createSelfSigned({
    serialNumber: serialNumber(),
    // Two authorities of one machine must not look alike to a client that holds both.
    name: [{ CN: [`Agent Fleet local authority ${randomBytes(4).toString('hex')}`] }],
    ...validity(AUTHORITY_DAYS, nowMs),
    keys,
    signingAlgorithm: SIGNATURE,
    extensions: [
      new BasicConstraintsExtension(true, 0, true),
      new KeyUsagesExtension(KeyUsageFlags.keyCertSign | KeyUsageFlags.cRLSign, true),
      await SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  });
  return { certificate: `${certificate.toString('pem')}\n`, key: await toPem(keys.privateKey) };
}

async function makeServer(authority: Pair, hosts: string[], nowMs: number): Promise<Pair> {
  const keys = await newKeys();
  const ca = new X509Certificate(authority.certificate);
  const signingKey = await crypto.subtle.importKey('pkcs8', PemConverter.decodeFirst(authority.key), CURVE, false, [
    'sign',
  ]);
  const certificate = await X509CertificateGenerator.create({
    serialNumber: serialNumber(),
    subject: [{ CN: ['localhost'] }],
    issuer: ca.subjectName,
    ...validity(SERVER_DAYS, nowMs),
    publicKey: keys.publicKey,
    signingKey,
    signingAlgorithm: SIGNATURE,
    extensions: [
      new BasicConstraintsExtension(false, undefined, true),
      new KeyUsagesExtension(KeyUsageFlags.digitalSignature, true),
      new ExtendedKeyUsageExtension([ExtendedKeyUsage.serverAuth]),
      new SubjectAlternativeNameExtension(alternativeNames(hosts)),
      await AuthorityKeyIdentifierExtension.create(ca.publicKey),
      await SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  });
  return { certificate: `${certificate.toString('pem')}\n`, key: await toPem(keys.privateKey) };
}

function alternativeNames(hosts: string[]): { type: 'ip' | 'dns'; value: string }[] {
  return hosts.map((value) => ({ type: isIP(value) ? ('ip' as const) : ('dns' as const), value }));
}

/** From an hour ago; never more than the given days in all. */
function validity(days: number, nowMs: number): { notBefore: Date; notAfter: Date } {
  const start = nowMs - CLOCK_SKEW_MS;
  return { notBefore: new Date(start), notAfter: new Date(start + days * DAY_MS - 1_000) };
}

/** Positive and at most 20 bytes, as RFC 5280 4.1.2.2 asks. */
function serialNumber(): string {
  const bytes = randomBytes(16);
  bytes[0] = ((bytes[0] ?? 0) & 0x3f) | 0x40;
  return bytes.toString('hex');
}

async function newKeys() {
  return crypto.subtle.generateKey(CURVE, true, ['sign', 'verify']);
}

async function toPem(key: webcrypto.CryptoKey): Promise<string> {
  return `${PemConverter.encode(await crypto.subtle.exportKey('pkcs8', key), 'PRIVATE KEY')}\n`;
}
