// The dashboard of `riops serve`: list, filter, comparison by ticking, one run, history, live view.
import { VIEWS, checkKeyboard, checkPage, follow, load, openPage, settle } from "./harness.mjs";

// Longest wait for a live figure, in milliseconds. Only a failure takes as long.
const LIVE_MS = 300_000;

// Opens a page of the dashboard. Nothing but the dashboard may be requested.
const open = (browser, view, failures, address) => openPage(browser, view, failures, { origin: new URL(address).origin });

// The titles of the listed runs: id and text of the row.
const listed = page => page.locator("#runs tbody tr").evaluateAll(rows => rows.map(row => [row.dataset.id, row.innerText]));

// Each page of the dashboard in all themes and widths.
export async function servePages(browser, { address, pages }, failures) {
  for (const view of VIEWS) {
    for (const { name, path, charts } of pages) {
      const found = [];
      const { page, fail } = await open(browser, view, found, address);
      await load(page, new URL(path, address).href);
      await checkPage(page, view, fail, { name: `serve-${name}`, charts });
      if (view === VIEWS[0]) await checkKeyboard(page, fail);
      await page.context().close();
      failures.push(...found.map(text => `${path}: ${text}`));
    }
  }
}

// The filter reduces the list, stays visible in its fields, and can be reset. A column sorts.
export async function serveFilter(browser, { address, workload, label, runs }, failures) {
  const { page, fail } = await open(browser, VIEWS[0], failures, address);
  await load(page, address);
  const all = await listed(page);
  if (all.length !== runs) fail(`${all.length} runs are listed, ${runs} are stored`);
  await page.locator("#filters select[name=workload]").selectOption(workload);
  await follow(page, () => page.locator("#filters button[type=submit]").click());
  const some = await listed(page);
  if (some.length === 0 || some.length >= all.length) fail(`${some.length} of ${all.length} runs match workload ${workload}`);
  for (const [id, text] of some) if (!text.includes(workload)) fail(`run ${id} is not of ${workload}: ${text}`);
  if (await page.locator("#filters select[name=workload]").inputValue() !== workload) fail("the filter is not shown");
  await page.locator("#filters input[name=label]").fill(label);
  await follow(page, () => page.keyboard.press("Enter"));
  const labeled = await listed(page);
  if (labeled.length === 0 || labeled.length >= some.length) fail(`${labeled.length} of ${some.length} runs have the label ${label}`);
  await page.locator("#filters input[name=label]").fill("no such label");
  await follow(page, () => page.keyboard.press("Enter"));
  if ((await listed(page)).length > 0) fail("runs match a label that no run has");
  await load(page, address);
  await follow(page, () => page.locator("#runs thead a").last().click());
  const sorted = await listed(page);
  if (sorted.length !== all.length) fail("sorting changes the number of runs");
  if (await page.locator("#runs thead [aria-sort=ascending], #runs thead [aria-sort=descending]").count() !== 1) fail("the sorted column is not marked");
  await page.context().close();
}

// The row of an experiment has its verdict, and its runs are below it when it is unfolded.
export async function serveFold(browser, { address, runs }, failures) {
  for (const view of [VIEWS[0], VIEWS[3]]) {
    const { page, fail } = await open(browser, view, failures, address);
    await load(page, address);
    const row = page.locator("#runs tbody.experiment"), folded = page.locator("#runs tbody.folded tr");
    const text = await row.innerText();
    if (!text.includes("no conclusion yet") || !text.includes(`${runs} runs`)) fail(`the row has no verdict: ${text}`);
    if (await folded.first().isVisible()) fail("the runs of the experiment are not folded");
    await row.locator("button").click();
    if (await folded.count() !== runs || !await folded.last().isVisible()) fail("the runs do not fold out");
    await checkPage(page, view, fail, { name: "serve-fold" });
    await page.context().close();
  }
}

// Ticked runs are compared; with fewer than two, the button does nothing.
export async function serveCompare(browser, { address, pick }, failures) {
  for (const view of [VIEWS[0], VIEWS[3]]) {
    const { page, fail } = await open(browser, view, failures, address);
    await load(page, address);
    const button = page.locator("#compare-button");
    if (await button.isEnabled()) fail("runs can be compared although none is ticked");
    for (const id of pick) await page.locator(`#runs input[value="${id}"]`).check();
    if (!(await button.innerText()).includes(String(pick.length))) fail(`the button does not count: ${await button.innerText()}`);
    await follow(page, () => button.click());
    const text = await page.locator("main").innerText();
    if (await page.locator("#comparison").count() === 0) fail(`there is no comparison: ${text.slice(0, 200)}`);
    for (const id of pick) if (!text.includes(id)) fail(`the comparison does not show run ${id}`);
    await checkPage(page, view, fail, { name: "serve-comparison" });
    await page.context().close();
  }
}

// A run in progress is in the list, its page moves, and ends with a link to the stored run.
export async function serveLive(browser, { address, process: pid }, failures) {
  const { page, fail } = await open(browser, VIEWS[0], failures, address);
  await load(page, address);
  const first = page.locator("#live-runs a").first();
  await first.waitFor({ timeout: LIVE_MS });
  await follow(page, () => first.click());
  await page.waitForSelector("[data-live-chart=rate] canvas", { timeout: LIVE_MS });
  const state = () => page.evaluate(() => ({
    transactions: [...document.querySelectorAll("#live-stages tbody tr")]
      .reduce((sum, row) => sum + Number(row.children[1].textContent.replace(/\D/g, "") || 0), 0),
    chart: document.querySelector("[data-live-chart=rate] canvas").toDataURL(),
  }));
  let last = await state();
  for (let step = 0; step < 3; step += 1) {
    await page.waitForFunction(before => {
      const sum = [...document.querySelectorAll("#live-stages tbody tr")]
        .reduce((sum, row) => sum + Number(row.children[1].textContent.replace(/\D/g, "") || 0), 0);
      return sum > before;
    }, last.transactions, { timeout: LIVE_MS });
    await settle(page);
    const now = await state();
    if (now.chart === last.chart) fail(`the chart did not change at ${now.transactions} transactions`);
    last = now;
  }
  await checkPage(page, VIEWS[0], fail, { name: "serve-live", charts: 2 });
  // The same run on a phone, opened in the middle.
  const phone = await open(browser, VIEWS[3], failures, address);
  await load(phone.page, page.url());
  await phone.page.waitForSelector("[data-live-chart=latency] canvas", { timeout: LIVE_MS });
  await checkPage(phone.page, VIEWS[3], phone.fail, { name: "serve-live", charts: 2 });
  await phone.page.context().close();
  process.kill(pid, "SIGINT");
  const stored = page.locator("#live-result a");
  await stored.waitFor({ timeout: LIVE_MS });
  await follow(page, () => stored.click());
  if (!page.url().includes("/runs/")) fail(`the run has ended, but its page is not open: ${page.url()}`);
  await checkPage(page, VIEWS[0], fail, { name: "serve-stored", charts: 1 });
  await page.context().close();
}
