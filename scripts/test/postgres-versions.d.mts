/** The versions of Postgres that the platform supports beside the one that it brings. */
export const POSTGRES_VERSIONS: number[];
/** Where `npm run test:postgres` installs them. */
export function postgresVersionsFolder(cacheDir: string): string;
/** The package of a version for this machine. */
export function postgresPackage(version: number, cacheDir: string): string;
