import { defineConfig } from 'vite';
import { svelte } from '@sveltejs/vite-plugin-svelte';

// The output is committed and compared, so nothing in it may depend on the
// machine: no source maps, names by content only.
export default defineConfig({
  plugins: [svelte()],
  build: {
    outDir: '../internal/ask/web/dist',
    emptyOutDir: true,
    target: 'es2022',
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    sourcemap: false,
    reportCompressedSize: false,
    rolldownOptions: {
      input: ['index.html', 'terminal.html'],
      // What most pages share comes in one file: each has headers of its own.
      output: {
        codeSplitting: {
          groups: [{ name: 'shared', test: /src[\\/](ui|lib)[\\/]/, minShareCount: 6 }],
        },
      },
    },
  },
  // For `npm run dev` beside a server that runs with --address 127.0.0.1:7295.
  server: { proxy: { '/api': { target: 'http://127.0.0.1:7295', changeOrigin: true } } },
});
