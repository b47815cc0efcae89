// Draws the charts of a page with uPlot. A chart is the JSON of `report::chart::Plot`, in a script element of type
// application/json whose id is in `data-chart`. `riops.draw` and `riops.update` are for pages with live data.
"use strict";
const riops = (() => {
  const HEIGHT = 230;
  const drawn = new Set();
  const color = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const seriesColor = number => color(`--series-${number % 8 + 1}`);
  const font = () => "12px system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif";

  const digits = (value, most = 3) => value.toLocaleString("en", { maximumSignificantDigits: most });
  const whole = value => Math.abs(value) >= 100 ? Math.round(value).toLocaleString("en") : digits(value);
  const scaled = (value, steps) => {
    const [size, unit] = steps.find(([size]) => Math.abs(value) >= size * 0.9995) || steps.at(-1);
    return `${digits(value / size)} ${unit}`;
  };
  const FORMATS = {
    count: whole,
    per_second: whole,
    seconds: value => `${digits(value, 5)} s`,
    duration_us: value => value === 0 ? "0" : scaled(value, [[1e6, "s"], [1e3, "ms"], [1, "µs"]]),
    percent: value => `${digits(value)}%`,
    mb_s: value => `${digits(value)} MB/s`,
    mb: value => `${digits(value)} MB`,
    // The position of a percentile: the number of nines.
    nines: value => value === 0 ? "0%" : `${+(100 * (1 - 10 ** -value)).toPrecision(Math.max(2, Math.ceil(value) + 1))}%`,
  };
  const ticks = (value, unit) => {
    if (value == null) return "";
    if ((unit === "per_second" || unit === "count") && Math.abs(value) >= 1e4) return scaled(value, [[1e9, "G"], [1e6, "M"], [1e3, "k"]]).replace(" ", "");
    if (unit === "mb_s" || unit === "mb") return digits(value, 5);
    return FORMATS[unit](value);
  };
  const text = (value, unit) => value == null ? "–" : FORMATS[unit](value);

  const yRange = axis => (plot, low, high) => {
    if (axis.range) return axis.range;
    if (axis.scale === "log") {
      if (low == null) return [1, 10];
      return [Math.max(low, 1e-3) / 1.3, Math.max(high, 1e-3) * 1.3];
    }
    return [0, Math.max(high || 0, 1e-3) * 1.08];
  };
  // The whole range at first and after a double click, and the selected one after a drag.
  const xRange = (chart, xs) => (plot, low, high) => {
    const all = chart.x.range || [0, xs.length ? xs.at(-1) : 1];
    return low == null || (low === xs[0] && high === xs.at(-1)) ? all : [low, high];
  };

  // 1, 2 and 5 times each power of ten, or only the powers if there are many.
  const logSplits = (plot, at, low, high) => {
    const from = Math.floor(Math.log10(low)), to = Math.ceil(Math.log10(high));
    const digits = Math.log10(high / low) > 3 ? [1] : [1, 2, 5];
    const all = Array.from({ length: to - from + 1 }, (_, step) => digits.map(digit => digit * 10 ** (from + step))).flat();
    return all.filter(value => value >= low * 0.999 && value <= high * 1.001);
  };

  const axis = (side, description, extra) => ({
    stroke: () => color("--axis"), font: font(), labelFont: font(), grid: { stroke: () => color("--grid"), width: 1 },
    ticks: { show: false }, border: { show: side === "x", stroke: () => color("--line"), width: 1 },
    values: (plot, splits) => splits.map(value => ticks(value, description.unit)),
    ...(description.scale === "log" ? { splits: logSplits, filter: (plot, splits) => splits } : {}), ...extra,
  });

  // The starts of the stages: a dashed line, and the name where there is room for it.
  const marks = chart => plot => {
    const { ctx, bbox } = plot, ratio = devicePixelRatio;
    const places = (chart.marks || []).map(mark => [plot.valToPos(mark.x, "x", true), mark.label]);
    const end = bbox.left + bbox.width;
    ctx.save();
    ctx.strokeStyle = color("--axis"); ctx.fillStyle = color("--axis");
    ctx.setLineDash([3 * ratio, 3 * ratio]); ctx.lineWidth = ratio; ctx.textAlign = "left";
    ctx.font = `${11 * ratio}px system-ui, sans-serif`;
    places.forEach(([x, label], number) => {
      if (x < bbox.left - 1 || x > end) return;
      ctx.beginPath(); ctx.moveTo(x, bbox.top); ctx.lineTo(x, bbox.top + bbox.height); ctx.stroke();
      const room = Math.min(end, places[number + 1]?.[0] ?? end) - x - 6 * ratio;
      if (chart.kind === "points") {
        // Beside the line: marks of estimates are often close to each other.
        ctx.save(); ctx.translate(x - 3 * ratio, bbox.top + bbox.height - 4 * ratio); ctx.rotate(-Math.PI / 2); ctx.fillText(label, 0, 0); ctx.restore();
        return;
      }
      let text = label;
      while (text.length > 2 && ctx.measureText(text).width > room) text = `${text.slice(0, -2)}…`;
      if (ctx.measureText(text).width <= room) ctx.fillText(text, x + 2 * ratio, bbox.top - 5 * ratio);
    });
    ctx.restore();
  };

  const mix = (from, to, share) => from.map((part, at) => Math.round(part + (to[at] - part) * share));
  const rgb = text => [1, 3, 5].map(at => parseInt(text.slice(at, at + 2), 16));
  const heat = () => {
    const stops = [0, 1, 2, 3, 4].map(number => rgb(color(`--heat-${number}`)));
    return share => {
      const at = Math.min(Math.max(share, 0), 1) * 4, from = Math.min(Math.floor(at), 3);
      return `rgb(${mix(stops[from], stops[from + 1], at - from).join()})`;
    };
  };
  const cells = chart => plot => {
    const { ctx, bbox } = plot, shade = heat(), most = Math.max(2, ...chart.cells.map(cell => cell[2]));
    ctx.save(); ctx.beginPath(); ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height); ctx.clip();
    for (const [slot, bucket, count] of chart.cells) {
      const left = plot.valToPos(chart.slots[slot], "x", true), right = plot.valToPos(chart.slots[slot + 1], "x", true);
      const top = plot.valToPos(chart.bounds[bucket + 1], "y", true), bottom = plot.valToPos(chart.bounds[bucket], "y", true);
      ctx.fillStyle = shade(Math.log(count + 1) / Math.log(most + 1));
      ctx.fillRect(Math.floor(left), Math.floor(top), Math.ceil(right) - Math.floor(left), Math.ceil(bottom) - Math.floor(top));
    }
    ctx.restore();
  };
  // A value for each combination of two settings, as a shade and a number where there is room for it.
  const grid = chart => plot => {
    const { ctx } = plot, ratio = devicePixelRatio, shade = heat(), values = chart.cells.map(cell => cell[2]);
    const least = Math.min(...values), span = Math.max(...values) - least;
    ctx.save(); ctx.textAlign = "center"; ctx.textBaseline = "middle"; ctx.font = `${11 * ratio}px system-ui, sans-serif`;
    for (const [column, row, value] of chart.cells) {
      const left = plot.valToPos(column - 0.5, "x", true), right = plot.valToPos(column + 0.5, "x", true);
      const top = plot.valToPos(row + 0.5, "y", true), bottom = plot.valToPos(row - 0.5, "y", true);
      const fill = shade(span ? (value - least) / span : 0.5), label = ticks(value, chart.unit);
      ctx.fillStyle = fill; ctx.fillRect(left + ratio, top + ratio, right - left - 2 * ratio, bottom - top - 2 * ratio);
      const light = fill.match(/\d+/g).reduce((sum, part, at) => sum + part * [0.299, 0.587, 0.114][at], 0) > 140;
      ctx.fillStyle = light ? "#111" : "#fff";
      if (ctx.measureText(label).width < right - left - 6 * ratio && bottom - top > 12 * ratio) ctx.fillText(label, (left + right) / 2, (top + bottom) / 2);
    }
    ctx.restore();
  };
  const dots = chart => plot => {
    const { ctx, bbox } = plot, size = (chart.points.length > 4000 ? 2 : 3) * devicePixelRatio;
    const colors = Array.from({ length: 8 }, (_, number) => seriesColor(number));
    ctx.save(); ctx.beginPath(); ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height); ctx.clip();
    ctx.globalAlpha = chart.points.length > 4000 ? 0.55 : 0.8;
    for (const [t, latency, session] of chart.points) {
      ctx.fillStyle = colors[session % 8];
      ctx.fillRect(plot.valToPos(t, "x", true) - size / 2, plot.valToPos(latency, "y", true) - size / 2, size, size);
    }
    ctx.restore();
  };

  // Estimates: uPlot has their values for the legend and the pointer, and this draws them with their intervals.
  const positions = chart => [...new Set(chart.series.flatMap(one => one.points.map(point => point.x)))].sort((a, b) => a - b);
  const interval = (found, unit) => found ? ` (${text(found[0], unit)} to ${text(found[1], unit)})` : "";
  const estimates = chart => plot => {
    const { ctx, bbox } = plot, ratio = devicePixelRatio, bars = chart.series.filter(one => one.style === "bars").length;
    const X = value => plot.valToPos(value, "x", true), Y = value => plot.valToPos(value, "y", true);
    const path = points => { ctx.beginPath(); points.forEach(([x, y], at) => at ? ctx.lineTo(x, y) : ctx.moveTo(x, y)); };
    const bar = (x, low, high, isUpright) => {
      const cap = 4 * ratio, ends = isUpright ? [[x, low], [x, high]] : [[low, x], [high, x]];
      path(ends); ctx.stroke();
      for (const [a, b] of ends) { path(isUpright ? [[a - cap, b], [a + cap, b]] : [[a, b - cap], [a, b + cap]]); ctx.stroke(); }
    };
    ctx.save(); ctx.beginPath(); ctx.rect(bbox.left, bbox.top - 12 * ratio, bbox.width + 28 * ratio, bbox.height + 12 * ratio); ctx.clip();
    let nextBar = 0;
    const labels = [];
    ctx.textAlign = "left"; // The axes leave another alignment.
    chart.series.forEach((one, number) => {
      if (!plot.series[number + 1].show) return;
      const stroke = seriesColor(number), points = one.points.map(point => [X(point.x), Y(point.y)]);
      ctx.strokeStyle = ctx.fillStyle = stroke; ctx.lineWidth = 1.5 * ratio; ctx.setLineDash(one.style === "dashed" ? [6 * ratio, 4 * ratio] : []);
      if (one.style === "bars") {
        const slot = (X(1) - X(0)) * 0.7 / bars, offset = (nextBar++ + 0.5) * slot - slot * bars / 2;
        one.points.forEach((point, at) => {
          const x = points[at][0] + offset;
          ctx.fillStyle = stroke; ctx.globalAlpha = 0.75; ctx.fillRect(x - slot * 0.45, points[at][1], slot * 0.9, Y(0) - points[at][1]); ctx.globalAlpha = 1;
          ctx.strokeStyle = color("--ink"); if (point.interval) bar(x, Y(point.interval[0]), Y(point.interval[1]), true);
        });
        return;
      }
      if (one.style === "steps") {
        const half = (X(1) - X(0)) * 0.35;
        one.points.forEach((point, at) => {
          const [x, y] = points[at], isEnd = at === 0 || at === points.length - 1, from = isEnd ? Y(0) : points[at - 1][1];
          ctx.fillStyle = isEnd ? stroke : seriesColor(y < from ? 1 : 2); ctx.globalAlpha = 0.75;
          ctx.fillRect(x - half, Math.min(y, from), 2 * half, Math.max(Math.abs(from - y), ratio)); ctx.globalAlpha = 1;
          ctx.fillStyle = color("--axis"); ctx.font = `${11 * ratio}px system-ui, sans-serif`; ctx.textAlign = "center"; ctx.fillText(point.label || "", x, Math.min(y, from) - 4 * ratio);
        });
        return;
      }
      if (one.style === "boxes") {
        const half = Math.min((X(1) - X(0)) * 0.3, 40 * ratio);
        one.points.forEach((point, at) => {
          const [x, y] = points[at], [top, bottom] = [Y(point.quartiles[1]), Y(point.quartiles[0])];
          bar(x, Y(point.interval[0]), Y(point.interval[1]), true);
          ctx.fillStyle = color("--panel"); ctx.fillRect(x - half, top, 2 * half, bottom - top);
          ctx.fillStyle = stroke; ctx.globalAlpha = 0.25; ctx.fillRect(x - half, top, 2 * half, bottom - top); ctx.globalAlpha = 1;
          ctx.strokeRect(x - half, top, 2 * half, bottom - top);
          ctx.lineWidth = 3 * ratio; path([[x - half, y], [x + half, y]]); ctx.stroke(); ctx.lineWidth = 1.5 * ratio;
          for (const value of point.values) { ctx.beginPath(); ctx.arc(x, Y(value), 2.5 * ratio, 0, 7); ctx.fill(); }
        });
        return;
      }
      if (one.style === "band" || one.style === "dashed") {
        const known = one.points.filter(point => point.interval);
        path([...known.map(point => [X(point.x), Y(point.interval[0])]), ...known.map(point => [X(point.x), Y(point.interval[1])]).reverse()]);
        ctx.globalAlpha = 0.15; ctx.fill(); ctx.globalAlpha = 1;
        path(points); ctx.stroke();
        return;
      }
      if (one.style === "line") { path(points); ctx.stroke(); }
      ctx.lineWidth = ratio;
      one.points.forEach((point, at) => {
        const [x, y] = points[at];
        if (point.interval) bar(x, Y(point.interval[0]), Y(point.interval[1]), true);
        if (point.x_interval) bar(y, X(point.x_interval[0]), X(point.x_interval[1]), false);
        ctx.fillStyle = stroke; ctx.beginPath(); ctx.arc(x, y, 3 * ratio, 0, 7); ctx.fill();
        const isFree = labels.every(([a, b]) => Math.abs(a - x) > 40 * ratio || Math.abs(b - y) > 12 * ratio);
        if (point.label && isFree) {
          labels.push([x, y]);
          ctx.fillStyle = color("--axis"); ctx.font = `${11 * ratio}px system-ui, sans-serif`; ctx.fillText(point.label, x + 6 * ratio, y - 6 * ratio); }
      });
    });
    ctx.restore();
  };

  // The data that uPlot sees: the lines, or only the corners of a chart that a hook draws.
  const data = chart => {
    if (chart.kind === "lines") return [chart.xs, ...chart.series.map(one => one.values)];
    if (chart.kind === "points") {
      const xs = positions(chart);
      return [xs, ...chart.series.map(one => xs.map(x => one.points.find(point => point.x === x)?.y ?? null))];
    }
    if (chart.kind === "heatmap") return [chart.slots, chart.slots.map(() => null)];
    return [chart.x.range, [null, null]];
  };
  const series = chart => {
    if (chart.kind === "points") {
      const name = value => (chart.names || [])[(chart.ticks || []).indexOf(value)] ?? text(value, chart.x.unit);
      const x = { label: chart.x.label, value: (plot, value) => value == null ? "–" : name(value) };
      return [x, ...chart.series.map((one, number) => ({
        label: one.label, stroke: () => seriesColor(number), width: 0, paths: () => null, points: { show: false },
        value: (plot, value, at, index) => {
          const found = index == null ? null : one.points.find(point => point.x === plot.data[0][index]);
          return value == null || !found ? "–" : text(value, chart.y.unit) + interval(found.interval, chart.y.unit) + (found.label ? `, ${found.label}` : "");
        },
      }))];
    }
    const lines = chart.kind === "lines" ? chart.series : [];
    const x = { label: chart.x.unit === "seconds" ? "time" : chart.x.label, value: (plot, value) => text(value, chart.x.unit) };
    if (!lines.length) return [x, { show: false }];
    const isDense = chart.xs.length > 1500;
    return [x, ...lines.map((one, number) => ({
      // The lines of a long run fill the space between its lowest and highest values: let those behind show through.
      label: one.label, stroke: () => seriesColor(number) + (isDense ? "99" : ""), width: isDense ? 1 : 1.5, dash: number >= 8 ? [6, 4] : undefined,
      spanGaps: false, points: { show: chart.xs.length <= 40, size: 4, fill: () => seriesColor(number) },
      value: (plot, value) => text(value, chart.y.unit),
    }))];
  };

  // Without a pointer, the legend has the last value of each series.
  const lastIndex = values => Math.max(0, (values || []).findLastIndex(value => value != null));
  const showLast = plot => {
    if (plot.legend.idx == null && plot.data[0]?.length) plot.setLegend({ idxs: plot.data.map(lastIndex) }, false);
  };

  function options(chart, place) {
    const hooks = [];
    if (chart.kind === "heatmap") hooks.push(cells(chart));
    if (chart.kind === "grid") hooks.push(grid(chart));
    if (chart.kind === "dots") hooks.push(dots(chart));
    if (chart.kind === "points") hooks.push(estimates(chart));
    hooks.push(marks(chart));
    const xs = data(chart)[0];
    const x = axis("x", chart.x, { size: 26, gap: 5, space: 64 });
    if (chart.x.unit === "count" && chart.kind !== "points") x.incrs = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000];
    if (chart.kind === "points" && chart.ticks) {
      // Without those that are too close to the one before.
      x.splits = plot => {
        const place = value => plot.valToPos(value, "x");
        const longest = Math.max(0, ...(chart.names || []).map(name => name.length));
        // The names of steps are short.
        const room = chart.series[0].style === "steps" ? 0 : Math.max(plot.width * 0.045, 7 * longest + 10);
        return chart.ticks.reduce((kept, value) => kept.length && place(value) - place(kept.at(-1)) < room ? kept : [...kept, value], []);
      };
      x.filter = (plot, splits) => splits;
      if (chart.names) x.values = (plot, splits) => splits.map(value => chart.names[chart.ticks.indexOf(value)]);
    }
    const y = axis("y", chart.y, {
      gap: 5, space: 30,
      size: (plot, values) => Math.max(34, ...(values || []).map(value => 11 + 7 * (value || "").length)),
    });
    if (chart.kind === "grid") {
      for (const [each, names] of [[x, chart.columns], [y, chart.rows]]) {
        Object.assign(each, { splits: () => names.map((name, at) => at), filter: (plot, splits) => splits, values: (plot, splits) => splits.map(at => names[at]), grid: { show: false } });
      }
      // Here the title names no axis.
      Object.assign(x, { label: chart.x.label, labelSize: 20 }); y.label = chart.y.label;
    }
    if (chart.x.scale === "nines") {
      x.splits = (plot, at, low, high) => Array.from({ length: Math.floor(high) + 1 }, (_, nines) => nines);
    }
    return {
      width: Math.max(place.clientWidth, 200), height: HEIGHT, series: series(chart), hooks: { draw: hooks, ready: [showLast], setLegend: [showLast], setData: [showLast] },
      scales: {
        x: { time: false, distr: chart.x.scale === "log" ? 3 : 1, range: xRange(chart, xs) },
        y: { distr: chart.y.scale === "log" ? 3 : 1, range: yRange(chart.y) },
      },
      axes: [x, y],
      padding: [chart.marks ? 18 : 8, 30, 0, 0],
      legend: { show: chart.kind === "lines" || chart.kind === "points", markers: { width: 0, fill: (plot, number) => seriesColor(number - 1) } },
      cursor: { drag: { x: true, y: false }, y: false, points: { size: 6 }, sync: chart.sync ? { key: chart.sync } : undefined },
    };
  }

  function draw(place, chart) {
    const plot = new uPlot(options(chart, place), data(chart), place);
    plot.riops = { place, chart };
    drawn.add(plot);
    place.addEventListener("keydown", event => {
      const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (!step || !["lines", "points"].includes(chart.kind) || !plot.data[0].length) return;
      event.preventDefault();
      const now = plot.cursor.idx == null ? (step > 0 ? -1 : plot.data[0].length) : plot.cursor.idx;
      const index = Math.min(Math.max(now + step, 0), plot.data[0].length - 1);
      plot.setCursor({ left: plot.valToPos(plot.data[0][index], "x"), top: 10 });
    });
    return plot;
  }
  function update(plot, chart) {
    Object.assign(plot.riops.chart, chart);
    plot.setData(data(plot.riops.chart));
  }
  const resize = width => drawn.forEach(plot => plot.setSize({ width: Math.max(width || plot.riops.place.clientWidth, 200), height: HEIGHT }));
  const repaint = () => drawn.forEach(plot => plot.redraw(false, true));

  function start() {
    for (const place of document.querySelectorAll("[data-chart]")) {
      draw(place, JSON.parse(document.getElementById(place.dataset.chart).textContent));
    }
    let waiting = 0;
    addEventListener("resize", () => { cancelAnimationFrame(waiting); waiting = requestAnimationFrame(() => resize()); });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);
    // On paper, charts are light and half as wide as the page.
    addEventListener("beforeprint", () => { document.documentElement.classList.add("paper"); resize(330); });
    addEventListener("afterprint", () => { document.documentElement.classList.remove("paper"); resize(); });
  }
  if (document.readyState === "loading") addEventListener("DOMContentLoaded", start); else start();
  return { draw, update, color, text };
})();
