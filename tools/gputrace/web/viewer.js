// The timeline of gputrace's pages. Its data comes from page.go: see pageData there. Moments are
// nanoseconds from the beginning of the trace. d3-zoom does panning and zooming, d3-scale the ticks.
// The drawing is a canvas. A frame visits only the visible part, so its cost does not depend on the
// length of the trace.
import {scaleLinear} from "d3-scale";
import {pointer, select} from "d3-selection";
import {zoom, zoomIdentity, zoomTransform} from "d3-zoom";

const DEVICE = 0, COMMAND = 1, CALL = 2, WAIT = 3, QUEUE = 4, PATH = 5, IDLE = 6;
const $ = id => document.getElementById(id);

// Colours of Observable's categories. They differ also for people with red-green colour blindness.
const PALETTE = ["#4269d0", "#efb118", "#ff725c", "#6cc5b0", "#a463f2", "#97bbf5", "#3ca951", "#ff8ab7", "#9c6b4e", "#8793a6"];
// Colours for the kinds of segments of the critical path and of idle time.
const KINDS = {
  device: ["#4269d0", "another operation"], start: ["#97bbf5", "from issued to begun"], give: ["#c9d17a", "the host still gave work that may have run"], issue: ["#efb118", "from submitted to issued"],
  peers: ["#a463f2", "a collective waits for the other ranks"], seen: ["#ff8ab7", "until the host saw the end"], call: ["#6cc5b0", "a call of the host"], wait: ["#9c6b4e", "the host waits"], host: ["#ff725c", "the host's own work"],
};

async function read() {
  const text = $("data").textContent;
  $("data").remove();
  const raw = atob(text), bytes = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).json();
}

export function duration(ns) {
  const v = Math.abs(ns), sign = ns < 0 ? "−" : "";
  if (v === 0) return "0";
  for (const [per, unit] of [[1, "ns"], [1e3, "µs"], [1e6, "ms"], [1e9, "s"]]) {
    const x = v / per;
    if (x >= 999.5 && per < 1e9) continue;
    return sign + x.toFixed(per === 1 || x >= 99.95 ? 0 : x >= 9.995 ? 1 : 2) + " " + unit;
  }
}

// Formats a moment in the unit for a size, with enough digits for a step between two moments.
function moment(ns, step, size = Math.abs(ns)) {
  const [per, unit] = size >= 1e9 ? [1e9, "s"] : size >= 1e6 ? [1e6, "ms"] : size >= 1e3 ? [1e3, "µs"] : [1, "ns"];
  const digits = Math.max(0, Math.min(9, Math.ceil(-Math.log10(step / per) - 1e-9)));
  return (ns / per).toLocaleString("en", {minimumFractionDigits: digits, maximumFractionDigits: digits}) + " " + unit;
}

function element(tag, props, ...children) {
  const e = document.createElement(tag);
  Object.assign(e, props);
  e.append(...children);
  return e;
}

