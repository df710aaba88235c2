import { defineConfig } from "vite";

// The node serves three files under fixed names: see crates/web/src/lib.rs.
export default defineConfig({
  base: "/",
  build: {
    outDir: "../crates/web/dist/console",
    emptyOutDir: true,
    target: "es2022",
    modulePreload: false,
    cssCodeSplit: false,
    rollupOptions: {
      output: { entryFileNames: "console.js", assetFileNames: "console[extname]", inlineDynamicImports: true },
    },
  },
  // `npm run dev` beside a node whose console listens here.
  server: { proxy: { "/api": "http://127.0.0.1:7351" } },
});
