// Opens pages in Chromium, and checks what all pages of riops have in common: nothing is loaded from elsewhere, the
// console has no errors, the charts are drawn, nothing overflows, and axe-core finds no serious violation.
import { createRequire } from "node:module";
import { mkdirSync } from "node:fs";
import path from "node:path";

const FOLDER = process.env.RIOPS_BROWSER_DIR;
const require = createRequire(path.join(FOLDER, "node_modules"));
const { chromium } = require("playwright-core");
const AXE = require("axe-core").source;
const SCREENSHOTS = path.join(FOLDER, "screenshots");

// Themes and widths in which each page is checked.
export const VIEWS = [
  { name: "light", theme: "light", width: 1280, height: 900 },
  { name: "dark", theme: "dark", width: 1280, height: 900 },
  { name: "light-400", theme: "light", width: 400, height: 800 },
  { name: "dark-400", theme: "dark", width: 400, height: 800 },
];

// Most presses of Tab to reach everything on a page.
const TABS_MAX = 400;
// Contrast between a chart and its background (WCAG 2.2, 1.4.11: graphical objects).
const CONTRAST_MIN = 3;

export async function openBrowser() {
  mkdirSync(SCREENSHOTS, { recursive: true });
  // Chromium's sandbox does not work as root. GPU and /dev/shm are missing in containers.
  const args = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"];
  return chromium.launch({ executablePath: process.env.RIOPS_CHROMIUM || "/usr/bin/chromium", args });
}

// Opens a page that fails on every error, and on every request to another origin than `origin` (null: files only).
export async function openPage(browser, view, failures, { origin = null, javascript = true } = {}) {
  const context = await browser.newContext({
    viewport: { width: view.width, height: view.height },
    colorScheme: view.theme,
    javaScriptEnabled: javascript,
    reducedMotion: "reduce",
  });
  const page = await context.newPage();
  // A busy machine draws a long page slowly.
  page.setDefaultTimeout(300_000);
  const fail = text => failures.push(`${view.name}: ${text}`);
  await page.route("**/*", route => {
    const url = new URL(route.request().url());
    const isOwn = origin ? url.origin === origin : url.protocol === "file:";
    if (isOwn || ["data:", "blob:", "about:"].includes(url.protocol)) return route.continue();
    fail(`request to ${url}`);
    return route.abort();
  });
  page.on("console", message => {
    if (["error", "warning"].includes(message.type())) fail(`console ${message.type()}: ${message.text()}`);
  });
  page.on("pageerror", error => fail(`exception: ${error.message}`));
  page.on("response", response => {
    if (response.status() >= 400) fail(`${response.status()} for ${response.url()}`);
  });
  await page.addInitScript(() => {
    window.policyViolations = [];
    addEventListener("securitypolicyviolation", event =>
      window.policyViolations.push(`${event.violatedDirective}: ${event.blockedURI} ${event.sample}`));
  });
  return { page, fail };
}

// Loads the address, and waits until the charts had time to be drawn.
export async function load(page, address) {
  await page.goto(address, { waitUntil: "load" });
  await page.evaluate(() => document.fonts.ready);
  await settle(page);
}

// Does something that opens another page, and waits until it is loaded.
export async function follow(page, action) {
  const loaded = page.waitForEvent("load");
  await action();
  await loaded;
  await settle(page);
}

// Waits for two frames: all handlers of the event that was sent have run.
export async function settle(page) {
  await page.evaluate(() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done))));
}

// The checks of any page.
export async function checkPage(page, view, fail, { name, charts = 0 }) {
  for (const violation of await page.evaluate(() => window.policyViolations)) fail(`policy: ${violation}`);
  if (await page.evaluate(() => window.injected)) fail("a script from the data was executed");
  await checkWidth(page, fail);
  await checkCharts(page, fail, charts);
  await checkAccessibility(page, fail);
  await page.screenshot({ path: path.join(SCREENSHOTS, `${name}-${view.name}.png`), fullPage: true });
}

// The page itself never scrolls sideways; wide tables scroll within their own box.
export async function checkWidth(page, fail) {
  const found = await page.evaluate(() => {
    const root = document.documentElement;
    const isInScroller = element => {
      for (let at = element.parentElement; at; at = at.parentElement) {
        if (getComputedStyle(at).overflowX !== "visible") return true;
      }
      return false;
    };
    const wide = [...document.body.querySelectorAll("*")]
      .filter(each => each.getBoundingClientRect().right > root.clientWidth + 1 && !isInScroller(each))
      .slice(0, 3)
      .map(each => `${each.tagName.toLowerCase()}.${each.className} to ${Math.round(each.getBoundingClientRect().right)}`);
    return { width: root.scrollWidth, shown: root.clientWidth, wide };
  });
  if (found.width > found.shown) {
    fail(`the page is ${found.width} px wide, the window ${found.shown} px: ${found.wide.join(", ")}`);
  }
}

