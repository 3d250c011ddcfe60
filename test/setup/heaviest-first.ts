import { existsSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Begins with the files that took longest when durations were last saved (`npm test -- --save-durations`), so that none runs alone at the end. */
export class HeaviestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const root = this.ctx.config.root;
    const path = join(root, 'test', 'durations.json');
    const seconds = existsSync(path) ? (JSON.parse(readFileSync(path, 'utf8')) as Record<string, number>) : {};
    const weight = ({ moduleId }: TestSpecification) => seconds[relative(root, moduleId)] ?? Number.POSITIVE_INFINITY;
    return [...files].sort((one, other) => {
      const [a, b] = [weight(one), weight(other)];
      return a === b ? one.moduleId.localeCompare(other.moduleId) : b - a;
    });
  }
}
