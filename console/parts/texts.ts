const UNITS: [name: string, seconds: number][] = [
  ['d', 86_400],
  ['h', 3_600],
  ['min', 60],
];

/** `2 h 5 min`, `40 s`. */
export function durationText(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1_000));
  const index = UNITS.findIndex(([, size]) => seconds >= size);
  const [name, size] = UNITS[index] ?? ['s', 1];
  const first = `${Math.floor(seconds / size)} ${name}`;
  const smaller = index < 0 ? undefined : UNITS[index + 1];
  const rest = smaller && Math.floor((seconds % size) / smaller[1]);
  return rest && smaller && size < 86_400 * 2 ? `${first} ${rest} ${smaller[0]}` : first;
}

/** A number as people read it: `10,000`. The browser's own formats take long to load before the first one. */
export const numberText = (count: number): string => String(count).replace(/\B(?<!\.\d*)(?=(\d{3})+(?!\d))/g, ',');