function start(data) {
  for (const o of [data, data.slices, data.subs, data.summary]) for (const k in o) o[k] ??= [];
  const {strings, slices, subs, length} = data, n = slices.name.length;

  // Slices by index, in rows. Begins and ends increase within a row.
  const begin = new Float64Array(n), end = new Float64Array(n), rowOf = new Int32Array(n);
  const rows = []; // {track, lane, first, count}
  {
    let at = 0;
    data.tracks.forEach((track, t) => {
      track.firstRow = rows.length;
      track.rows.forEach((count, lane) => {
        let time = 0;
        for (let i = at; i < at + count; i++) {
          time += slices.begin[i];
          begin[i] = time, end[i] = time + slices.dur[i], rowOf[i] = rows.length;
        }
        rows.push({track: t, lane, first: at, count});
        at += count;
      });
    });
  }
  // Arrows by slice: in and out.
  const adjacent = (of, other) => {
    const start = new Int32Array(n + 1), list = new Int32Array(of.length);
    for (const i of of) start[i + 1]++;
    for (let i = 0; i < n; i++) start[i + 1] += start[i];
    const next = start.slice();
    of.forEach((i, k) => list[next[i]++] = other[k]);
    return i => list.subarray(start[i], start[i + 1]);
  };
  const from = data.from ?? [], to = data.to ?? [];
  const causes = adjacent(to, from), effects = adjacent(from, to);
  // The slice of a submission: of the device, else of the queue.
  const sliceOfSub = new Int32Array(subs.id?.length ?? 0).fill(-1), queueOfSub = sliceOfSub.slice();
  for (let i = 0; i < n; i++) {
    const s = slices.sub[i];
    if (s < 0) continue;
    if (slices.kind[i] === DEVICE) sliceOfSub[s] = i;
    if (slices.kind[i] === QUEUE) queueOfSub[s] = i;
  }
  for (let s = 0; s < sliceOfSub.length; s++) if (sliceOfSub[s] < 0) sliceOfSub[s] = queueOfSub[s];
  // Colours by name: the names with the most time get colours of their own.
  const colorOf = new Map();
  {
    const total = new Map();
    for (let i = 0; i < n; i++) if (slices.kind[i] === DEVICE || slices.kind[i] === COMMAND || slices.kind[i] === QUEUE) {
      total.set(slices.name[i], (total.get(slices.name[i]) ?? 0) + (slices.kind[i] === QUEUE ? 1e-3 : 1) * (end[i] - begin[i]));
    }
    [...total].sort((a, b) => b[1] - a[1]).forEach(([name], i) => colorOf.set(name, PALETTE[i < 9 ? i : (i * 7) % PALETTE.length]));
  }
  // Slices on the critical path.
  const onPath = new Uint8Array(n);
  for (let i = 0; i < n; i++) if (slices.kind[i] === PATH && slices.sub[i] >= 0) {
    const s = slices.sub[i];
    if (sliceOfSub[s] >= 0) onPath[sliceOfSub[s]] = 1;
    if (queueOfSub[s] >= 0) onPath[queueOfSub[s]] = 1;
  }
  for (let i = 0; i < n; i++) if (slices.kind[i] === COMMAND && slices.sub[i] >= 0) onPath[i] = onPath[sliceOfSub[slices.sub[i]]] ?? 0;
  const kindOfNote = new Map(Object.entries(KINDS).map(([k]) => [strings.indexOf(k), k]));
  const pathWords = {"operations on a device": "device", "from issued to begun": "start", "the host still gave work that may have run": "give", "from submitted to issued": "issue", "until the host saw the end": "seen",
    "calls of the host": "call", "waits of the host for something else": "wait", "the host's own work": "host"};

  const name = i => strings[slices.name[i]];
  const kindKey = i => slices.kind[i] === IDLE ? kindOfNote.get(slices.note[i]) ?? "host" : pathWords[strings[slices.note[i]]] ?? "host";
  const color = i => {
    switch (slices.kind[i]) {
      case CALL: return "#6cc5b0";
      case WAIT: return "#8793a6";
      case IDLE: return KINDS[kindKey(i)][0];
      case PATH: return slices.sub[i] >= 0 && kindKey(i) === "device" ? colorOf.get(slices.name[sliceOfSub[slices.sub[i]]]) ?? KINDS.device[0] : KINDS[kindKey(i)][0];
    }
    return colorOf.get(slices.name[i]) ?? "#8793a6";
  };
  const dark = new Map(); // whether a colour needs white text
  const inkOn = c => {
    let v = dark.get(c);
    if (v === undefined) {
      const [r, g, b] = [1, 3, 5].map(k => (parseInt(c.slice(k, k + 2), 16) / 255) ** 2.2);
      dark.set(c, v = 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.2 ? "#14171c" : "#ffffff");
    }
    return v;
  };

  // ---- layout: processes, tracks and counters from top to bottom

  const HEIGHTS = {host: 20, queue: 11, stream: 24, channel: 24, nodes: 17, path: 22, idle: 12};
  const closed = new Set();
  let items = [], total = 0;
  const rowY = new Float64Array(rows.length), rowH = new Float64Array(rows.length);
  function layout() {
    items = [], rowH.fill(0);
    let y = 0;
    const put = (item, h) => { items.push({...item, y, h}); y += h; };
    data.processes.forEach((p, i) => {
      put({type: "process", process: i, title: p.title}, 26);
      if (closed.has(i)) return;
      data.tracks.forEach((t, k) => {
        if (t.process !== i) return;
        const h = r => r > 0 && (t.kind === "stream" || t.kind === "channel" || t.kind === "nodes") ? 17 : t.kind === "host" && t.rows.length > 6 ? 9 : HEIGHTS[t.kind] ?? 20;
        let height = 3;
        t.rows.forEach((_, r) => {
          rowY[t.firstRow + r] = y + height, rowH[t.firstRow + r] = h(r) - 1;
          height += h(r);
        });
        put({type: "track", track: k, title: t.title, more: t.more}, Math.max(height + 2, 20));
      });
      (data.counters ?? []).forEach((c, k) => { if (c.process === i) put({type: "counter", counter: k, title: c.title}, 44); });
    });
    total = y + 40;
    $("content").style.height = total + "px";
    $("labels").replaceChildren(...items.map(it => {
      const e = it.type === "process"
        ? element("button", {type: "button", textContent: it.title, title: it.title, onclick: () => { closed.has(it.process) ? closed.delete(it.process) : closed.add(it.process); layout(); redraw(); }})
        : element("div", {textContent: it.title, title: it.title});
      if (it.type === "process") e.setAttribute("aria-expanded", String(!closed.has(it.process)));
      if (it.more) e.append(element("small", {textContent: `${it.more.toLocaleString("en")} more at the same time`}));
      if (it.type === "counter") {
        const c = data.counters[it.counter];
        e.append(element("small", {textContent: c.series.length > 1 ? c.series.join(", ") : c.series[0] ?? ""}));
      }
      e.style.top = it.y + "px", e.style.height = it.h + "px";
      if (it.type === "track" && it.h < 32) e.style.paddingTop = Math.max(0, (it.h - 19) / 2) + "px";
      return e;
    }));
  }

  // ---- the view

  const scroll = $("scroll"), canvas = $("timeline"), overview = $("overview"), axis = $("axis");
  let width = 100, height = 100, x0 = scaleLinear([0, length], [0, 100]), x = x0;
  const margin = length * 0.01;
  let selected = -1, hovered = -1, arrows = true, critical = false, matches = [], matched = null, match = -1, cursor = null, drawn = 0;
  const still = matchMedia("(prefers-reduced-motion: reduce)");

  const zooming = zoom().clickDistance(4)
    .filter(e => e.type === "wheel" ? e.ctrlKey || e.metaKey : !e.button && !(e.ctrlKey && e.type === "mousedown"))
    .wheelDelta(e => -e.deltaY * (e.deltaMode === 1 ? 0.06 : e.deltaMode ? 1 : 0.004))
    .on("zoom", e => { x = e.transform.rescaleX(x0); redraw(); });
  const surface = select(canvas).call(zooming).on("dblclick.zoom", null);

  function resize() {
    const ratio = devicePixelRatio || 1;
    const seen = [x.invert(0), x.invert(width)];
    width = Math.max(scroll.clientWidth - $("span").offsetWidth, 50), height = scroll.clientHeight;
    for (const [c, h] of [[canvas, height], [overview, 36], [axis, 22]]) {
      c.width = Math.round(width * ratio), c.height = Math.round(h * ratio);
      c.style.width = width + "px", c.style.height = h + "px";
    }
    x0 = scaleLinear([-margin, length + margin], [0, width]);
    zooming.scaleExtent([1, Math.max(2, (length * 1.02) / Math.max(width / 50, 1))]).translateExtent([[0, -Infinity], [width, Infinity]]).extent([[0, 0], [width, height]]);
    overviewImage = null;
    show(seen[0], seen[1], false);
    draw(); // at once, because resizing clears a canvas
  }

  function show(a, b, smooth = true) {
    const min = width / 50; // at most 50 pixels a nanosecond
    if (b - a < min) [a, b] = [(a + b - min) / 2, (a + b + min) / 2];
    const k = Math.max(1, (x0.domain()[1] - x0.domain()[0]) / (b - a));
    const t = zoomIdentity.scale(k).translate(-x0(a), 0);
    (smooth && !still.matches ? surface.transition().duration(220) : surface).call(zooming.transform, t);
  }
  const fit = () => show(x0.domain()[0], x0.domain()[1]);
  const zoomBy = f => (still.matches ? surface : surface.transition().duration(120)).call(zooming.scaleBy, f, [cursor ?? width / 2, 0]);
  const panBy = f => (still.matches ? surface : surface.transition().duration(100)).call(zooming.translateBy, -f * width / zoomTransform(canvas).k, 0);

  canvas.addEventListener("wheel", e => {
    if (e.ctrlKey || e.metaKey) return;
    const d = e.shiftKey ? e.deltaY || e.deltaX : Math.abs(e.deltaX) > Math.abs(e.deltaY) ? e.deltaX : 0;
    if (d) e.preventDefault(), surface.call(zooming.translateBy, -d / zoomTransform(canvas).k, 0);
  }, {passive: false});
  scroll.addEventListener("scroll", () => redraw());

  // ---- drawing

  let style = {};
  function colors() {
    const s = getComputedStyle(document.documentElement);
    style = Object.fromEntries(["bg", "bg2", "bg3", "line", "line2", "fg", "fg2", "fg3", "accent", "warn"].map(k => [k, s.getPropertyValue("--" + k).trim()]));
    style.font = getComputedStyle(document.body).fontFamily;
    hatch = null, overviewImage = null;
  }
  let hatch = null;
  function stripes(c) {
    if (!hatch) {
      const p = document.createElement("canvas");
      p.width = p.height = 6;
      const g = p.getContext("2d");
      g.strokeStyle = style.fg3, g.lineWidth = 1.1, g.globalAlpha = 0.55;
      g.beginPath(), g.moveTo(-1, 5), g.lineTo(5, -1), g.moveTo(2, 8), g.lineTo(8, 2), g.stroke();
      hatch = c.createPattern(p, "repeat");
    }
    return hatch;
  }

  let frame = 0;
  function redraw() { frame ||= requestAnimationFrame(() => { frame = 0; draw(); }); }

  // The first slice of a row whose end is after a moment.
  function firstAfter(row, t) {
    let lo = row.first, hi = row.first + row.count;
    while (lo < hi) {
      const mid = (lo + hi) >> 1;
      if (end[mid] > t) hi = mid; else lo = mid + 1;
    }
    return lo;
  }
  // The first slice of a row, from i on, that begins at a moment or later.
  function firstFrom(row, i, t) {
    let lo = i, hi = row.first + row.count;
    while (lo < hi) {
      const mid = (lo + hi) >> 1;
      if (begin[mid] >= t) hi = mid; else lo = mid + 1;
    }
    return lo;
  }

  function draw() {
    const ratio = devicePixelRatio || 1, g = canvas.getContext("2d"), top = scroll.scrollTop;
    const [t0, t1] = [x.invert(0), x.invert(width)];
    g.setTransform(ratio, 0, 0, ratio, 0, 0);
    g.fillStyle = style.bg, g.fillRect(0, 0, width, height);
    // ticks
    const ticks = x.ticks(Math.max(2, Math.min(10, width / 130)));
    g.fillStyle = style.line;
    for (const t of ticks) g.fillRect(Math.round(x(t)), 0, 1, height);
    drawAxis(ticks, ratio);
    g.save(), g.translate(0, -top);
    for (const it of items) {
      if (it.y + it.h < top || it.y > top + height) continue;
      g.fillStyle = it.type === "process" ? style.bg3 : style.line;
      g.fillRect(0, it.y, width, it.type === "process" ? it.h : 1);
      if (it.type === "track") {
        const t = data.tracks[it.track];
        for (let r = 0; r < t.rows.length; r++) drawRow(g, t.firstRow + r, t, t0, t1);
      } else if (it.type === "counter") drawCounter(g, it, t0, t1);
      else drawInstants(g, it, t0, t1);
    }
    drawn = drawArrows(g, t0, t1, top);
    for (const i of [hovered, selected]) {
      if (i < 0 || rowH[rowOf[i]] <= 0) continue;
      const a = Math.max(x(begin[i]), -4), b = Math.min(Math.max(x(end[i]), x(begin[i]) + 2), width + 4);
      g.strokeStyle = i === selected ? style.fg : style.fg2, g.lineWidth = i === selected ? 2 : 1;
      g.strokeRect(a - 1, rowY[rowOf[i]] - 1, b - a + 2, rowH[rowOf[i]] + 2);
    }
    g.restore();
    if (cursor !== null) g.fillStyle = style.fg3, g.fillRect(Math.round(cursor), 0, 1, height);
    drawOverview(ratio, t0, t1);
    $("span").innerHTML = "";
    $("span").append(element("b", {textContent: duration(Math.min(t1, length) - Math.max(t0, 0))}), cursor === null ? "in view" : "at " + moment(x.invert(cursor), (t1 - t0) / 1000));
  }

  function dimmed(i) {
    if (matched) return !matched[i];
    if (critical) return slices.kind[i] !== PATH && !onPath[i];
    return false;
  }

  function drawRow(g, r, track, t0, t1) {
    const row = rows[r], y = rowY[r], h = rowH[r], last = row.first + row.count, text = h >= 15;
    g.font = `${h >= 20 ? 12 : 11}px ${style.font}`, g.textBaseline = "middle";
    const pixel = (t1 - t0) / width;
    for (let i = firstAfter(row, t0); i < last && begin[i] <= t1;) {
      const a = x(begin[i]), b = x(end[i]);
      if (b - a < 1.5) {
        // One pixel for all slices that begin in it, filled in proportion, in the colour of the longest one or of a match.
        let next = firstFrom(row, i + 1, x.invert(Math.floor(a) + 1)), best = i, filled = 0;
        if (next - 1 > i && end[next - 1] - begin[next - 1] >= pixel * 1.5) next--; // it is drawn separately
        for (let k = i, most = -1; k < next && k < i + 500; k++) {
          const d = end[k] - begin[k], rank = dimmed(k) ? d : d + length;
          filled += d;
          if (rank > most) most = rank, best = k;
        }
        g.globalAlpha = (dimmed(best) ? 0.14 : 1) * (slices.kind[i] === WAIT ? 0.55 : 1) * Math.min(1, 0.45 + 0.55 * filled / pixel);
        g.fillStyle = color(best);
        g.fillRect(Math.floor(a), y, 1.2, h);
        i = Math.max(next, i + 1);
        continue;
      }
      const left = Math.max(a, -2), right = Math.min(b, width + 2), w = Math.max(right - left - (b - a > 4 ? 0.7 : 0), 1);
      const c = color(i), base = dimmed(i) ? 0.14 : 1;
      if (slices.kind[i] === QUEUE) drawQueued(g, i, c, y, h, base);
      else {
        g.globalAlpha = base * (slices.kind[i] === WAIT ? 0.3 : 1);
        g.fillStyle = c, g.fillRect(left, y, w, h);
        if (slices.kind[i] === WAIT) g.globalAlpha = base, g.fillStyle = stripes(g), g.fillRect(left, y, w, h);
        const s = slices.sub[i];
        if (s >= 0 && subs.error[s] && slices.kind[i] !== PATH) g.globalAlpha = 1, g.fillStyle = style.warn, g.fillRect(left, y + h - 3, w, 3);
      }
      if (text && w > 26) label(g, name(i), left, w, y + h / 2 + 0.5, slices.kind[i] === WAIT ? style.fg : inkOn(c), base);
      i++;
    }
    g.globalAlpha = 1;
  }

  // A submission: parked, issued and not begun, executed, not yet seen.
  function drawQueued(g, i, c, y, h, base) {
    const s = slices.sub[i], at = t => Math.max(-2, Math.min(width + 2, x(t)));
    const part = (a, b, alpha, fill = c) => {
      if (!(b > a)) return;
      g.globalAlpha = base * alpha, g.fillStyle = fill, g.fillRect(at(a), y, Math.max(at(b) - at(a) - 0.4, 0.6), h);
    };
    const issued = subs.issued[s] < 0 ? end[i] : subs.issued[s];
    const begun = subs.begun[s] < 0 ? issued : subs.begun[s], ended = subs.ended[s] < 0 ? begun : subs.ended[s];
    if (subs.parked[s]) part(begin[i], issued, 0.2), part(begin[i], issued, 1, stripes(g));
    else part(begin[i], issued, 0.2);
    part(issued, begun, 0.36), part(begun, ended, 1), part(ended, end[i], 0.25);
    if (subs.begun[s] < 0) part(issued, end[i], 0.6);
    if (subs.error[s]) g.globalAlpha = 1, g.fillStyle = style.warn, g.fillRect(at(begin[i]), y + h - 3, Math.max(at(end[i]) - at(begin[i]), 2), 3);
  }

  const widths = new Map();
  function textWidth(g, s) {
    const k = g.font.slice(0, 4) + s;
    let w = widths.get(k);
    if (w === undefined) {
      if (widths.size > 20000) widths.clear();
      widths.set(k, w = g.measureText(s).width);
    }
    return w;
  }
  function label(g, s, left, w, y, ink, base) {
    const room = w - 8;
    let t = s;
    const full = textWidth(g, s);
    if (full > room) {
      const fits = Math.floor(s.length * room / full) - 1;
      if (fits < 2) return;
      t = s.slice(0, fits) + "…";
    }
    g.globalAlpha = base < 1 ? 0.3 : 1, g.fillStyle = ink, g.fillText(t, left + 4, y);
  }

  function drawCounter(g, it, t0, t1) {
    const c = data.counters[it.counter], top = it.y + 4, h = it.h - 7;
    const time = c.time;
    let lo = 0, hi = time.length;
    while (lo < hi) { const mid = (lo + hi) >> 1; if (time[mid] > t0) hi = mid; else lo = mid + 1; }
    const first = Math.max(0, lo - 1);
    c.values.forEach((values, k) => {
      const paint = PALETTE[(it.counter * 3 + k * 2) % PALETTE.length];
      g.beginPath(), g.moveTo(Math.max(-2, x(time[first] ?? 0)), top + h);
      let px = -Infinity, peak = 0, lastX = 0;
      for (let i = first; i < time.length; i++) {
        const a = Math.max(-2, x(time[i])), b = i + 1 < time.length ? Math.min(x(time[i + 1]), width + 2) : Math.min(x(length), width + 2);
        if (a > width) break;
        peak = Math.max(peak, values[i]);
        if (b - px < 0.8 && i + 1 < time.length) continue;
        const y = top + h * (1 - peak / (c.max || 1));
        g.lineTo(a, y), g.lineTo(b, y);
        px = lastX = b, peak = 0;
      }
      g.lineTo(lastX, top + h), g.closePath();
      g.globalAlpha = 0.3, g.fillStyle = paint, g.fill();
      g.globalAlpha = 1, g.strokeStyle = paint, g.lineWidth = 1.2, g.stroke();
    });
    g.font = `10px ${style.font}`, g.textBaseline = "top", g.fillStyle = style.fg3, g.textAlign = "right";
    g.fillText("max " + amount(c.max, c.title), width - 6, top);
    g.textAlign = "left";
  }
  const amount = (v, title) => /bytes/.test(title) ? bytes(v) : v.toLocaleString("en");
  const bytes = v => { for (const [per, unit] of [[2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"]]) if (v >= per) return (v / per).toPrecision(3) + " " + unit; return v + " B"; };

  const MARKS = {loss: "✕", drop: "▼", clock: "◆"};
  function drawInstants(g, it, t0, t1) {
    g.textAlign = "center", g.textBaseline = "middle", g.font = `12px ${style.font}`;
    let last = -Infinity;
    for (const m of data.instants ?? []) {
      if (m.process !== it.process || m.time < t0 || m.time > t1) continue;
      const at = x(m.time), grave = m.kind === "loss" || m.kind === "drop";
      if (at - last < 7 && !grave) continue;
      last = at;
      g.fillStyle = grave ? style.warn : style.fg3, g.fillText(MARKS[m.kind] ?? "◆", at, it.y + 13);
    }
    g.textAlign = "left";
  }

  // Arrows of the selected slice and of the slice under the mouse, and all visible ones if they are few.
  function drawArrows(g, t0, t1, top) {
    let count = 0;
    const one = (a, b, strong) => {
      const ra = rowOf[a], rb = rowOf[b];
      if (rowH[ra] <= 0 || rowH[rb] <= 0) return;
      // From the signal to the wait: the beginning of an operation, or the end of a wait of the host.
      const xa = x(end[a]), xb = x(slices.kind[b] === WAIT ? end[b] : begin[b]);
      if (Math.max(xa, xb) < -50 || Math.min(xa, xb) > width + 50) return;
      if (!strong && ra === rb && xb - xa < 10) return; // too short for more than a head
      const ya = rowY[ra] + rowH[ra] / 2, yb = rowY[rb] + rowH[rb] / 2, clampX = v => Math.max(-4000, Math.min(4000 + width, v));
      const [ax, bx] = [clampX(xa), clampX(xb)], bend = Math.max(14, Math.min(60, Math.abs(bx - ax) / 2));
      g.globalAlpha = strong ? 1 : 0.42, g.strokeStyle = g.fillStyle = strong ? style.accent : style.fg2, g.lineWidth = strong ? 1.8 : 1;
      g.beginPath(), g.moveTo(ax, ya), g.bezierCurveTo(ax + bend, ya, bx - bend, yb, bx - 3, yb), g.stroke();
      g.beginPath(), g.moveTo(bx, yb), g.lineTo(bx - 6, yb - 3.5), g.lineTo(bx - 6, yb + 3.5), g.fill();
      count++;
    };
    if (arrows) {
      const few = [];
      for (const it of items) {
        if (it.type !== "track" || it.y + it.h < top || it.y > top + height || few.length > 90) continue;
        const t = data.tracks[it.track];
        for (let r = t.firstRow; r < t.firstRow + t.rows.length && few.length <= 90; r++) {
          const row = rows[r];
          for (let i = firstAfter(row, t0), seen = 0; i < row.first + row.count && begin[i] <= t1 && few.length <= 90 && seen < 2000; i++, seen++) {
            if (dimmed(i)) continue;
            for (const c of causes(i)) few.push([c, i]);
          }
        }
      }
      if (few.length <= 90) for (const [a, b] of few) if (a !== selected && b !== selected) one(a, b, false);
    }
    for (const i of new Set([selected, hovered])) {
      if (i < 0) continue;
      const k = standing(i);
      for (const c of causes(k)) one(c, k, true);
      for (const e of effects(k)) one(k, e, true);
    }
    g.globalAlpha = 1;
    return count;
  }
  // The slice that has a slice's arrows.
  function standing(i) {
    const s = slices.sub[i];
    return s >= 0 && slices.kind[i] !== COMMAND && sliceOfSub[s] >= 0 ? sliceOfSub[s] : i;
  }

  function drawAxis(ticks, ratio) {
    const g = axis.getContext("2d"), step = ticks.length > 1 ? ticks[1] - ticks[0] : length, size = Math.max(Math.abs(ticks.at(-1) ?? 0), step);
    g.setTransform(ratio, 0, 0, ratio, 0, 0), g.clearRect(0, 0, width, 22);
    g.font = `11px ${style.font}`, g.textBaseline = "middle", g.fillStyle = style.fg2;
    for (const t of ticks) {
      const at = Math.round(x(t));
      g.fillRect(at, 15, 1, 7);
      g.fillText(t ? moment(t, step, size) : "0", at + 4, 11);
    }
  }

  // The overview of the trace: how busy each device was, pixel by pixel.
  let overviewImage = null;
  function drawOverview(ratio, t0, t1) {
    const g = overview.getContext("2d");
    g.setTransform(ratio, 0, 0, ratio, 0, 0);
    if (!overviewImage) {
      overviewImage = document.createElement("canvas");
      overviewImage.width = overview.width, overviewImage.height = overview.height;
      const o = overviewImage.getContext("2d");
      let lanes = data.processes.map((p, i) => i).filter(i => data.processes[i].kind === "device" && data.tracks.some(t => t.process === i && t.kind !== "queue" && t.kind !== "idle"));
      if (!lanes.length) lanes = data.processes.map((p, i) => i).filter(i => data.tracks.some(t => t.process === i && (t.kind === "queue" || t.kind === "host")));
      const h = 32 * ratio / Math.max(lanes.length, 1), columns = overview.width, scale = columns / width; // in pixels of the screen
      lanes.forEach((p, lane) => {
        const busy = new Float64Array(columns + 1);
        data.tracks.forEach(t => {
          if (t.process !== p || t.kind === "idle" || (t.kind === "queue" && data.processes[p].kind === "device" && sliceOfSub.some((s, k) => s >= 0 && slices.kind[s] === DEVICE))) return;
          const row = rows[t.firstRow];
          for (let i = row.first; i < row.first + row.count; i++) {
            const a = Math.max(0, x0(begin[i]) * scale), b = Math.min(columns, x0(end[i]) * scale);
            for (let k = Math.floor(a); k <= b && k < busy.length; k++) busy[k] += Math.min(b, k + 1) - Math.max(a, k);
          }
        });
        o.fillStyle = PALETTE[0];
        for (let k = 0; k < busy.length; k++) if (busy[k] > 0) {
          o.globalAlpha = 0.15 + 0.8 * Math.min(1, busy[k]);
          o.fillRect(k, Math.round(2 * ratio + lane * h), 1, Math.max(Math.round(h - 2 * ratio), 1));
        }
      });
    }
    g.fillStyle = style.bg2, g.fillRect(0, 0, width, 36);
    g.drawImage(overviewImage, 0, 0, width, 36);
    const a = Math.max(0, x0(t0)), b = Math.min(width, x0(t1));
    if (a > 0.5 || b < width - 0.5) {
      g.globalAlpha = 0.72, g.fillStyle = style.bg2, g.fillRect(0, 0, a, 36), g.fillRect(b, 0, width - b, 36), g.globalAlpha = 1;
      g.strokeStyle = style.accent, g.lineWidth = 1.5, g.strokeRect(Math.max(a - 0.5, 1), 1, Math.max(b - a, 3), 34);
    }
  }
  {
    let from = null;
    const at = e => x0.invert(pointer(e, overview)[0]);
    overview.onpointerdown = e => { from = at(e); overview.setPointerCapture(e.pointerId); };
    overview.onpointermove = e => {
      if (from === null) return;
      const t = at(e), min = 3 * (x0.invert(1) - x0.invert(0));
      if (Math.abs(t - from) > min) show(Math.min(from, t), Math.max(from, t), false);
    };
    overview.onpointerup = e => {
      if (from === null) return;
      const t = at(e), half = (x.invert(width) - x.invert(0)) / 2;
      if (Math.abs(t - from) <= 3 * (x0.invert(1) - x0.invert(0))) show(t - half, t + half);
      from = null;
    };
    overview.ondblclick = fit;
  }

  // ---- finding the slice under the mouse

  function hit(e) {
    const [px, py] = pointer(e, canvas), y = py + scroll.scrollTop, t = x.invert(px), slack = x.invert(3) - x.invert(0);
    for (const it of items) {
      if (y < it.y || y >= it.y + it.h) continue;
      if (it.type === "process") {
        const marks = (data.instants ?? []).filter(m => m.process === it.process && Math.abs(m.time - t) < 2 * slack);
        return {instant: marks.find(m => m.kind !== "clock") ?? marks[0], slice: -1};
      }
      if (it.type === "counter") return {counter: it.counter, slice: -1};
      const track = data.tracks[it.track];
      for (let r = track.firstRow; r < track.firstRow + track.rows.length; r++) {
        if (y < rowY[r] - 1 || y > rowY[r] + rowH[r] + 1) continue;
        const i = firstAfter(rows[r], t - slack);
        if (i < rows[r].first + rows[r].count && begin[i] <= t + slack) {
          const next = i + 1; // of two adjacent slices, the one under the mouse
          if (end[i] < t && next < rows[r].first + rows[r].count && begin[next] <= t) return {slice: next};
          return {slice: i};
        }
      }
    }
    return {slice: -1};
  }
  const tip = $("tip");
  canvas.addEventListener("pointermove", e => {
    cursor = pointer(e, canvas)[0];
    const h = e.buttons ? {slice: -1} : hit(e);
    hovered = h.slice;
    let lines = null;
    if (h.slice >= 0) {
      const i = h.slice, s = slices.sub[i];
      lines = [name(i), `${duration(end[i] - begin[i])}, at ${duration(begin[i])}`];
      if (s >= 0 && slices.kind[i] !== IDLE) lines.push(`#${subs.id[s]} ${strings[subs.op[s]]} · ${strings[subs.queue[s]]}`);
      if (s >= 0 && subs.error[s]) lines.push(strings[subs.error[s]]);
      if (slices.kind[i] === PATH || slices.kind[i] === IDLE) lines.push(slices.kind[i] === PATH ? strings[slices.note[i]] : KINDS[kindKey(i)][1]);
    } else if (h.instant) lines = [h.instant.text, "at " + duration(h.instant.time)];
    else if (h.counter !== undefined) {
      const c = data.counters[h.counter], t = x.invert(cursor);
      let i = c.time.findLastIndex?.(v => v <= t) ?? -1;
      if (i >= 0) lines = [c.title, ...c.series.map((s, k) => `${s}: ${amount(c.values[k][i], c.title)}`)];
    }
    tip.hidden = !lines;
    if (lines) {
      tip.replaceChildren(element("b", {textContent: lines[0]}), ...lines.slice(1).map(l => element("span", {textContent: l})));
      const w = tip.offsetWidth, h2 = tip.offsetHeight;
      tip.style.left = Math.max(4, e.clientX + 14 + w > innerWidth ? e.clientX - w - 12 : e.clientX + 14) + "px";
      tip.style.top = Math.max(4, e.clientY + 18 + h2 > innerHeight ? e.clientY - h2 - 10 : e.clientY + 18) + "px";
    }
    redraw();
  });
  canvas.addEventListener("pointerleave", () => { cursor = null, hovered = -1, tip.hidden = true; redraw(); });
  canvas.addEventListener("click", e => { choose(hit(e).slice, false); canvas.focus({preventScroll: true}); });
  canvas.addEventListener("dblclick", e => { const i = hit(e).slice; if (i >= 0) choose(i, false), focusOn(i); });

  // ---- selecting

  function describe(i) {
    const track = data.tracks[rows[rowOf[i]].track];
    return `${name(i)}, ${duration(end[i] - begin[i])}, at ${duration(begin[i])}, ${track.title}, ${data.processes[track.process].title}` +
      (causes(standing(i)).length ? `, waited for ${causes(standing(i)).length}` : "") + (effects(standing(i)).length ? `, released ${effects(standing(i)).length}` : "");
  }
  function choose(i, bring = true) {
    selected = i;
    $("said").textContent = i < 0 ? "nothing selected" : describe(i);
    details(i);
    if (i >= 0) {
      tab("details", false);
      if (bring) reveal(i);
    }
    redraw();
  }
  function reveal(i) {
    const p = data.tracks[rows[rowOf[i]].track].process;
    if (closed.delete(p)) layout();
    const y = rowY[rowOf[i]];
    if (y < scroll.scrollTop + 10) scroll.scrollTop = Math.max(0, y - 60);
    else if (y + 30 > scroll.scrollTop + height) scroll.scrollTop = y - height + 90;
    const t0 = x.invert(0), t1 = x.invert(width), d = end[i] - begin[i];
    if (d > (t1 - t0) * 0.98 || d < (t1 - t0) / 4000) focusOn(i);
    else if (end[i] < t0 + (t1 - t0) * 0.04 || begin[i] > t1 - (t1 - t0) * 0.04 || begin[i] < t0 || end[i] > t1) {
      const mid = (begin[i] + end[i]) / 2, half = (t1 - t0) / 2;
      show(mid - half, mid + half);
    }
  }
  function focusOn(i) {
    const d = Math.max(end[i] - begin[i], 20);
    show(begin[i] - d * 0.8, end[i] + d * 0.8);
  }
  function step(d) {
    if (selected < 0) return first();
    const row = rows[rowOf[selected]], i = selected + d;
    if (i >= row.first && i < row.first + row.count) choose(i);
  }
  function first() {
    const mid = (x.invert(0) + x.invert(width)) / 2;
    for (const it of items) {
      if (it.type !== "track" || it.y + it.h < scroll.scrollTop) continue;
      const i = nearest(data.tracks[it.track].firstRow, mid);
      if (i >= 0) return choose(i);
    }
  }
  function nearest(r, t) {
    const row = rows[r];
    if (!row || !row.count) return -1;
    const i = Math.min(firstAfter(row, t), row.first + row.count - 1), away = k => Math.max(begin[k] - t, t - end[k], 0);
    return i > row.first && away(i - 1) < away(i) ? i - 1 : i;
  }
  function vertical(d) {
    if (selected < 0) return first();
    const mid = Math.max(x.invert(0), Math.min(x.invert(width), (begin[selected] + end[selected]) / 2));
    for (let r = rowOf[selected] + d; r >= 0 && r < rows.length; r += d) {
      if (rowH[r] <= 0) continue;
      const i = nearest(r, mid);
      if (i >= 0) return choose(i);
    }
  }
  function follow(list) {
    if (selected < 0) return;
    const found = [...list(standing(selected))];
    if (!found.length) $("said").textContent = list === causes ? "it waited for nothing" : "nothing waited for it";
    else choose(list === causes ? found.reduce((a, b) => end[b] > end[a] ? b : a) : found.reduce((a, b) => begin[b] < begin[a] ? b : a));
  }

  // ---- the panel

  function pairs(list) {
    const dl = document.createElement("dl");
    for (const [k, v] of list) if (v !== "" && v !== undefined && v !== null) dl.append(element("div", {}, element("dt", {textContent: k}), element("dd", {textContent: v})));
    return dl;
  }
  const noteLines = note => strings[note] ? strings[note].split("\n").map(l => { const k = l.indexOf("\t"); return k < 0 ? ["", l] : [l.slice(0, k), l.slice(k + 1)]; }) : [];
  function links(title, list) {
    const box = element("div", {}, element("h3", {textContent: `${title}${list.length ? ` (${list.length})` : ""}`}));
    const ul = document.createElement("ul");
    for (const i of [...list].slice(0, 100)) {
      const track = data.tracks[rows[rowOf[i]].track];
      ul.append(element("li", {}, element("button", {type: "button", textContent: `${name(i)} · ${duration(end[i] - begin[i])} · ${data.processes[track.process].title}, ${track.title}`, onclick: () => { choose(i); canvas.focus({preventScroll: true}); }})));
    }
    box.append(list.length ? ul : element("p", {className: "sub", textContent: "nothing that is in the trace"}));
    return box;
  }
  function details(i) {
    const box = $("details");
    if (i < 0) return box.replaceChildren(element("p", {className: "hint", textContent: "Click a slice, or walk with the arrow keys, to see what it is, what it waited for, and what waited for it."}));
    const track = data.tracks[rows[rowOf[i]].track], s = slices.sub[i], whole = s >= 0 && slices.kind[i] !== IDLE;
    const head = [element("h2", {textContent: name(i)}),
      element("p", {className: "sub", textContent: `${duration(end[i] - begin[i])}, at ${moment(begin[i], Math.max(1, 10 ** Math.floor(Math.log10(Math.max(end[i] - begin[i], 10)) - 1)))} · ${data.processes[track.process].title}, ${track.title}`})];
    const cols = element("div", {className: "cols"});
    if (slices.kind[i] === PATH) cols.append(pairs([["on the path", strings[slices.note[i]]]]));
    else if (slices.kind[i] === IDLE) cols.append(pairs([["the device", "was idle"], ["waited for", name(i)]]));
    else if (noteLines(slices.note[i]).length) cols.append(pairs(noteLines(slices.note[i])));
    if (whole) {
      const t = k => subs[k][s], span = (a, b) => a < 0 || b < 0 ? "" : duration(b - a);
      const life = element("div", {className: "life"}), c = colorOf.get(slices.name[queueOfSub[s]]) ?? PALETTE[0];
      const last = Math.max(t("done"), t("ended"), t("issued"), t("submitted")), all = Math.max(last - t("submitted"), 1);
      const part = (a, b, alpha, title) => { if (a >= 0 && b > a) { const e = element("i", {title: `${title}: ${duration(b - a)}`}); e.style.width = 100 * (b - a) / all + "%", e.style.background = c, e.style.opacity = alpha; life.append(e); } };
      part(t("submitted"), t("issued"), 0.2, t("parked") ? "parked" : "submitted to issued");
      part(t("issued"), t("begun"), 0.42, "issued to begun"), part(t("begun"), t("ended"), 1, "on the device"), part(Math.max(t("ended"), t("issued")), t("done"), 0.3, "ended to seen");
      cols.append(
        element("div", {}, pairs([["submission", "#" + subs.id[s]], ["operation", strings[subs.op[s]]], ["queue", strings[subs.queue[s]]], ...noteLines(subs.note[s]),
          ["waits", strings[subs.waits[s]]], ["signals", strings[subs.signals[s]]], ["error", strings[subs.error[s]]]])),
        element("div", {}, life, pairs([
          ["submitted", moment(t("submitted"), 100)],
          ["issued", t("issued") < 0 ? "never, or not known" : `${span(t("submitted"), t("issued"))} later${t("parked") ? ", parked" : ""}`],
          ["begun", t("begun") < 0 ? "not known" : `${span(t("issued"), t("begun"))} later`],
          ["ended", t("ended") < 0 ? "not known" : `${span(t("begun"), t("ended"))} later`],
          ["seen done", t("done") < 0 ? "not yet" : t("ended") < 0 ? span(t("issued"), t("done")) : `${span(t("ended"), t("done"))} later`]])));
    }
    if (slices.kind[i] !== IDLE && slices.kind[i] !== COMMAND) cols.append(links("Waited for", causes(standing(i))), links("Released", effects(standing(i))));
    box.replaceChildren(...head, cols);
    box.scrollTop = 0;
  }
  function tab(which, focus) {
    for (const k of ["summary", "details"]) {
      $(k).hidden = k !== which;
      $("tab-" + k).setAttribute("aria-selected", String(k === which));
      $("tab-" + k).tabIndex = k === which ? 0 : -1;
    }
    if (focus) $("tab-" + which).focus();
  }
  for (const k of ["summary", "details"]) {
    $("tab-" + k).onclick = () => tab(k, false);
    $("tab-" + k).onkeydown = e => { if (e.key === "ArrowLeft" || e.key === "ArrowRight") tab(k === "summary" ? "details" : "summary", true), e.preventDefault(), e.stopPropagation(); };
  }

  function summary() {
    const s = data.summary, out = [], number = v => v.toLocaleString("en");
    const share = (part, whole) => whole > 0 ? Math.round(100 * part / whole) + " %" : "";
    const notices = element("div", {className: "notice"}), notice = text => notices.append(element("p", {textContent: text}));
    for (const e of s.lost ?? []) notice("A device or a communicator was lost: " + e);
    if (s.failed) notice(`${number(s.failed)} of the submissions failed, the first with: ${s.first_error}`);
    if (s.untimed) notice(`${number(s.untimed)} submissions have no device times, because they could not be recorded: times and numbers of operations lack them.`);
    if (s.untimed_commands) notice(`${number(s.untimed_commands)} commands of recordings have no device times, because they could not be recorded.`);
    if (s.graphs) notice(s.command_times.note + ".");
    if (s.inexact) notice(`${number(s.inexact)} operations or commands may be off by up to ${duration(s.inexact_by_ns)}, since the host was slow to submit.`);
    for (const d of s.devices ?? []) if (d.unknown_ns) notice(`${d.name}: of the idle time, the host spent ${duration(d.unknown_ns)} in calls that gave it work, a part of which may have run then.`);
    if (s.arrowless) notice(`${number(s.arrowless)} waits have no arrow: by the times that are known the signal did not come before them, or one of the two was too long ago.`);
    if (s.dropped) notice(`${number(s.dropped)} records are missing, because the trace could not be written fast enough: the numbers below lack them.`);
    if (s.unfinished) notice(`${number(s.unfinished)} submissions had not ended when the trace did${s.cut ? ", which has no end: the program died, or still ran" : ""}.`);
    if (notices.childNodes.length) out.push(notices);
    const card = (title, note, head, list, wide) => {
      if (!list.length) return;
      const body = document.createElement("tbody");
      for (const row of list) {
        const tr = document.createElement("tr");
        row.forEach(v => { const td = document.createElement("td"); if (v?.classList?.contains("meter")) td.className = "bar"; td.append(v ?? ""); tr.append(td); });
        body.append(tr);
      }
      const tr = document.createElement("tr");
      head.forEach(h => tr.append(element("th", {textContent: h, scope: "col"})));
      const c = element("section", {className: wide ? "card wide" : "card"}, element("h3", {}, title, " ", element("span", {textContent: note})), element("table", {}, element("thead", {}, tr), body));
      out.push(c);
    };
    const meter = (...parts) => {
      const m = element("span", {className: "meter"});
      for (const [f, paint] of parts) { const e = document.createElement("i"); e.style.width = 100 * Math.max(0, Math.min(1, f || 0)) + "%"; if (paint) e.style.background = paint; m.append(e); }
      return m;
    };
    const goto = (text, ns, len, paint) => {
      const b = element("button", {type: "button", title: "show it", onclick: () => { const t = ns - data.begin, d = Math.max(len, 100); show(t - d, t + 2 * d); canvas.focus({preventScroll: true}); }}, text);
      const span = document.createElement("span");
      if (paint) { const k = element("span", {className: "key"}); k.style.background = paint; span.append(k); }
      span.append(b);
      return span;
    };
    const keyed = (text, paint) => { const k = element("span", {className: "key"}); k.style.background = paint; return element("span", {}, k, text); };
    const timed = s.devices?.some(d => d.operations > 0);
    const peers = s.devices.some(d => d.peers_ns > 0);
    card("Devices", s.together_ns ? `two or more were busy for ${duration(s.together_ns)}` : "", ["", "", "busy", "", ...peers ? ["of that for other ranks"] : [], "idle", "overlap", "operations"],
      s.devices.map(d => d.operations ? [d.name, meter([(d.busy_ns - d.peers_ns) / d.window_ns], [d.peers_ns / d.window_ns, KINDS.peers[0]]), duration(d.busy_ns), share(d.busy_ns, d.window_ns), ...peers ? [duration(d.peers_ns)] : [], duration(d.idle_ns), duration(d.overlap_ns), number(d.operations)]
        : [d.name, "", "?", "", ...peers ? [""] : [], "?", "?", ""]));
    const starved = s.starved ?? [], idle = starved.reduce((a, b) => a + b.total_ns, 0), many = (s.devices ?? []).length > 1;
    card("What idle devices waited for", "", ["", "", "total", "", "gaps", "longest"],
      starved.slice(0, 12).map(v => [goto((many ? v.device + ": " : "") + v.cause, v.max_at_ns, v.max_ns, KINDS[v.kind]?.[0]), meter([v.total_ns / idle, KINDS[v.kind]?.[0]]), duration(v.total_ns), share(v.total_ns, idle), number(v.count), duration(v.max_ns)]));
    const longest = s.longest ?? [], work = longest.reduce((a, b) => a + b.total_ns, 0);
    card("Longest operations", "by kind", ["", "", "total", "", "count", "mean", "longest"],
      longest.slice(0, 12).map(v => [goto(v.op && v.op !== v.name ? `${v.name} (${v.op})` : v.name, v.max_at_ns, v.max_ns, colorOf.get(strings.indexOf(v.name))), meter([v.total_ns / work, colorOf.get(strings.indexOf(v.name))]), duration(v.total_ns), share(v.total_ns, work), number(v.count), duration(v.mean_ns), duration(v.max_ns)]));
    const commands = s.commands ?? [];
    card("Commands of recordings", "by kernel and label" + (s.command_times.graph_times_by ? "; those of graphs timed by " + s.command_times.graph_times_by.join(", ") : ""),
      ["", "label", "", "total", "", "commands", "count", "mean", "longest"],
      commands.slice(0, 20).map(v => [goto(!v.kernel ? v.op : v.op === "launch" ? v.kernel : `${v.kernel} (${v.op})`, v.max_at_ns, v.max_ns, colorOf.get(strings.indexOf(v.kernel || v.op))), v.label ?? "", meter([v.share, colorOf.get(strings.indexOf(v.kernel || v.op))]),
        duration(v.total_ns), Math.round(100 * v.share) + " %", v.commands ? number(v.commands) : "", number(v.count), duration(v.mean_ns), duration(v.max_ns)]), true);
    const path = s.critical_path_by_kind ?? [];
    card("Critical path", "from the first submission to the end of the last", ["", "", "total", "", "times"],
      path.map(v => [keyed({device: "operations on a device", call: "calls of the host", wait: "waits of the host for something else"}[v.kind] ?? KINDS[v.kind][1], KINDS[v.kind][0]), meter([v.total_ns / (s.end_ns - s.begin_ns), KINDS[v.kind][0]]), duration(v.total_ns), share(v.total_ns, s.end_ns - s.begin_ns), number(v.count)]));
    card("Queues", "", ["", "submissions", "busy", "", "overlap", "submitted to issued, p50", "p99", "longest", "parked", "issued to begun, p50", "ended to seen, p50"],
      (s.queues ?? []).map(q => [(many ? q.device + ": " : "") + q.name, number(q.submissions), timed ? duration(q.busy_ns) : "?", timed ? share(q.busy_ns, q.window_ns) : "", timed ? duration(q.overlap_ns) : "?", duration(q.submitted_to_issued.p50_ns), duration(q.submitted_to_issued.p99_ns), duration(q.submitted_to_issued.max_ns), number(q.parked.count), timed ? duration(q.issued_to_begun.p50_ns) : "?", timed ? duration(q.ended_to_seen.p50_ns) : "?"]), true);
    card("Host", "by kind of call and wait", ["", "total", "count", "mean", "longest"],
      (s.host ?? []).slice(0, 12).map(v => [goto(v.name, v.max_at_ns, v.max_ns), duration(v.total_ns), number(v.count), duration(v.mean_ns), duration(v.max_ns)]));
    if (!out.length) out.push(element("p", {className: "hint", textContent: "The trace has no submissions."}));
    $("summary").replaceChildren(...out);
    $("facts").textContent = [duration(s.end_ns - s.begin_ns), number(s.submissions) + (s.submissions === 1 ? " submission" : " submissions"), data.version && "puregpu " + data.version].filter(Boolean).join(" · ");
  }

  // ---- finding by text

  function find(text) {
    const q = text.trim().toLowerCase();
    matches = [], matched = null, match = -1;
    if (q) {
      const hits = strings.map(s => s.toLowerCase().includes(q)), number = /^#(\d+)$/.exec(q)?.[1];
      matched = new Uint8Array(n);
      for (let i = 0; i < n; i++) {
        const k = slices.kind[i], s = slices.sub[i];
        if (k === PATH || k === IDLE) continue;
        const own = k !== COMMAND && s >= 0;
        const yes = number !== undefined ? own && String(subs.id[s]) === number
          : hits[slices.name[i]] || hits[slices.note[i]] || (own && (hits[subs.op[s]] || hits[subs.note[s]] || hits[subs.waits[s]] || hits[subs.signals[s]] || hits[subs.error[s]]));
        if (!yes) continue;
        matched[i] = 1;
        if (k !== QUEUE || sliceOfSub[s] === i) matches.push(i); // an operation counts once
      }
      matches.sort((a, b) => begin[a] - begin[b]);
    }
    found();
    redraw();
  }
  function found() {
    $("found").textContent = !matched ? "" : matches.length ? `${match < 0 ? "" : (match + 1).toLocaleString("en") + " / "}${matches.length.toLocaleString("en")}` : "none";
  }
  function nextMatch(d) {
    if (!matches.length) return;
    if (match < 0) {
      const t = selected >= 0 ? begin[selected] : x.invert(0);
      match = d > 0 ? matches.findIndex(i => begin[i] >= t) : matches.findLastIndex(i => begin[i] <= t);
      if (match < 0) match = d > 0 ? 0 : matches.length - 1;
    } else match = (match + d + matches.length) % matches.length;
    choose(matches[match]);
    found();
  }
  let waiting = 0;
  $("query").oninput = e => { clearTimeout(waiting); waiting = setTimeout(() => find(e.target.value), n > 50000 ? 150 : 20); };
  $("query").onkeydown = e => {
    if (e.key === "Enter") { clearTimeout(waiting); if (!matched) find(e.target.value); nextMatch(e.shiftKey ? -1 : 1); e.preventDefault(); }
    if (e.key === "Escape") { e.target.value = "", clearTimeout(waiting), find(""); canvas.focus({preventScroll: true}); }
    e.stopPropagation();
  };
  $("next").onclick = () => nextMatch(1);
  $("prev").onclick = () => nextMatch(-1);

  // ---- keys and buttons

  const toggle = (id, value) => { $(id).setAttribute("aria-pressed", String(value)); redraw(); return value; };
  const theme = t => {
    if (t) document.documentElement.dataset.theme = t;
    colors(), redraw();
  };
  const isDark = () => (document.documentElement.dataset.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
  const actions = {
    fit, zoomin: () => zoomBy(1.8), zoomout: () => zoomBy(1 / 1.8),
    critical: () => critical = toggle("critical", !critical), arrows: () => arrows = toggle("arrows", !arrows),
    theme: () => { const t = isDark() ? "light" : "dark"; theme(t); try { localStorage.setItem("gputrace-theme", t); } catch { /* not from a file, in some browsers */ } },
    help: () => $("keys").showModal(),
  };
  for (const [id, f] of Object.entries(actions)) $(id).onclick = f;
  const keys = {
    w: actions.zoomin, "+": actions.zoomin, "=": actions.zoomin, s: actions.zoomout, "-": actions.zoomout, a: () => panBy(-0.25), d: () => panBy(0.25), 0: fit,
    arrowleft: () => step(-1), arrowright: () => step(1), arrowup: () => vertical(-1), arrowdown: () => vertical(1), f: () => selected >= 0 && focusOn(selected), enter: () => selected >= 0 && focusOn(selected),
    "[": () => follow(causes), "]": () => follow(effects), "/": () => { $("query").focus(); $("query").select(); }, n: () => nextMatch(1), p: () => nextMatch(-1),
    c: actions.critical, x: actions.arrows, t: actions.theme, "?": actions.help,
    escape: () => { $("query").value = "", find(""); choose(-1); },
    home: () => { const w = x.invert(width) - x.invert(0); show(0, w); }, end: () => { const w = x.invert(width) - x.invert(0); show(length - w, length); },
  };
  document.addEventListener("keydown", e => {
    if (e.ctrlKey || e.metaKey || e.altKey || $("keys").open) return;
    const inControl = e.target.closest?.("button, input, [role=separator]");
    if (inControl && /^(Enter|Arrow|Home|End| )/.test(e.key)) return;
    const f = keys[e.key.toLowerCase()];
    if (!f || e.target.closest?.("#panel") && /^(Arrow|Home|End)/.test(e.key)) return;
    e.preventDefault();
    f();
  });
  let fill;
  {
    const grip = $("grip"), panel = $("panel");
    const size = h => { panel.style.height = Math.max(60, Math.min(innerHeight - 240, h)) + "px"; resize(); };
    grip.onpointerdown = e => grip.setPointerCapture(e.pointerId);
    grip.onpointermove = e => { if (grip.hasPointerCapture(e.pointerId)) size(innerHeight - e.clientY - 4); };
    grip.onkeydown = e => { const d = {ArrowUp: 30, ArrowDown: -30}[e.key]; if (d) size(panel.offsetHeight + d), e.preventDefault(); };
    // The panel takes the space that the tracks leave, so that a small trace has no gap in the middle.
    fill = () => { panel.style.height = Math.max(Math.min(300, innerHeight * 0.34), Math.min(innerHeight * 0.52, innerHeight - scroll.getBoundingClientRect().top - total - 6)) + "px"; };
  }
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => theme());
  new ResizeObserver(resize).observe(scroll);

  let stored = null;
  try { stored = localStorage.getItem("gputrace-theme"); } catch { /* likewise */ }
  layout(), summary(), fill(), theme(stored === "light" || stored === "dark" ? stored : undefined), resize();
  show(x0.domain()[0], x0.domain()[1], false);
  // page.html#12 opens with submission 12 selected.
  const open = () => {
    const s = (subs.id ?? []).indexOf(Number(location.hash.slice(1)));
    if (location.hash && s >= 0) choose(sliceOfSub[s]);
  };
  addEventListener("hashchange", open);
  open(), draw();
  $("loading").hidden = true;
  // For tests and the console.
  return {
    data, slices: n, arrows: from.length, ofKind: k => { let c = 0; for (let i = 0; i < n; i++) if (slices.kind[i] === k) c++; return c; },
    tracks: () => items.map(i => i.title), view: () => [x.invert(0), x.invert(width)], selected: () => selected < 0 ? null : {index: selected, name: name(selected), begin: begin[selected], end: end[selected], causes: [...causes(standing(selected))], effects: [...effects(standing(selected))]},
    arrowsDrawn: () => drawn, matches: () => matches.length, at: i => ({x: x((begin[i] + end[i]) / 2), y: rowY[rowOf[i]] + rowH[rowOf[i]] / 2 - scroll.scrollTop, begin: begin[i], end: end[i], name: name(i), kind: slices.kind[i], row: rowOf[i]}),
    draw, show, choose,
  };
}

globalThis.gputrace = read().then(start).catch(e => {
  $("loading").hidden = false;
  $("loading").textContent = "This page cannot be shown: " + e + "\nIt needs a browser of 2023 or later.";
  throw e;
});
