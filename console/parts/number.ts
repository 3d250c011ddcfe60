/** A number as people read it: `10,000`. The browser's own formats take long to load before the first one. */
export const numberText = (count: number): string => String(count).replace(/\B(?<!\.\d*)(?=(\d{3})+(?!\d))/g, ',');
