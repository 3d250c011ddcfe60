import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { KnowledgeWriter } from '../knowledge/knowledge.js';
import { errorMessage, PlatformError } from '../runtime/errors.js';
import type { Services } from './services.js';

/** The knowledge base that the example librarian answers from. */
const LIBRARY = 'library';
/** The project's documentation, beside `dist/`. */
const DOCUMENTATION = fileURLToPath(new URL('../../docs/', import.meta.url));

async function documents() {
  const names = (await readdir(DOCUMENTATION)).filter((name) => name.endsWith('.md'));
  const read = async (filename: string) => ({
    source_id: filename,
    filename,
    content: await readFile(join(DOCUMENTATION, filename), 'utf8'),
    tags: ['documentation'],
  });
  return Promise.all(names.map(read));
}

/**
 * Puts the project's documentation into a knowledge base for the example librarian; what is there already and has not changed stays as it is.
 * Goes on after its answer, and a failure is logged: the platform works without it.
 */
export async function fillLibrary(services: Services, tenantId: string, credentialId: string): Promise<void> {
  const { knowledge, log } = services;
  const writer: KnowledgeWriter = { tenantId, credentialId, full: true, name: credentialId };
  try {
    const found = await documents();
    await knowledge
      .create(writer, {
        namespace: LIBRARY,
        display_name: 'Library',
        description: 'The documentation of this platform.',
      })
      .catch((error: unknown) => {
        if (!(error instanceof PlatformError) || error.code !== 'CONFLICT') throw error;
      });
    await knowledge.ingest(writer, { namespace: LIBRARY, documents: found, wait: false });
  } catch (error) {
    log.warn({ err: errorMessage(error) }, 'the example library could not be filled');
  }
}
