import { execFileSync } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { cleanUp } from './clean-up.js';

/** Written at once to fill it, and then what is left. */
const PIECES = [1024 * 1024, 4_096];

/** A small file system in memory, which can be filled. Root may mount it. Removed after the test or the file. */
export class SmallVolume {
  readonly #filler: string;

  private constructor(readonly path: string) {
    this.#filler = join(path, 'filler');
  }

  static mount(megabytes: number): SmallVolume {
    const path = mkdtempSync(join(tmpdir(), 'fleet-small-volume-'));
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${megabytes}m,mode=755`, 'tmpfs', path]);
    cleanUp(async () => {
      // A process that ends after the test may still have a file open.
      execFileSync('umount', ['--lazy', path]);
      rmSync(path, { recursive: true });
    });
    return new SmallVolume(path);
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
