"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const SVG = "http://www.w3.org/2000/svg";
  const NARROW = 480;

  // --- elements: texts are only ever texts --------------------------------------------------------

  function make(name, attributes = {}, ...children) {
    const element = document.createElement(name);
    return fill(element, attributes, children);
  }
  function draw(name, attributes = {}, ...children) {
    return fill(document.createElementNS(SVG, name), attributes, children);
  }
  function fill(element, attributes, children) {
    for (const [name, value] of Object.entries(attributes)) {
      if (value !== null) element.setAttribute(name, value);
    }
    element.append(...children);
    return element;
  }

  // --- numbers and times --------------------------------------------------------------------------

  const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
  const digits = new Intl.NumberFormat("en", { maximumSignificantDigits: 6 });
  const cents = new Intl.NumberFormat("en", { maximumFractionDigits: 2 });

  function number(value) {
    if (value === null || value === undefined) return "none";
    const size = Math.abs(value);
    if (size !== 0 && (size >= 1e15 || size < 1e-4)) return value.toExponential(5).replace(/\.?0+e/, "e");
    if (Number.isInteger(value)) return whole.format(value).replace("-", "−");
    return (size >= 1e6 ? cents : digits).format(value).replace("-", "−");
  }
  function brief(value, digits) {  // where there is no room for many zeros
    if (value === null || value === undefined || Math.abs(value) < 1e10) return number(value);
    return Number(value.toPrecision(digits)).toExponential().replace("e+", "e").replace("-", "−");
  }
  function mark(value) {
    const [long, short] = [number(value), brief(value, 12)];
    return short.length < long.length ? short : long;
  }
  function bytes(value) {
    const units = ["B", "kB", "MB", "GB", "TB"];
    let at = 0;
    while (value >= 1000 && at < 4) { value /= 1000; at += 1; }
    return `${at && value < 100 ? value.toFixed(1) : Math.round(value)} ${units[at]}`;
  }
  function span(seconds) {
    if (seconds === null) return "none";
    if (seconds === 0) return "0 s";
    for (const [limit, unit, factor] of [[1, "ms", 0.001], [120, "s", 1], [7200, "min", 60], [172800, "h", 3600]]) {
      if (Math.abs(seconds) < limit) return `${number(Number((seconds / factor).toPrecision(3)))} ${unit}`;
    }
    return `${number(Number((seconds / 86400).toPrecision(3)))} days`;
  }

  function clock(axis) {
    if (axis.kind !== "time") {
      return { shown: number, ticks: (low, high, count) => steps(low, high, count).map((at) => [at, number(at)]) };
    }
    const zone = zoneOf(axis.zone);
    const form = new Intl.DateTimeFormat("en-CA", {
      timeZone: zone, hourCycle: "h23", year: "numeric", month: "2-digit", day: "2-digit",
      hour: "2-digit", minute: "2-digit", second: "2-digit", timeZoneName: "short",
    });
    function parts(at) {
      const found = {};
      for (const part of form.formatToParts(new Date(Math.floor(at / 1000)))) found[part.type] = part.value;
      return found;
    }
    function offset(at) {
      const p = parts(at);
      const there = Date.UTC(p.year, p.month - 1, p.day, p.hour, p.minute, p.second);
      return (there - Math.floor(at / 1e6) * 1000) * 1000;
    }
    function shown(at) {
      const p = parts(at);
      const rest = ((at % 1e6) + 1e6) % 1e6;
      const fraction = rest ? `.${String(rest).padStart(6, "0").replace(/0+$/, "")}` : "";
      const seconds = p.second !== "00" || fraction ? `:${p.second}${fraction}` : "";
      const named = axis.zone === null ? "" : ` ${p.timeZoneName}`;
      return `${p.year}-${p.month}-${p.day} ${p.hour}:${p.minute}${seconds}${named}`;
    }
    function ticks(low, high, count) {
      const wanted = (high - low) / Math.max(1, count);
      const out = [];
      if (wanted > 20 * 86400e6) return months(low, high, wanted);
      const [step] = STEPS.filter((s) => s * 1e6 >= wanted).concat([86400 * 14]);
      const size = step * 1e6;
      for (let local = Math.ceil((low + offset(low)) / size) * size; out.length < 40; local += size) {
        const at = local - offset(local - offset(low));
        if (at > high) break;
        if (at < low) continue;
        const p = parts(at);
        const day = `${MONTHS[p.month - 1]} ${Number(p.day)}`;
        const midnight = p.hour === "00" && p.minute === "00" && p.second === "00";
        const exact = step < 60 ? `${p.hour}:${p.minute}:${p.second}` : `${p.hour}:${p.minute}`;
        out.push([at, step >= 86400 ? day : midnight ? day : exact]);
      }
      return out;
    }
    function months(low, high, wanted) {
      const out = [];
      const every = [1, 2, 3, 6, 12, 24, 60, 120, 240, 600, 1200].find((m) => m * 30.4 * 86400e6 >= wanted * 0.7) || 1200;
      const start = new Date((low + offset(low)) / 1000);
      let month = Math.ceil((start.getUTCFullYear() * 12 + start.getUTCMonth()) / every) * every;
      for (; out.length < 40; month += every) {
        const local = Date.UTC(Math.floor(month / 12), month % 12, 1) * 1000;
        const at = local - offset(local);
        if (at > high) break;
        const year = String(Math.floor(month / 12));
        if (at >= low) out.push([at, month % 12 ? MONTHS[month % 12] : year]);
      }
      return out;
    }
    return { shown, ticks };
  }
  const STEPS = [1e-6, 1e-5, 1e-4, 1e-3, 0.01, 0.1, 1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 10800,
    21600, 43200, 86400, 172800, 432000, 604800, 1209600];
  const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

  function zoneOf(name) {
    try {
      new Intl.DateTimeFormat("en", { timeZone: name || "UTC" });
      return name || "UTC";
    } catch {
      return "UTC";
    }
  }
  function steps(low, high, count) {
    const rough = (high - low) / Math.max(1, count) || 1;
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= rough * 0.999);
    const out = [];
    for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9 && out.length < 50; i += 1) {
      out.push(Number((i * step).toPrecision(12)));
    }
    return out;
  }

  // --- a chart: lines or bars, told of by pointer and by keyboard ----------------------------------

  function chart(box, options) {
    const state = { lines: [], at: null };
    const svg = draw("svg", { "aria-hidden": "true" });
    const tip = make("div", { class: "tip", hidden: "" });
    box.replaceChildren(svg, tip);
    box.tabIndex = 0;
    box.setAttribute("role", "group");
    box.setAttribute("aria-roledescription", "chart");
    let scale = null;

    function show(lines) {
      state.lines = lines;
      state.at = null;
      render();
    }
    function render() {
      const width = Math.max(220, box.clientWidth || 800);
      const height = options.height(width);
      svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
      svg.setAttribute("width", width);
      svg.setAttribute("height", height);
      svg.replaceChildren();
      tip.hidden = true;
      const drawn = state.lines.filter((line) => line.v.some((v) => v !== null));
      if (!drawn.length) {
        svg.append(draw("text", { x: 8, y: 24 }, options.empty || "Nothing to draw"));
        scale = null;
        return;
      }
      scale = scales(drawn, width, height);
      frame(width, height);
      drawn.forEach((line, i) => (options.bars ? drawBars : drawLine)(line, (i + 1) / drawn.length));
      if (!options.bars && drawn.length > 1) names(drawn, width);
      svg.append(draw("g", { class: "marks" }));
    }
    function scales(lines, width, height) {
      const [low, high] = range(lines, options.bars);
      const pad = options.bars ? 0 : (high - low) * 0.03;
      const bottom = low === 0 ? 0 : low - pad, top = high === 0 ? 0 : high + pad;
      const unit = options.unit ? options.unit(top) : 1;
      const marks = steps(bottom / unit, top / unit, height < 200 ? 3 : 5).map((mark) => mark * unit);
      const labels = marks.map(options.value);
      const left = Math.max(...labels.map((label) => label.length)) * 7 + 12;
      const right = !options.bars && lines.length > 1 && width > NARROW ? 56 : 14;
      const box = { left, right: width - right, top: 14, bottom: height - 26 };
      let first = Infinity, last = -Infinity;
      for (const line of lines) { first = Math.min(first, line.t[0]); last = Math.max(last, line.t[line.t.length - 1]); }
      if (options.bars) { const half = (options.step || 1) / 2; first -= half; last += half; }
      if (first === last) { const pad = options.pad || 1; first -= pad; last += pad; }
      const x = (t) => box.left + ((t - first) / (last - first)) * (box.right - box.left);
      const y = (v) => box.bottom - ((v - bottom) / (top - bottom)) * (box.bottom - box.top);
      return { x, y, first, last, bottom, top, box, marks, labels, lines, pixel: (last - first) / (box.right - box.left) };
    }
    function frame(width, height) {
      const { box: b, x, y } = scale;
      scale.marks.forEach((mark, i) => {
        svg.append(draw("line", { class: "grid", x1: b.left, x2: b.right, y1: y(mark), y2: y(mark) }));
        svg.append(draw("text", { x: b.left - 8, y: y(mark) + 4, "text-anchor": "end" }, scale.labels[i]));
      });
      svg.append(draw("line", { class: "base", x1: b.left, x2: b.right, y1: b.bottom, y2: b.bottom }));
      let free = -Infinity;
      for (const [at, label] of options.clock.ticks(scale.first, scale.last, Math.max(2, (b.right - b.left) / 80))) {
        const place = x(at), half = label.length * 3.6;
        if (place - half < free || place + half > width) continue;
        free = place + half + 10;
        svg.append(draw("line", { class: "base", x1: place, x2: place, y1: b.bottom, y2: b.bottom + 4 }));
        svg.append(draw("text", { x: place, y: b.bottom + 18, "text-anchor": place - half < 0 ? "start" : "middle" }, label));
      }
    }
    function drawLine(line, share) {
      const { x, y } = scale;
      const gap = line.gap === null ? Infinity : Math.max(line.gap, 3 * scale.pixel);
      const dots = [];
      let path = "", open = 0, before = null;
      const close = () => { if (open === 1) dots.push(before); open = 0; };
      line.v.forEach((v, i) => {
        if (v === null) { close(); return; }
        if (open && line.t[i] - line.t[before] > gap) close();
        path += `${open ? "L" : "M"}${x(line.t[i]).toFixed(1)} ${y(v).toFixed(1)}`;
        open += 1;
        before = i;
      });
      close();
      // a dense line is quieter the shorter its window, so that longer ones are seen through it
      const dense = line.t.length > (scale.box.right - scale.box.left) / 2;
      svg.append(draw("path", {
        class: `line ${line.colour}${dense && share === 1 ? " last" : ""}`, d: path,
        "stroke-dasharray": line.dash || null, "stroke-opacity": dense ? (0.4 + 0.6 * share).toFixed(2) : 1,
      }));
      if (dots.length <= 2000) {
        for (const i of dots) {
          svg.append(draw("circle", { class: `dot ${line.colour}`, cx: x(line.t[i]).toFixed(1), cy: y(line.v[i]).toFixed(1), r: 2 }));
        }
      }
    }
    function drawBars(line) {
      const { x, y, bottom } = scale;
      const step = options.step || 1;
      line.v.forEach((v, i) => {
        if (v === null) return;
        const from = x(line.t[i] - step / 2), to = x(line.t[i] + step / 2);
        const gap = to - from > 4 ? 1 : 0;
        const top = Math.min(y(v), y(Math.max(0, bottom)));
        const size = Math.abs(y(v) - y(Math.max(0, bottom)));
        svg.append(draw("rect", { class: "bar", "data-i": i, x: (from + gap / 2).toFixed(1), y: top.toFixed(1), width: Math.max(0.8, to - from - gap).toFixed(1), height: Math.max(v ? 1 : 0, size).toFixed(1) }));
      });
    }
    function names(lines, width) {
      if (width <= NARROW) return;
      const places = lines.map((line) => {
        let i = line.v.length - 1;
        while (line.v[i] === null) i -= 1;
        return { line, y: scale.y(line.v[i]) + 4, x: scale.x(line.t[i]) + 6 };
      }).sort((a, b) => a.y - b.y);
      places.forEach((p, i) => { if (i) p.y = Math.max(p.y, places[i - 1].y + 13); });
      const over = Math.max(0, places[places.length - 1].y - scale.box.bottom);
      for (const p of places) {
        svg.append(draw("text", { class: `end ${p.line.colour}`, x: p.x, y: p.y - over }, p.line.label));
      }
    }

    // where the eye is: [line, point]
    function point(line, i) {
      state.at = [line, i];
      const marks = svg.querySelector(".marks");
      marks.replaceChildren();
      svg.querySelectorAll(".bar.on").forEach((bar) => bar.classList.remove("on"));
      const held = scale.lines[line];
      const t = held.t[i], v = held.v[i];
      const px = scale.x(t), py = scale.y(v);
      const { box: b } = scale;
      if (options.bars) {
        const bar = svg.querySelector(`.bar[data-i="${i}"]`);
        if (bar) bar.classList.add("on");
      } else {
        marks.append(draw("line", { class: "cross", x1: px, x2: px, y1: b.top, y2: b.bottom }));
        marks.append(draw("circle", { class: `ring ${held.colour}`, cx: px, cy: py, r: 5 }));
      }
      const said = options.tell(held, t, v, i);
      tip.replaceChildren(make("b", {}, said[0]), ...said.slice(1).map((text) => make("div", {}, text)));
      tip.hidden = false;
      const ratio = (box.clientWidth || 1) / Number(svg.getAttribute("width"));
      const wide = tip.offsetWidth, high = tip.offsetHeight;
      const right = px * ratio + 14 + wide <= box.clientWidth;
      tip.style.left = `${Math.max(0, Math.min(box.clientWidth - wide, right ? px * ratio + 14 : px * ratio - 14 - wide))}px`;
      tip.style.top = `${Math.max(0, Math.min(py * ratio - high / 2, b.bottom * ratio - high))}px`;
      options.say(said.join(", "));
    }
    function leave() {
      state.at = null;
      tip.hidden = true;
      const marks = svg.querySelector(".marks");
      if (marks) marks.replaceChildren();
      svg.querySelectorAll(".bar.on").forEach((bar) => bar.classList.remove("on"));
    }
    function nearest(px, py) {
      let best = null, least = Infinity;
      scale.lines.forEach((line, n) => {
        const t = scale.first + (px - scale.box.left) * scale.pixel;
        const middle = after(line.t, t);
        const reach = 40 * scale.pixel;
        let tried = 0;
        const look = (i) => {
          if (line.v[i] === null) return;
          const dx = scale.x(line.t[i]) - px, dy = options.bars ? 0 : scale.y(line.v[i]) - py;
          const far = dx * dx + dy * dy;
          tried += 1;
          if (far < least) { least = far; best = [n, i]; }
        };
        for (let i = middle; i < line.t.length && (tried < 1 || line.t[i] - t <= reach); i += 1) look(i);
        tried = 0;
        for (let i = middle - 1; i >= 0 && (tried < 1 || t - line.t[i] <= reach); i -= 1) look(i);
      });
      return best;
    }
    function after(times, t) {
      let low = 0, high = times.length;
      while (low < high) {
        const middle = (low + high) >> 1;
        if (times[middle] < t) low = middle + 1; else high = middle;
      }
      return low;
    }
    function moved(event) {
      if (!scale) return;
      const here = svg.getBoundingClientRect();
      const ratio = Number(svg.getAttribute("width")) / here.width;
      const found = nearest((event.clientX - here.left) * ratio, (event.clientY - here.top) * ratio);
      if (found) point(...found);
    }
    function key(event) {
      if (!scale || event.ctrlKey || event.metaKey || event.altKey) return;
      const jumps = { ArrowRight: 1, ArrowLeft: -1, PageDown: 20, PageUp: -20 };
      if (event.key === "Escape") { leave(); return; }
      let [line, i] = state.at || [0, -1];
      if (event.key in jumps) i = step(scale.lines[line], i, jumps[event.key]);
      else if (event.key === "Home") i = step(scale.lines[line], -1, 1);
      else if (event.key === "End") i = step(scale.lines[line], scale.lines[line].v.length, -1);
      else if ((event.key === "ArrowUp" || event.key === "ArrowDown") && scale.lines.length > 1) {
        const t = i < 0 ? scale.first : scale.lines[line].t[i];
        line = (line + (event.key === "ArrowDown" ? 1 : scale.lines.length - 1)) % scale.lines.length;
        i = step(scale.lines[line], after(scale.lines[line].t, t) - 1, 1);
      } else return;
      event.preventDefault();
      point(line, i);
    }
    function step(line, from, by) {
      const one = Math.sign(by);
      let left = Math.abs(by), last = from;
      for (let i = from + one; i >= 0 && i < line.v.length && left; i += one) {
        if (line.v[i] !== null) { last = i; left -= 1; }
      }
      if (last < 0 || last >= line.v.length || line.v[last] === null) return step(line, last < 0 ? -1 : line.v.length, last < 0 ? 1 : -1);
      return last;
    }
    box.addEventListener("pointermove", moved);
    box.addEventListener("pointerdown", moved);
    box.addEventListener("pointerleave", (event) => { if (event.pointerType === "mouse") leave(); });
    box.addEventListener("blur", leave);
    box.addEventListener("keydown", key);
    let before = 0;
    new ResizeObserver(() => {
      if (box.clientWidth !== before) { before = box.clientWidth; render(); }
    }).observe(box);
    return { show };
  }
  function range(lines, fromZero) {
    let low = Infinity, high = -Infinity;
    for (const line of lines) {
      for (const v of line.v) if (v !== null) { if (v < low) low = v; if (v > high) high = v; }
    }
    if (fromZero || (low > 0 && low < 0.4 * high)) low = Math.min(0, low);
    if (fromZero) high = Math.max(0, high);
    if (high < 0 && high > 0.4 * low) high = 0;
    if (low === high) { const pad = Math.abs(low) * 0.1 || 1; low -= fromZero && !low ? 0 : pad; high += pad; }
    return [low, high];
  }

  // --- features over time -------------------------------------------------------------------------

  const unpacked = (line, step) => {
    let at = line.s;
    return { t: line.t.map((d) => (at += d * step)), v: line.v };
  };

  function features(root, run) {
    const pick = (name) => root.querySelector(`[data-pick="${name}"]`);
    const said = root.querySelector("output");
    const body = root.querySelector("[data-ends]");
    const points = root.querySelector("[data-points]");
    const box = root.querySelector(".chart");
    const when = clock(run.axis);
    const made = chart(box, {
      height: (width) => (width <= NARROW ? 260 : 340),
      value: mark, clock: when, empty: "No numbers to draw for this choice",
      tell: (line, t, v) => [number(v), `${line.stem}, ${line.label}`, line.key, when.shown(t)],
      say: (text) => { said.textContent = text; },
    });
    let lines = [];
    function chosen() {
      const stem = run.stems[pick("stem").selectedIndex];
      const key = run.keys[pick("key").selectedIndex];
      const on = new Set([...root.querySelectorAll("[data-window]")].filter((b) => b.checked).map((b) => Number(b.dataset.window)));
      lines = stem.names.map((name, w) => ({ name, w })).filter(({ name, w }) => name && on.has(w)).map(({ name, w }) => ({
        ...unpacked(key.lines[name], run.step), whole: key.lines[name].w,
        label: run.windows[w].label, length: run.windows[w].length, stem: stem.label, key: key.label,
        colour: `k${w % 6}`, dash: w < 6 ? "" : "6 3",
      }));
      for (const line of lines) line.gap = pause(line);
      said.textContent = "";
      made.show(lines);
      summary(stem, key);
      if (points.open) table();
    }
    // from which pause on a line is broken: points of neighbouring columns may be two columns apart
    function pause(line) {
      if (line.length === null) return null;
      const column = (line.t[line.t.length - 1] - line.t[0]) / run.columns;
      return line.whole ? line.length : Math.max(line.length, 2.1 * column);
    }
    function summary(stem, key) {
      body.replaceChildren(...lines.map((line) => {
        let low = -1, high = -1, last = -1;
        line.v.forEach((v, i) => {
          if (v === null) return;
          if (low < 0 || v < line.v[low]) low = i;
          if (high < 0 || v > line.v[high]) high = i;
          last = i;
        });
        const cell = (name, i) => make("td", { class: "n", "data-name": name }, i < 0 ? "none" : brief(line.v[i], 6), make("br"), make("small", { class: "note" }, i < 0 ? "" : when.shown(line.t[i])));
        return make("tr", {}, make("th", { scope: "row" }, line.label), cell("lowest", low), cell("highest", high), cell("last", last));
      }));
      const shown = lines.map((line) => line.label).join(", ");
      box.setAttribute("aria-label", `${stem.label} of ${key.label} over time, windows ${shown || "none"}. Arrow keys go from point to point.`);
      root.querySelector("[data-title]").textContent = `${stem.label}, ${key.label}`;
      const kept = lines.every((line) => line.whole);
      root.querySelector("[data-faithful]").textContent = kept ? "Every row is drawn." : `${whole.format(key.rows)} rows, drawn by the first, lowest, highest and last of each of ${run.columns} columns: no spike is lost.`;
    }
    function table() {
      const rows = points.querySelector("tbody");
      const most = 400;
      const all = lines.flatMap((line) => line.t.map((t, i) => [line.label, t, line.v[i]])).sort((a, b) => a[1] - b[1]);
      const every = Math.ceil(all.length / most) || 1;
      rows.replaceChildren(...all.filter((_, i) => i % every === 0).map(([label, t, v]) => make("tr", {}, make("td", {}, when.shown(t)), make("td", {}, label), make("td", { class: "n" }, number(v)))));
      points.querySelector("caption").textContent = every === 1 ? `All ${all.length} points` : `Every ${every}th of ${whole.format(all.length)} points`;
    }
    root.addEventListener("change", chosen);
    points.addEventListener("toggle", () => { if (points.open) table(); });
    chosen();
  }

  // --- small charts: batches, and rows over time ---------------------------------------------------

  const KINDS = { number, bytes, span };
  const UNITS = { span: (top) => (top >= 172800 ? 86400 : top >= 7200 ? 3600 : top >= 120 ? 60 : 1) };
  function small(box, one, axis) {
    const said = box.parentElement.querySelector("output");
    const when = clock(axis);
    chart(box, {
      height: () => 150, bars: one.bars, step: one.step, value: KINDS[one.kind], unit: UNITS[one.kind], clock: when,
      tell: (line, t, v, i) => [KINDS[one.kind](v), one.told[0] + (one.labels ? one.labels[i] : when.shown(t)) + one.told[1]],
      say: (text) => { said.textContent = text; },
    }).show([{ t: one.t, v: one.v, label: one.title, gap: null, colour: "k0" }]);
    box.setAttribute("aria-label", `${one.title}. Arrow keys go from one to the next.`);
  }

  data.runs.forEach((run, n) => {
    const lines = document.querySelector(`[data-features="${n}"]`);
    if (lines) features(lines, run);
    run.small.forEach((one, i) => small(document.querySelector(`[data-small="${n}-${i}"]`), one, one.axis));
  });
  document.documentElement.dataset.ready = "true";
})();
