// The page: time, keys, the timeline, the narrator, the legend.
const byId = id => document.getElementById(id);
const stage = byId("stage"), timeline = byId("timeline");
let now = script.open, playing = false, lastFrame = 0, pending = false;

function timeText(ns) {
  if (script.unit > 0) return (ns / script.unit).toPrecision(4).replace(/\.?0+$/, "") + " units";
  for (const [size, unit] of [[1e9, "s"], [1e6, "ms"], [1e3, "us"]])
    if (Math.abs(ns) >= size) return (ns / size).toPrecision(3) + " " + unit;
  return Math.round(ns) + " ns";
}
function bytesText(bytes) {
  for (const [size, unit] of [[2 ** 40, "TiB"], [2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"]])
    if (bytes >= size) return (bytes / size).toPrecision(3) + " " + unit;
  return Math.round(bytes) + " B";
}

function drawStage() {
  const {context, width, height} = prepare(stage), size = {width, height};
  const time = Math.min(now, script.length - 1);  // at its end, a step shows its last moment
  drawNodes(context, size);
  drawLinks(context, size);
  script.rooms.forEach((room, i) => drawRoom(context, i, time, size));
  const flows = flowsAt(time, script.linger);
  for (const flow of flows) drawFlow(context, flow, time, size);
  drawLabels(context, flows, time, size);
  document.body.dataset.rooms = script.rooms.length;
  document.body.dataset.flows = flows.filter(flow => flow.end >= now).length;
  return flows;
}

const kLabel = 44, rows = script.rooms.slice(0, 64);
const rowHeight = rows.length > 32 ? 3 : rows.length > 16 ? 9 : 16;
timeline.style.height = rows.length * (rowHeight + 1) + 18 + "px";

function drawTimeline() {
  const {context: c, width} = prepare(timeline), plot = width - kLabel, scale = plot / script.length;
  const x = time => kLabel + time * scale;
  c.save();
  rows.forEach((room, i) => {
    const y = i * (rowHeight + 1);
    c.fillStyle = theme().field;
    c.fillRect(kLabel, y, plot, rowHeight);
    for (let k = 0; k < room.actions.length; k += kAction) {
      const left = x(room.actions[k]), wide = room.actions[k + 1] * scale, paint = script.paints[room.actions[k + 3]];
      c.fillStyle = paint.color;
      c.fillRect(left, y, Math.max(wide - (wide > 3 ? 0.8 : 0), 0.4), rowHeight);
    }
    for (let k = 0; k < room.waits.length; k += kWait) {
      const wide = room.waits[k + 1] * scale, inside = at(room.actions, kAction, room.waits[k]);
      if (wide < 0.7 || (inside && rowHeight < 9)) continue;
      // A stall inside an action is drawn in the lower third of the row.
      const top = inside ? y + rowHeight * 0.66 : y;
      c.fillStyle = theme().field;
      c.fillRect(x(room.waits[k]), top, wide, y + rowHeight - top);
      fillWait(c, x(room.waits[k]), top, wide, y + rowHeight - top, script.causes[room.waits[k + 3]]);
    }
    if (rowHeight < 9) return;
    for (let k = 0; k < room.actions.length; k += kAction) {
      const wide = room.actions[k + 1] * scale, paint = script.paints[room.actions[k + 3]];
      if (wide > 16) centred(c, x(room.actions[k]), y, wide, rowHeight, text(room.actions[k + 2]), 10.5, paint.text);
    }
    setFont(c, 11);
    c.fillStyle = theme().dim;
    c.textAlign = "left";
    c.textBaseline = "middle";
    c.fillText(room.name, 4, y + rowHeight / 2 + 0.5);
  });
  c.restore();
  const bottom = rows.length * (rowHeight + 1);
  setFont(c, 10.5);
  c.fillStyle = theme().dim;
  c.textBaseline = "top";
  for (let mark = 0; mark <= script.length; mark += script.tick) {
    c.textAlign = mark === 0 ? "left" : "center";
    if (x(mark) < width - 24) c.fillText(timeText(mark), x(mark), bottom + 3);
  }
  c.strokeStyle = theme().cursor;
  c.lineWidth = 2;
  c.beginPath();
  c.moveTo(x(now), 0);
  c.lineTo(x(now), bottom + 2);
  c.stroke();
}

function element(tag, words) {
  const made = document.createElement(tag);
  made.textContent = words;
  return made;
}

function tell() {
  const kLines = 4, count = countUntil(script.lineTimes, 1, now), list = byId("lines");
  list.replaceChildren();
  for (let i = Math.max(0, count - kLines); i < count; ++i) {
    const item = document.createElement("li");
    if (script.lineTimes[i] === script.lineTimes[count - 1]) item.className = "newest";
    item.append(element("time", timeText(script.lineTimes[i])), element("span", script.lines[i]));
    list.append(item);
  }
}

let flowsNow = [];
function draw() {
  pending = false;
  flowsNow = drawStage();
  drawTimeline();
  tell();
  byId("now").textContent = timeText(now) + " of " + timeText(script.length);
  byId("play").textContent = playing ? "pause" : "play";
  const running = new Set(flowsNow.filter(flow => flow.end >= now).map(flow => flow.kind));
  document.querySelectorAll("#legend li[data-kind]").forEach(
      item => item.classList.toggle("on", running.has(Number(item.dataset.kind))));
  timeline.setAttribute("aria-valuenow", Math.round(now));
  document.body.dataset.time = Math.round(now);
}
function redraw() {
  if (pending) return;
  pending = true;
  requestAnimationFrame(draw);
}
function setTime(time) {
  now = Math.min(Math.max(time, 0), script.length);
  redraw();
}

// The speed slider is in powers of ten; at 0 a step plays in ten seconds.
function frame(time) {
  if (!playing) return;
  const seconds = Math.min((time - lastFrame) / 1000, 0.1);
  lastFrame = time;
  now += seconds * script.length / 10 * 10 ** Number(byId("speed").value);
  if (now >= script.length) {
    now = script.length;
    playing = false;
  }
  draw();
  requestAnimationFrame(frame);
}
function play() {
  playing = !playing;
  if (playing && now >= script.length) now = 0;
  lastFrame = performance.now();
  if (playing) requestAnimationFrame(frame);
  redraw();
}

const marks = {event: script.events, microbatch: script.microbatches, layer: script.layers};
function go(forward, by) {
  const time = neighbour(marks[by], now, forward);
  playing = false;
  if (time !== null) setTime(time); else setTime(forward ? script.length : 0);
}

function legend() {
  const list = byId("legend");
  const entry = (words, fill, kind) => {
    const item = document.createElement("li"), picture = document.createElement("canvas");
    item.append(picture, element("span", words));
    if (kind !== undefined) item.dataset.kind = kind;
    list.append(item);
    const {context, width, height} = prepare(picture);
    fill(context, width, height);
  };
  const flat = color => (c, width, height) => { c.fillStyle = color; c.fillRect(0, 0, width, height); };
  list.replaceChildren();
  patterns.clear();
  script.kinds.forEach((kind, i) => entry(kind.words, flat(flowColor(i)), i));
  script.paints.filter(paint => paint.used).forEach(paint => entry(paint.name, flat(paint.color)));
  script.causes.filter(cause => cause.used).forEach(
      cause => entry(cause.name, (c, width, height) => fillWait(c, 0, 0, width, height, cause)));
  if (script.rooms.some(room => room.held.length > kHeld))
    entry("number: a microbatch, held or moving", flat(script.colors.activations));
  if (script.shards.length > 0) {
    entry("own shard", flat(script.colors.parameters));
    entry("layer being gathered", (c, width, height) => hatch(c, 0, 0, width, height, "rising", script.colors.gathered));
  }
  Object.keys(script.formats).forEach(format => entry("multiplies in " + format, flat(script.formats[format])));
  script.dtypes.filter(dtype => dtype.used && dtype.name !== "other").forEach(dtype => entry(dtype.name + " on the wire", flat(dtype.color)));
  script.memory.filter(category => category.used).forEach(
      category => entry("memory: " + category.name, flat(category.color)));
  if (script.memoryTop > 0) list.append(element("li", "bars: memory, up to " + script.memoryScale));
}

function roomTip(room) {
  const doing = doingAt(room, now), out = [room.name + "  " + room.coordinates];
  if (doing.action) out.push("runs " + doing.action.text + (doing.module ? ": " + doing.module.text : "") +
                             (doing.module && doing.module.format ? " in " + doing.module.format : ""));
  if (doing.wait) out.push("waits " + timeText(doing.wait.length) + " (" + doing.wait.cause.name + "): " + doing.wait.text);
  const memory = memoryAt(room, now);
  if (memory) {
    const sum = memory.reduce((a, b) => a + b, 0);
    out.push("holds " + bytesText(sum) + (room.limit > 0 ? " of " + bytesText(room.limit) : ""));
    memory.forEach((bytes, i) => { if (bytes > 0) out.push("  " + script.memory[i].name + " " + bytesText(bytes)); });
  }
  return out.join("\n");
}
function flowTip(flow) {
  return flow.verb + ", " + script.kinds[flow.kind].words + "\n" + bytesText(flow.bytes) + " " + flow.dtype.name + " in " +
      timeText(flow.length) + (flow.length > 0 ? ", " + bytesText(flow.bytes / (flow.length * 1e-9)) + "/s together" : "");
}
function showTip(event) {
  const rect = stage.getBoundingClientRect(), tip = byId("tip");
  const x = event.clientX - rect.left, y = event.clientY - rect.top, size = {width: rect.width, height: rect.height};
  const room = script.rooms.find(one => x >= one.box[0] * size.width && x < one.box[2] * size.width &&
                                        y >= one.box[1] * size.height && y < one.box[3] * size.height);
  const flow = room ? null : flowUnder(flowsNow, x, y, size);
  tip.hidden = !room && !flow;
  if (tip.hidden) return;
  tip.textContent = room ? roomTip(room) : flowTip(flow);
  tip.style.left = Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8) + "px";
  tip.style.top = Math.min(event.clientY + 14, innerHeight - tip.offsetHeight - 8) + "px";
}

function dragTo(event) {
  const rect = timeline.getBoundingClientRect();
  playing = false;
  setTime((event.clientX - rect.left - kLabel) / (rect.width - kLabel) * script.length);
}
timeline.addEventListener("pointerdown", event => {
  try { timeline.setPointerCapture(event.pointerId); } catch (error) { /* a synthetic pointer cannot be captured */ }
  dragTo(event);
});
timeline.addEventListener("pointermove", event => { if (event.buttons & 1) dragTo(event); });
stage.addEventListener("pointermove", showTip);
stage.addEventListener("pointerleave", () => { byId("tip").hidden = true; });
byId("back").addEventListener("click", () => go(false, byId("by").value));
byId("forward").addEventListener("click", () => go(true, byId("by").value));
byId("play").addEventListener("click", play);
addEventListener("keydown", event => {
  if (event.target instanceof HTMLInputElement || event.target instanceof HTMLSelectElement) return;
  if (event.altKey || event.ctrlKey || event.metaKey) return;
  if (event.key === "ArrowRight" || event.key === "ArrowLeft")
    go(event.key === "ArrowRight", event.shiftKey ? "microbatch" : byId("by").value);
  else if (event.key === "Home") setTime(0);
  else if (event.key === "End") setTime(script.length);
  else if (event.key === " " && !(event.target instanceof HTMLButtonElement)) play();
  else return;
  event.preventDefault();
});
addEventListener("resize", redraw);
dark.addEventListener("change", () => { legend(); redraw(); });

byId("title").textContent = script.title;
byId("about").textContent = script.about;
timeline.setAttribute("aria-valuemin", 0);
timeline.setAttribute("aria-valuemax", script.length);
// With "#t=1234" (ns since the step's begin) in its address, the page opens at that time.
const place = /^#t=(\d+)$/.exec(location.hash);
if (place) now = Math.min(Number(place[1]), script.length);
legend();
draw();
