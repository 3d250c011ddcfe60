/**
 * Writes the generated modules of the Python client from the contracts: `npm run python:client`. A test compares them with what this script
 * would write.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { openApiDocument } from '../../dist/contracts/api/openapi.js';
import { generate } from './generate.mjs';

const folder = join(
  dirname(dirname(dirname(fileURLToPath(import.meta.url)))),
  'python',
  'src',
  'agent_fleet',
  'client',
  'generated',
);
mkdirSync(folder, { recursive: true });
for (const [name, text] of Object.entries(generate(openApiDocument('')))) writeFileSync(join(folder, name), text);
