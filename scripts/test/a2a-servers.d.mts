/** The official A2A SDK for Python in the two versions that the tests serve agents with. */
export const A2A_VERSIONS: string[];
/** What a version needs, pinned. */
export function requirementsOf(version: string): string;
/** The virtual environment of a version, one for each list of requirements. */
export function environmentOf(version: string, cacheDir: string): string;
