/** The names of all options of a type. The compiler says which one is missing. */
export const namesOf = <Options>(names: Record<keyof Options, true>): readonly string[] => Object.keys(names);

/**
 * Refuses what nobody reads, because a typo would go unnoticed.
 * @param what takes the options, for the error
 * @throws TypeError that names the first unknown option and the known ones
 */
export function requireKnownOptions(what: string, options: object, known: readonly string[], hint = ''): void {
  const unknown = Object.keys(options).find((name) => !known.includes(name));
  if (unknown !== undefined) {
    throw new TypeError(`${what} has no option \`${unknown}\`: the options are ${known.join(', ')}.${hint}`);
  }
}
