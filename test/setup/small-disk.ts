import { execFileSync } from 'node:child_process';
import { chownSync, closeSync, mkdirSync, mkdtempSync, openSync, rmSync, statSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { inject } from 'vitest';
import { cleanUp } from './clean-up.js';

const SIZE_MB = 64;
/** Written at once to fill it, and then what is left. */
const PIECES = [1024 * 1024, 4_096];
const TABLESPACE = 'small_disk';

async function asAdmin(...statements: string[]): Promise<pg.QueryResultRow[]> {
  const client = new pg.Client({ connectionString: inject('postgresUrl') });
  await client.connect();
  try {
    let rows: pg.QueryResultRow[] = [];
    for (const statement of statements) rows = (await client.query(statement)).rows;
    return rows;
  } finally {
    await client.end();
  }
}

/** A disk of 64 MB in memory for one database of the run's Postgres, whose log is elsewhere. Root may mount it. Removed after the test or the file. */
export class SmallDisk {
  readonly #filler: string;

  private constructor(mount: string) {
    this.#filler = join(mount, 'filler');
  }

  static async mount(): Promise<SmallDisk> {
    const mount = mkdtempSync(join(tmpdir(), 'fleet-small-disk-'));
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${SIZE_MB}m,mode=755`, 'tmpfs', mount]);
    cleanUp(async () => {
      await asAdmin(`DROP TABLESPACE IF EXISTS ${TABLESPACE}`);
      execFileSync('umount', [mount]);
      rmSync(mount, { recursive: true });
    });
    const [row] = await asAdmin('SHOW data_directory');
    const { uid, gid } = statSync(row?.data_directory);
    const location = join(mount, 'data');
    mkdirSync(location);
    chownSync(location, uid, gid);
    await asAdmin(`CREATE TABLESPACE ${TABLESPACE} LOCATION '${location}'`);
    return new SmallDisk(mount);
  }

  /** Moves a database that nobody uses to this disk. */
  async take(databaseUrl: string): Promise<void> {
    await asAdmin(`ALTER DATABASE ${new URL(databaseUrl).pathname.slice(1)} SET TABLESPACE ${TABLESPACE}`);
  }

  /** Leaves no room on it. */
  fill(): void {
    const file = openSync(this.#filler, 'a');
    try {
      for (const bytes of PIECES) fillWith(file, Buffer.alloc(bytes));
    } finally {
      closeSync(file);
    }
  }

  /** Makes room again. */
  empty(): void {
    rmSync(this.#filler);
  }
}

function fillWith(file: number, piece: Buffer): void {
  try {
    while (writeSync(file, piece) > 0);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
  }
}
