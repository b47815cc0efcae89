// The parts of the dashboard that move: runs in progress, and the button of the comparison. Every page works without
// this script. Data is written as text only.
"use strict";
(() => {
  const LIST_EVERY_MS = 2000, POINTS_MAX = 1000;
  const PHASES = { warming_up: "warming up", draining: "waiting for transactions in flight", step: "running a statement" };
  const byId = id => document.getElementById(id);
  const element = (name, text, className) => {
    const made = document.createElement(name);
    if (text != null) made.textContent = text;
    if (className) made.className = className;
    return made;
  };
  const phaseText = phase => PHASES[phase] || phase;

  // The button counts the ticked runs.
  function comparison(form) {
    const button = byId("compare-button"), boxes = [...form.querySelectorAll("input[name=run]")];
    const show = () => {
      const number = boxes.filter(box => box.checked).length;
      button.disabled = number < 2;
      button.textContent = number < 2 ? "Tick runs to compare them" : `Compare ${number} runs`;
    };
    form.addEventListener("change", show);
    addEventListener("pageshow", show);
    show();
  }

  // The runs of an experiment are below its row, and fold out.
  function folds(form) {
    for (const button of form.querySelectorAll("button.fold")) {
      const runs = byId(button.getAttribute("aria-controls"));
      const fold = isOpen => {
        runs.hidden = !isOpen;
        button.setAttribute("aria-expanded", isOpen);
        button.textContent = isOpen ? "▾" : "▸";
      };
      button.hidden = false;
      button.addEventListener("click", () => fold(runs.hidden));
      // A ticked run stays visible after a step back.
      fold(!!runs.querySelector("input:checked"));
    }
  }

  // The list of runs in progress.
  function listing(section) {
    const list = byId("live-runs");
    const row = run => {
      const item = element("li"), link = element("a", run.label ? `${run.title} · ${run.label}` : run.title);
      item.dataset.id = run.id;
      link.href = `/live/${encodeURIComponent(run.id)}`;
      item.append(link, " ", element("span", phaseText(run.phase), "badge live"), " ", element("span", run.server, "soft"));
      return item;
    };
    const read = async () => {
      if (document.hidden) return;
      const answer = await fetch("/api/live");
      if (!answer.ok) return;
      const runs = await answer.json();
      const text = runs.map(run => `${run.id} ${run.phase}`).join();
      if (text === list.dataset.shown) return;
      list.dataset.shown = text;
      list.replaceChildren(...runs.map(row));
      section.hidden = !runs.length;
    };
    // A server that was stopped is not an error of the page.
    setInterval(() => read().catch(() => {}), LIST_EVERY_MS);
  }

  // The live view of a run.
  function live(article) {
    const id = encodeURIComponent(article.dataset.id), counted = article.dataset.figure;
    const points = [], plots = {};
    let stages = [], offset = 0, lastStage = 0;

    const line = (label, values) => ({ label, values });
    const x = () => ({ label: "seconds", unit: "seconds", scale: "linear" });
    const marks = () => stages.length > 1 ? stages : [];
    const hasResponse = () => points.some(point => point.response_p50_us != null);
    // The charts keep this object, so that its range follows the values: whole powers of ten.
    const latencies = { label: "latency", unit: "duration_us", scale: "log", range: [1, 10] };
    const latencyAxis = () => {
      const shown = ["p50_us", "max_us"].flatMap(us).filter(value => value > 0);
      if (shown.length) latencies.range = [10 ** Math.floor(Math.log10(Math.min(...shown))), 10 ** Math.ceil(Math.log10(Math.max(...shown)))];
      return latencies;
    };
    const us = name => points.map(point => (hasResponse() ? point[`response_${name}`] : point[name]) ?? null);
    const charts = {
      rate: () => ({
        kind: "lines", x: x(), y: { label: `${counted} per second`, unit: "per_second", scale: "linear" }, marks: marks(), sync: "live",
        xs: points.map(point => point.x), series: [line(`${counted}/s`, points.map(point => point[counted] / point.seconds))],
      }),
      latency: () => ({
        kind: "lines", x: x(), y: latencyAxis(), marks: marks(), sync: "live",
        xs: points.map(point => point.x), series: [line("p50", us("p50_us")), line("p99", us("p99_us")), line("max", us("max_us"))],
      }),
    };
    function draw() {
      if (!points.length) return;
      // A statement that runs once has neither.
      byId("live-figures").hidden = byId("live-charts").hidden = false;
      for (const place of article.querySelectorAll("[data-live-chart]")) {
        const name = place.dataset.liveChart, chart = charts[name]();
        if (plots[name]) riops.update(plots[name], chart); else plots[name] = riops.draw(place, chart);
      }
    }
    function add(point) {
      if (points.length && point.number <= points.at(-1).number) return;
      if (point.stage !== lastStage) {
        offset = points.length ? points.at(-1).x : 0;
        lastStage = point.stage;
        stages.push({ x: offset, label: point.stageName });
      }
      point.x = offset + point.t_s;
      points.push(point);
      if (points.length > POINTS_MAX) points.shift();
    }
    function figures(run, last) {
      if (!last) return;
      byId("live-rate").textContent = riops.text(last[counted] / last.seconds, "per_second");
      for (const [name, field] of [["p50", "p50_us"], ["p99", "p99_us"], ["max", "max_us"]]) {
        const value = last[`response_${field}`] ?? last[field];
        article.querySelector(`[data-tile=${name}]`).textContent = riops.text(value, "duration_us");
      }
      const parts = [["errors", last.errors], ["retries", last.retries], ["late", last.late], ["waiting", last.backlog || 0]];
      byId("live-detail").textContent = parts.filter(([, number]) => number).map(([name, number]) => `${riops.text(number, "count")} ${name}`).join(" · ") || "no errors";
    }
    function table(run) {
      const number = value => element("td", value == null ? "" : riops.text(value, "count"), "number");
      const rows = run.stages.map(stage => {
        const row = element("tr"), name = element("th", stage.name), once = stage.statement_s != null, sums = stage.totals;
        name.scope = "row";
        const share = stage.share != null && stage.share < 1 ? ` (${Math.round(stage.share * 100)}%)` : "";
        const seconds = Math.round(once ? stage.statement_s : sums.seconds);
        row.append(name, ...["transactions", "rows", "errors"].map(field => number(once ? null : sums[field])), element("td", `${seconds} s${share}`, "number"));
        return row;
      });
      article.querySelector("#live-stages tbody").replaceChildren(...rows);
    }
    function show(run) {
      const skipped = run.stages_started - run.stages.length;
      for (const point of run.points) add({ ...point, stageName: (run.stages[point.stage - 1 - skipped] || {}).name || "" });
      const prepared = run.phase === "preparing" && run.prepared_rows && run.prepared_rows[1] ? ` (${Math.floor(100 * run.prepared_rows[0] / run.prepared_rows[1])}%)` : "";
      byId("live-phase").textContent = phaseText(run.phase) + prepared;
      figures(run, points.at(-1));
      table(run);
      draw();
      const notices = byId("live-notices");
      notices.hidden = !run.notices.length;
      notices.querySelector("ul").replaceChildren(...run.notices.map(text => element("li", text)));
    }
    function end(stored) {
      byId("live-phase").textContent = "ended";
      const result = byId("live-result");
      if (!stored) {
        result.textContent = "The run has ended and is not in the store.";
        return;
      }
      const link = element("a", "Open the stored run");
      link.href = `/runs/${id}`;
      result.replaceChildren("The run has ended. ", link);
    }
    const events = new EventSource(`/api/live/${id}/events`);
    events.addEventListener("state", event => show(JSON.parse(event.data)));
    events.addEventListener("end", event => {
      events.close();
      end(JSON.parse(event.data).stored);
    });
  }

  function start() {
    const [form, section, article] = ["compare", "live", "live-run"].map(byId);
    if (form) { comparison(form); folds(form); }
    if (section) listing(section);
    if (article) live(article);
  }
  // Deferred scripts run in order after the page was read, so that `riops` of charts.js exists.
  start();
})();
