// A gallery from its folder: files that load only each other.
import { VIEWS, checkKeyboard, checkPage, follow, load, openPage, settle } from "./harness.mjs";

const MARKS = ", 6 of 6 client dominates, 6 of 6 not bound, 5 of 6 disturbed, 1 of 6 breached";

// Each page in all themes and widths, and the filter of the index.
export async function gallery(browser, { address, pages, runs, words, matching }, failures) {
  for (const view of VIEWS) {
    for (const { name, path, charts } of pages) {
      const found = [];
      const { page, fail } = await openPage(browser, view, found);
      await load(page, address + path);
      // An experiment can have every mark.
      await page.locator(".title .badge").evaluateAll((all, marks) => all.forEach(each => each.append(marks)), MARKS);
      await checkPage(page, view, fail, { name: `gallery-${name}`, charts });
      if (view === VIEWS[0]) await checkKeyboard(page, fail);
      await page.context().close();
      failures.push(...found.map(text => `${path}: ${text}`));
    }
  }
  const { page, fail } = await openPage(browser, VIEWS[0], failures);
  await load(page, `${address}index.html`);
  const shown = () => page.locator("#runs tbody tr:visible").count();
  if (await shown() !== runs) fail(`${await shown()} runs are shown, not ${runs}`);
  await page.locator("#words").fill(words);
  await settle(page);
  if (await shown() !== matching) fail(`${await shown()} runs match "${words}", not ${matching}`);
  await load(page, "about:blank");
  await load(page, `${address}index.html#${encodeURIComponent(words)}`);
  if (await shown() !== matching) fail("the address does not keep the words");
  await follow(page, () => page.locator("#runs tbody tr:visible a").first().click());
  if (!page.url().includes("/runs/")) fail(`a row leads to ${page.url()}`);
  await page.context().close();
}
