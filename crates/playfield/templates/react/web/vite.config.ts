import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

export default defineConfig({
  plugins: [react()],
  // One React, even if a package that is linked has its own.
  resolve: { dedupe: ["react", "react-dom"] },
});
