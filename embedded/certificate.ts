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
/** New certificates are valid from an hour ago, for clients whose clock is behind. */
const CLOCK_SKEW_MS = 3_600_000;
const CURVE = { name: 'ECDSA', namedCurve: 'P-256' };
const SIGNATURE = { name: 'ECDSA', hash: 'SHA-256' };
const DEFAULT_HOSTS = ['localhost', '127.0.0.1', '::1'];

/** Paths of PEM files. */
export interface CertificateFiles {
  /** The local authority, which clients trust (`ca` in Node.js, `curl --cacert`). */
  caFile: string;
  certFile: string;
  keyFile: string;
}

interface KeyPair {
  certificate: string;
  key: string;
}

/**
 * A server certificate for localhost, 127.0.0.1, ::1 and the given hosts, issued by an authority of this data directory. Both are created
 * when they are missing or damaged. The certificate is replaced when it expires within 30 days or its hosts differ; the authority only
 * when it could not outlast a new certificate, because clients have installed it.
 * @param options.nowMs current time in milliseconds since 1970; the system clock by default
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
  const hosts = [...new Set([...DEFAULT_HOSTS, ...(options.hosts ?? [])])];
  const authority = await loadOrCreate(
    folder,
    'ca',
    (pair) => lasts(pair, SERVER_DAYS + RENEW_DAYS, nowMs),
    () => createAuthority(nowMs),
  );
  const usable = (pair: KeyPair) =>
    lasts(pair, RENEW_DAYS, nowMs) && isIssuedBy(pair, authority) && namesOnly(pair, hosts);
  await loadOrCreate(folder, 'server', usable, () => createServerCertificate(authority, hosts, nowMs));
  return {
    caFile: certificateFile(folder, 'ca'),
    certFile: certificateFile(folder, 'server'),
    keyFile: keyFile(folder, 'server'),
  };
}

/** The pair on disk if it is complete and usable, else a new one. After a crash between the two writes the files do not match. */
async function loadOrCreate(
  folder: string,
  name: string,
  isUsable: (pair: KeyPair) => boolean,
  create: () => Promise<KeyPair>,
): Promise<KeyPair> {
  const certificate = await readIfExists(certificateFile(folder, name));
  const key = await readIfExists(keyFile(folder, name));
  if (certificate && key && belongTogether({ certificate, key }) && isUsable({ certificate, key })) {
    return { certificate, key };
  }
  const created = await create();
  await writeAtomic(keyFile(folder, name), created.key, 0o600);
  await writeAtomic(certificateFile(folder, name), created.certificate, 0o644);
  return created;
}

function certificateFile(folder: string, name: string): string {
  return join(folder, `${name}.pem`);
}

function keyFile(folder: string, name: string): string {
  return join(folder, `${name}-key.pem`);
}

function belongTogether({ certificate, key }: KeyPair): boolean {
  try {
    return new NodeCertificate(certificate).checkPrivateKey(createPrivateKey(key));
  } catch {
    return false; // a file that does not parse is damaged and is replaced
  }
}

function lasts({ certificate }: KeyPair, days: number, nowMs: number): boolean {
  return Date.parse(new NodeCertificate(certificate).validTo) - nowMs > days * DAY_MS;
}

function isIssuedBy({ certificate }: KeyPair, authority: KeyPair): boolean {
  const ca = new NodeCertificate(authority.certificate);
  const server = new NodeCertificate(certificate);
  return server.checkIssued(ca) && server.verify(ca.publicKey);
}

function namesOnly({ certificate }: KeyPair, hosts: string[]): boolean {
  const found = new X509Certificate(certificate).getExtension(SubjectAlternativeNameExtension)?.names.items ?? [];
  const wanted = alternativeNames(hosts);
  const key = (name: { type: string; value: string }) => `${name.type}:${name.value}`;
  const present = new Set(found.map(key));
  return found.length === wanted.length && wanted.every((name) => present.has(key(name)));
}

async function createAuthority(nowMs: number): Promise<KeyPair> {
  const keys = await newKeys();
  const certificate = await X509CertificateGenerator.createSelfSigned({
    serialNumber: serialNumber(),
    // A unique name, so that a client can tell two authorities of one machine apart.
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

async function createServerCertificate(authority: KeyPair, hosts: string[], nowMs: number): Promise<KeyPair> {
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

/** The validity period: starts an hour ago and spans at most `days`. */
function validity(days: number, nowMs: number): { notBefore: Date; notAfter: Date } {
  const start = nowMs - CLOCK_SKEW_MS;
  return { notBefore: new Date(start), notAfter: new Date(start + days * DAY_MS - 1_000) };
}

/** Positive and at most 20 bytes, as RFC 5280 section 4.1.2.2 requires. */
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
