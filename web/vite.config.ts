import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig } from "vite";

// The output is committed and compared: names follow what is in the files, and nothing of the machine is in it.
export default defineConfig({
  base: "/ui/",
  plugins: [svelte()],
  build: {
    target: "es2022",
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    cssCodeSplit: false,
    chunkSizeWarningLimit: 600,
    rollupOptions: {
      output: {
        entryFileNames: "assets/portal-[hash].js",
        chunkFileNames: "assets/[name]-[hash].js",
        assetFileNames: "assets/[name]-[hash][extname]",
      },
    },
  },
});
