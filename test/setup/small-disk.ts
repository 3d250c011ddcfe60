import { chownSync, mkdirSync, readdirSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { inject } from 'vitest';
import { cleanUp } from './clean-up.js';
import { SmallVolume } from './small-volume.js';
import { withClient } from './with-client.js';

const SIZE_MB = 64;
const TABLESPACE = 'small_disk';

const asAdmin = (statement: string) =>
  withClient(inject('postgresUrl'), async (client) => (await client.query(statement)).rows);

/** A disk of 64 MB in memory for one database of the run's Postgres, whose log is elsewhere. Removed after the test or the file. */
export class SmallDisk {
  private constructor(readonly volume: SmallVolume) {}

  static async mount(): Promise<SmallDisk> {
    const volume = SmallVolume.mount(SIZE_MB);
    cleanUp(async () => void (await asAdmin(`DROP TABLESPACE IF EXISTS ${TABLESPACE}`)));
    const [row] = await asAdmin('SHOW data_directory');
    const { uid, gid } = statSync(row?.data_directory);
    const location = join(volume.path, 'data');
    mkdirSync(location);
    chownSync(location, uid, gid);
    await asAdmin(`CREATE TABLESPACE ${TABLESPACE} LOCATION '${location}'`);
    return new SmallDisk(volume);
  }

  /** Moves a database that nobody uses to this disk. */
  async take(databaseUrl: string): Promise<void> {
    await asAdmin(`ALTER DATABASE ${new URL(databaseUrl).pathname.slice(1)} SET TABLESPACE ${TABLESPACE}`);
  }

  /** Fills it so that new connections have no room for the copy of the catalog that the first of them writes. */
  fillForNewConnections(): void {
    for (const file of readdirSync(this.volume.path, { recursive: true, encoding: 'utf8' }))
      if (file.endsWith('pg_internal.init')) rmSync(join(this.volume.path, file));
    this.volume.fill();
  }
}