// Each chart has a canvas with more than its background, and can be told from it.
export async function checkCharts(page, fail, expected) {
  const charts = await page.evaluate(() => {
    const channel = value => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
    const luminance = rgb => {
      const [r, g, b] = rgb.map(value => channel(value / 255));
      return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const contrast = (a, b) => {
      const [low, high] = [luminance(a), luminance(b)].sort((x, y) => x - y);
      return (high + 0.05) / (low + 0.05);
    };
    const background = element => {
      for (let at = element; at; at = at.parentElement) {
        const parts = getComputedStyle(at).backgroundColor.match(/[\d.]+/g).map(Number);
        if (parts.length === 3 || parts[3] === 1) return parts.slice(0, 3);
      }
      return matchMedia("(prefers-color-scheme: dark)").matches ? [0, 0, 0] : [255, 255, 255];
    };
    return [...document.querySelectorAll("[data-chart], [data-live-chart]")].map(place => {
      const canvas = place.querySelector("canvas");
      const name = place.dataset.chart || place.dataset.liveChart;
      const text = place.getAttribute("aria-label") || "";
      if (!canvas || canvas.width === 0 || canvas.height === 0) return { name, text, drawn: 0, contrast: 1 };
      const below = background(canvas);
      const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
      const colors = new Map();
      for (let at = 0; at < data.length; at += 4) {
        if (data[at + 3] === 0) continue;
        const key = (data[at] << 24) | (data[at + 1] << 16) | (data[at + 2] << 8) | data[at + 3];
        colors.set(key, (colors.get(key) || 0) + 1);
      }
      let best = 1;
      let drawn = 0;
      for (const [key, count] of colors) {
        const alpha = (key & 255) / 255;
        const shown = [24, 16, 8].map((shift, at) => ((key >> shift) & 255) * alpha + below[at] * (1 - alpha));
        const found = contrast(shown, below);
        if (found > 1.05) drawn += count;
        best = Math.max(best, found);
      }
      return { name, text, drawn: drawn / (data.length / 4), contrast: best };
    });
  });
  if (charts.length < expected) fail(`${charts.length} charts, expected at least ${expected}`);
  for (const chart of charts) {
    if (chart.text.length < 10) fail(`chart ${chart.name} has no text alternative: "${chart.text}"`);
    // Axes alone are about 1% of the pixels.
    if (chart.drawn < 0.002) fail(`chart ${chart.name} is blank (${(chart.drawn * 100).toFixed(2)}% of its pixels)`);
    else if (chart.contrast < CONTRAST_MIN) fail(`chart ${chart.name} has a contrast of ${chart.contrast.toFixed(1)}`);
  }
}

// Serious and critical violations of axe-core. The source is evaluated by the debugger, which no policy forbids.
export async function checkAccessibility(page, fail) {
  await page.evaluate(AXE);
  const violations = await page.evaluate(async () => {
    // Content of closed details is not rendered, so it is checked open.
    const closed = [...document.querySelectorAll("details:not([open])")];
    closed.forEach(each => (each.open = true));
    // A page from a file may not request its own style, which axe reads for the orientation of mobile screens.
    const preload = location.protocol !== "file:";
    const result = await axe.run(document, { resultTypes: ["violations"], preload });
    closed.forEach(each => (each.open = false));
    return result.violations.map(({ id, impact, help, nodes }) => ({
      id, impact, help, count: nodes.length,
      first: `${nodes[0].html.slice(0, 160)} (${(nodes[0].failureSummary || "").split("\n")[1]?.trim() || ""})`,
    }));
  });
  for (const each of violations.filter(each => ["serious", "critical"].includes(each.impact))) {
    fail(`axe ${each.id} (${each.impact}): ${each.help}: ${each.count} elements, first ${each.first}`);
  }
}

// Everything that can be operated is reached with Tab, in the order of the page, and shows that it has the focus.
export async function checkKeyboard(page, fail) {
  await page.evaluate(() => {
    const isShown = element => element.checkVisibility({ visibilityProperty: true }) && !element.disabled;
    const scrolls = element =>
      element.scrollWidth > element.clientWidth + 1 && ["auto", "scroll"].includes(getComputedStyle(element).overflowX);
    const operable = [...document.querySelectorAll("a[href], button, input, select, textarea, summary, [tabindex='0']")];
    const scrollers = [...document.querySelectorAll("body *")].filter(scrolls);
    window.expectedFocus = new Set([...operable, ...scrollers].filter(isShown));
    window.hiddenFocus = [];
  });
  let first = null;
  for (let presses = 0; presses < TABS_MAX; presses += 1) {
    await page.keyboard.press("Tab");
    const found = await page.evaluate(() => {
      const element = document.activeElement;
      if (!element || element === document.body) return null;
      window.expectedFocus.delete(element);
      const style = getComputedStyle(element);
      // The browser marks the part of a date that has the focus.
      const isDate = element.matches("input[type=date]");
      const isMarked = isDate || style.outlineStyle !== "none" || style.boxShadow !== "none";
      if (!isMarked) window.hiddenFocus.push(element.outerHTML.slice(0, 80));
      // A date has several stops.
      const isAgain = element.dataset.reached === "yes" && element !== window.lastFocus;
      element.dataset.reached = "yes";
      window.lastFocus = element;
      return { tag: element.tagName, href: element.getAttribute("href"), isAgain };
    });
    if (!found || found.isAgain) break;
    first ??= found;
  }
  const { missed, hidden } = await page.evaluate(() => ({
    missed: [...window.expectedFocus].map(element => element.outerHTML.slice(0, 80)),
    hidden: window.hiddenFocus,
  }));
  if (!first || first.tag !== "A" || !first.href?.startsWith("#")) fail(`the first Tab reaches no link to the content: ${JSON.stringify(first)}`);
  if (missed.length > 0) fail(`${missed.length} elements are not reached with Tab, first ${missed[0]}`);
  if (hidden.length > 0) fail(`the focus of ${hidden.length} elements is not visible, first ${hidden[0]}`);
}
