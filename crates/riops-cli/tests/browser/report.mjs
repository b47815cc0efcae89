// The pages that `riops report` writes: files that load nothing.
import { VIEWS, checkCharts, checkKeyboard, checkPage, checkWidth, load, openPage, settle } from "./harness.mjs";

// The page in all themes and widths.
export async function report(browser, { name, address, charts }, failures) {
  for (const view of VIEWS) {
    const { page, fail } = await openPage(browser, view, failures);
    await load(page, address);
    await checkPage(page, view, fail, { name, charts });
    await page.context().close();
  }
}

// A page with many points. Its time until the charts are drawn is printed, not judged: it depends on the machine.
export async function reportLarge(browser, { name, address, charts }, failures) {
  const view = VIEWS[0];
  const { page, fail } = await openPage(browser, view, failures);
  const start = Date.now();
  await load(page, address);
  console.error(`${name}: drawn after ${Date.now() - start} ms`);
  await checkCharts(page, fail, charts);
  await checkWidth(page, fail);
  await page.context().close();
}

// Tab reaches everything, the first link leads to the content, and Enter opens a section.
export async function reportKeyboard(browser, { address }, failures) {
  for (const view of [VIEWS[0], VIEWS[2]]) {
    const { page, fail } = await openPage(browser, view, failures);
    await load(page, address);
    await checkKeyboard(page, fail);
    await load(page, address);
    await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    const target = await page.evaluate(() => {
      const place = document.getElementById(location.hash.slice(1));
      return place && place.matches("main, main *") && place.contains(document.activeElement);
    });
    if (!target) fail("the first link does not move the focus to the content");
    const summary = page.locator("details:not([open]) > summary").first();
    if (await summary.count() > 0) {
      const details = await summary.evaluateHandle(element => element.parentElement);
      await summary.focus();
      await page.keyboard.press("Enter");
      if (!(await details.evaluate(element => element.open))) fail("Enter does not open a section");
    }
    await page.context().close();
  }
}

// On paper, the page is light whatever the theme, and shows the text of closed sections or their titles.
export async function reportPrint(browser, { address }, failures) {
  const view = VIEWS[1];
  const { page, fail } = await openPage(browser, view, failures);
  await load(page, address);
  await page.emulateMedia({ media: "print" });
  await settle(page);
  const { ink, paper } = await page.evaluate(() => {
    const parts = text => text.match(/[\d.]+/g).map(Number);
    const mean = color => (color[3] === 0 ? 255 : (color[0] + color[1] + color[2]) / 3);
    return { ink: mean(parts(getComputedStyle(document.body).color)), paper: mean(parts(getComputedStyle(document.body).backgroundColor)) };
  });
  if (ink > 110 || paper < 230) fail(`printed with ink ${Math.round(ink)} on paper ${Math.round(paper)} (0 is black)`);
  const pdf = await page.pdf({ format: "A4" });
  if (pdf.length < 5_000) fail(`the printed page has ${pdf.length} bytes`);
  await page.context().close();
}

// Without JavaScript, the figures, tables and text are there.
export async function reportWithoutScript(browser, { address, texts }, failures) {
  const { page, fail } = await openPage(browser, VIEWS[0], failures, { javascript: false });
  await page.goto(address, { waitUntil: "load" });
  const shown = await page.locator("body").innerText();
  for (const text of texts) if (!shown.includes(text)) fail(`the page without JavaScript lacks "${text}"`);
  await page.context().close();
}

// The checks themselves: a page with each defect fails.
export async function selfTest(browser, { address }, failures) {
  const found = [];
  const { page, fail } = await openPage(browser, VIEWS[2], found);
  await load(page, address);
  await checkPage(page, VIEWS[2], fail, { name: "self-test", charts: 3 });
  await load(page, address);
  await checkKeyboard(page, fail);
  await page.context().close();
  for (const text of [
    "request to http://192.0.2.1/", "console error", "exception: thrown", "px wide", "charts, expected at least 3",
    "chart blank is blank", "no text alternative", "chart faint has a contrast", "axe image-alt", "axe color-contrast",
    "reaches no link to the content", "not reached with Tab", "is not visible",
  ]) {
    if (!found.some(each => each.includes(text))) failures.push(`the defect "${text}" was not found in:\n${found.join("\n")}`);
  }
}
