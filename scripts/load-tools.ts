/**
 * Miniflare and wrangler are bundles of many megabytes that do not say which kind of module they are. To `import` them Node
 * parses each several times to find out, which is half of a start; `require` takes them for what they are. What they were
 * compiled to is kept for the next start, where Node can do that.
 */
import module, { createRequire } from "node:module";
import { resolve } from "node:path";
import type * as miniflare from "miniflare";
import type * as wrangler from "wrangler";

module.enableCompileCache?.(resolve(import.meta.dirname, "../node_modules/.cache/hooklane"));
const require = createRequire(import.meta.url);

export const loadMiniflare = (): typeof miniflare => require("miniflare");
export const loadWrangler = (): typeof wrangler => require("wrangler");
