import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ensureCertificate } from '../../embedded/certificate.js';

/** A certificate for 127.0.0.1 from the platform's own local authority, in PEM. */
export async function localCertificate(): Promise<{ ca: string; cert: string; key: string }> {
  const dataDir = mkdtempSync(join(tmpdir(), 'fleet-sdk-test-'));
  try {
    const { caFile, certFile, keyFile } = await ensureCertificate({ dataDir });
    return {
      ca: readFileSync(caFile, 'utf8'),
      cert: readFileSync(certFile, 'utf8'),
      key: readFileSync(keyFile, 'utf8'),
    };
  } finally {
    rmSync(dataDir, { recursive: true });
  }
}
