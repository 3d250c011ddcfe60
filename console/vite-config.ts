import react from '@vitejs/plugin-react';
import { defineConfig, type Plugin } from 'vite';

/** The first script asks for data, and imports the app: what that needs is named in the page, so that the browser loads it at once. */
const preloadApp: Plugin = {
  name: 'preload-app',
  transformIndexHtml: {
    order: 'post',
    handler: (_html, { bundle = {} }) => {
      const app = Object.values(bundle).find((file) => file.type === 'chunk' && file.name === 'app');
      const needed = new Set(app && [app.fileName]);
      for (const name of needed) {
        const chunk = bundle[name];
        for (const imported of chunk?.type === 'chunk' ? chunk.imports : []) needed.add(imported);
      }
      return [...needed].map((name) => ({
        tag: 'link',
        attrs: { rel: 'modulepreload', crossorigin: true, href: `/console/${name}` },
        injectTo: 'head' as const,
      }));
    },
  },
};

/** What the first script needs is in one file, and the libraries of all views are in another. */
const FIRST = { name: 'first', test: /console\/(main|api\/(ahead|call)|inbox\/filters|sign-in\/return-path)\.ts$/ };
const LIBRARIES = { name: 'libraries', test: /node_modules\/(react|react-dom|scheduler|@tanstack)\// };

/** The page is served by the API below `/console`. One style sheet, so that a view that is loaded later finds its style. */
export default defineConfig({
  root: import.meta.dirname,
  base: '/console/',
  plugins: [react(), preloadApp],
  build: {
    target: 'es2023',
    cssCodeSplit: false,
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    rolldownOptions: { output: { codeSplitting: { groups: [FIRST, LIBRARIES] } } },
  },
  logLevel: 'error',
});
