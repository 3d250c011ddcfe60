import { type Author, platformAuthor } from '../../audit/record-audit.js';

/** The author of what a test prepares in a tenant. */
export function testAuthor(tenantId: string): Author {
  return platformAuthor(tenantId, 'test');
}
