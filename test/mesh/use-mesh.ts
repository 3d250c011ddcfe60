import { beforeAll, beforeEach } from 'vitest';
import { type FreshDatabase, freshDatabase } from '../setup/database.js';
import { MeshFixture } from './mesh-fixture.js';

// Set anew for each file: those of a worker share this module, and run one after the other.
export let database: FreshDatabase;
export let fixture: MeshFixture;

/** The file gets a database of its own and a fixture on it; each of its tests gets a new tenant, where these agents are registered. */
export function useMesh(...instanceIds: string[]): void {
  beforeAll(async () => {
    database = await freshDatabase();
    fixture = new MeshFixture(database);
    return database.drop;
  });
  beforeEach(async () => {
    await fixture.reset();
    for (const instanceId of instanceIds) await fixture.register(instanceId);
  });
}
