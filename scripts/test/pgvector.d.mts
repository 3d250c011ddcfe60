/** The installation's folder below the user's cache folder. */
export const PGVECTOR_FOLDER: string;
/** A program in that folder, by which the installation is known to be whole. */
export const PGVECTOR_PROGRAM: string;

/**
 * Starts an empty server from a copy of the installation.
 * @param options.cacheDir the user's cache folder
 * @param options.port that is free
 */
export function startPgvector(options: {
  cacheDir: string;
  port: number;
}): Promise<{ url: string; stop(): Promise<void> }>;
