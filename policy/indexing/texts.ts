import type { Candidates } from './candidates.js';

/** Places of policies, by texts; the value of a fact must be one of the policy's texts. */
export class Texts {
  protected readonly places = new Map<string, number[]>();

  add(text: string, place: number): void {
    const known = this.places.get(text);
    if (known) known.push(place);
    else this.places.set(text, [place]);
  }

  find(text: string, found: Candidates): void {
    const places = this.places.get(text);
    if (places) found.addAll(places);
  }
}
