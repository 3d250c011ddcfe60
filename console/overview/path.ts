/** Of a chart, in its own units. */
export const [WIDTH, HEIGHT] = [320, 72];

/** What one hour has; null where it has none. */
export type Values = readonly (number | null)[];

/** A path through the values, with gaps where there are none. */
export function pathOf(values: Values, max: number): string {
  const step = WIDTH / Math.max(1, values.length - 1);
  let isDown = false;
  return values
    .flatMap((value, at) => {
      const draws = value !== null && isDown;
      isDown = value !== null;
      if (value === null) return [];
      // A value between two gaps is a dot.
      const dot = !draws && (values[at + 1] ?? null) === null ? 'h.01' : '';
      return [
        `${draws ? 'L' : 'M'}${(at * step).toFixed(1)} ${(HEIGHT - (value / (max || 1)) * HEIGHT).toFixed(1)}${dot}`,
      ];
    })
    .join('');
}
