// Runs one scenario in Chromium: node run.mjs SCENARIO PARAMETERS, where the parameters are JSON. Prints a line for
// each failure and exits with 1 if there is one. The Rust tests beside this file start it.
//
// RIOPS_BROWSER_DIR is the folder with node_modules; screenshots are written to its folder screenshots.
import { openBrowser } from "./harness.mjs";
import * as gallery from "./gallery.mjs";
import * as report from "./report.mjs";
import * as serve from "./serve.mjs";

const [name, text] = process.argv.slice(2);
const scenario = { ...gallery, ...report, ...serve }[name];
if (!scenario) {
  console.error(`unknown scenario ${name}`);
  process.exit(2);
}
const browser = await openBrowser();
const failures = [];
try {
  await scenario(browser, JSON.parse(text), failures);
} catch (error) {
  failures.push(`the scenario stopped: ${error.stack}`);
} finally {
  await browser.close();
}
for (const failure of failures) console.log(failure);
process.exit(failures.length > 0 ? 1 : 0);
