import type { Db } from '../../db/pool.js';
import type { Clocks } from '../../runtime/clocks.js';
import type { KnownMessage } from '../core.js';

interface Asked {
  known: KnownMessage;
  resolve: (hasChanged: boolean) => void;
  reject: (error: unknown) => void;
}

/** The process makes at most so many statements in `rereadMs`, however many calls and streams wait. */
const LOOKS_PER_REREAD = 5;
/** Messages that one statement looks at. */
const LOOKED_AT_ONCE = 2_000;

const READ = `
  SELECT w.nth::integer AS nth, m.state, m.updated_at
    FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS w (tenant_id, message_id, nth)
   CROSS JOIN LATERAL (SELECT x.state, x.updated_at FROM messages x WHERE x.tenant_id = w.tenant_id AND x.message_id = w.message_id) m`;

/**
 * Checks for all streams and waiting calls of this process whether their messages have changed, in case a notice was lost. Those that ask within a window (a
 * fifth of `rereadMs`) share a statement, so that the number of statements does not grow with their number.
 */
export class ChangeReader {
  #asked: Asked[] = [];

  readonly #windowMs: number;

  constructor(
    private readonly db: Pick<Db, 'system'>,
    { rereadMs }: Pick<Clocks, 'rereadMs'>,
  ) {
    this.#windowMs = rereadMs / LOOKS_PER_REREAD;
  }

  /** Whether the state or `updated_at` of a message differs by now. */
  hasChanged(known: KnownMessage): Promise<boolean> {
    return new Promise((resolve, reject) => {
      if (this.#asked.length === 0) setTimeout(() => void this.#look(), this.#windowMs);
      this.#asked.push({ known, resolve, reject });
    });
  }

  async #look(): Promise<void> {
    const asked = this.#asked;
    this.#asked = [];
    for (let from = 0; from < asked.length; from += LOOKED_AT_ONCE) {
      const part = asked.slice(from, from + LOOKED_AT_ONCE);
      try {
        const found = await this.#read(part.map(({ known }) => known));
        part.forEach(({ known, resolve }, place) => {
          const now = found.get(place + 1);
          resolve(now?.state !== known.state || now.updated_at.getTime() !== known.updated_at.getTime());
        });
      } catch (error) {
        for (const { reject } of part) reject(error);
      }
    }
  }

  async #read(messages: KnownMessage[]): Promise<Map<number, Pick<KnownMessage, 'state' | 'updated_at'>>> {
    const values = [messages.map(({ tenant_id }) => tenant_id), messages.map(({ message_id }) => message_id)];
    type Found = Pick<KnownMessage, 'state' | 'updated_at'> & { nth: number };
    const rows = await this.db.system((tx) => tx.query<Found>(READ, values, 'read_changes'));
    return new Map(rows.map((row) => [row.nth, row]));
  }
}
