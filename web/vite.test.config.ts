import { defineConfig } from 'vite';

// Builds the tests for node, one file each: not below node_modules, where newer nodes find none.
export default defineConfig({
  build: {
    ssr: true,
    target: 'node20',
    outDir: '.tests',
    emptyOutDir: false,
    copyPublicDir: false,
    minify: false,
    rolldownOptions: {
      input: (process.env.TESTS ?? '').split(' ').filter(Boolean),
      external: ['playwright-core', 'axe-core'],
      output: { entryFileNames: '[name].mjs' },
    },
  },
});
