const TEXT_MAX = 256;

/** Reads the members of an address that anybody may have written: what does not fit is left out. */
export function addressReader(search: Record<string, unknown>) {
  return {
    /** Short texts. */
    text: <Name extends string>(...names: Name[]): Partial<Record<Name, string>> => {
      const fits = (value: unknown) => typeof value === 'string' && value !== '' && value.length <= TEXT_MAX;
      return Object.fromEntries(names.flatMap((name) => (fits(search[name]) ? [[name, search[name]]] : []))) as Partial<
        Record<Name, string>
      >;
    },
    /** One of some values. */
    one: <Name extends string, Value extends string>(
      name: Name,
      values: readonly Value[],
    ): Partial<Record<Name, Value>> => {
      const found = values.find((value) => value === search[name]);
      return (found === undefined ? {} : { [name]: found }) as Partial<Record<Name, Value>>;
    },
  };
}
