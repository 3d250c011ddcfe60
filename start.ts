// The whole platform in one process, or the roles named by `--roles api,mesh,worker`.
import { main } from './platform/main.js';

main(process.argv.slice(2));
