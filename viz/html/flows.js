// Draws what travels: bands with particles, whose width shows bytes per second; tokens of microbatches; labels of
// number formats.
function curveOf(path, size) {
  const [, , , x0, y0, cx, cy, x1, y1] = path;
  return {x0: x0 * size.width, y0: y0 * size.height, cx: cx * size.width, cy: cy * size.height, x1: x1 * size.width, y1: y1 * size.height};
}
function onCurve(k, t) {
  const u = 1 - t;
  return [u * u * k.x0 + 2 * u * t * k.cx + t * t * k.x1, u * u * k.y0 + 2 * u * t * k.cy + t * t * k.y1];
}
function lengthOf(k) {
  let sum = 0, last = onCurve(k, 0);
  for (let i = 1; i <= 8; ++i) {
    const next = onCurve(k, i / 8);
    sum += Math.hypot(next[0] - last[0], next[1] - last[1]);
    last = next;
  }
  return sum;
}
function traceCurve(c, k) {
  c.beginPath();
  c.moveTo(k.x0, k.y0);
  c.quadraticCurveTo(k.cx, k.cy, k.x1, k.y1);
}

function drawLinks(c, size) {
  if (script.paths.length > 64) return;
  c.strokeStyle = theme().faint;
  c.globalAlpha = 0.25;
  c.lineWidth = 1;
  for (const path of script.paths) {
    traceCurve(c, curveOf(path, size));
    c.stroke();
  }
  c.globalAlpha = 1;
}

// How far a flow has come at the time, 0 to 1.
function progressOf(flow, time) {
  return flow.length > 0 ? Math.min(1, (time - flow.begin) / flow.length) : 0.5;
}

// The square that shows a microbatch on its way: left, top, width, height.
function tokenBox(c, k, flow, time) {
  const [x, y] = onCurve(k, 0.12 + 0.76 * progressOf(flow, time)), share = script.rooms.length > 16 ? 0.75 : 1;
  setFont(c, 13 * share);
  const half = 9 * share, wide = Math.max(half, c.measureText(String(flow.microbatch)).width / 2 + 4);
  return [x - wide, y - half, 2 * wide, 2 * half];
}

function drawToken(c, k, flow, time, alpha) {
  const [x, y, width, height] = tokenBox(c, k, flow, time);
  const color = flow.gradients ? script.colors.gradients : script.colors.activations;
  c.globalAlpha = alpha;
  fillBox(c, x, y, width, height, color, 4);
  c.strokeStyle = theme().text;
  c.lineWidth = 1.2;
  c.stroke();
  centred(c, x, y, width, height, String(flow.microbatch), 13 * height / 18, wordsOn(color));
  c.globalAlpha = 1;
}

function drawFlow(c, flow, time, size) {
  const color = flowColor(flow.kind), over = flow.end < time;
  const bright = over ? 0.6 * Math.max(0, 1 - (time - flow.end) / script.linger) : 1;
  const far = progressOf(flow, time);
  for (const [index, share] of flow.pairs) {
    const path = script.paths[index], k = curveOf(path, size);
    const width = 1.6 + 7.4 * flow.width * share / 100;
    c.globalAlpha = 0.42 * bright;
    c.strokeStyle = color;
    c.lineWidth = width;
    c.setLineDash(path[2] ? [9, 9] : []);
    traceCurve(c, k);
    c.stroke();
    c.setLineDash([]);
    if (flow.microbatch >= 0) {
      drawToken(c, k, flow, time, over ? bright : 1);
    } else if (!over) {
      c.globalAlpha = 1;
      c.fillStyle = color;
      const radius = Math.max(width * 0.42, 1.5), count = Math.max(2, Math.floor(lengthOf(k) / (radius * 5 + 6)));
      for (let i = 0; i < count; ++i) {
        const [x, y] = onCurve(k, (i + (far * 3) % 1) / count);
        c.beginPath();
        c.arc(x, y, radius, 0, 7);
        c.fill();
      }
    }
  }
  c.globalAlpha = 1;
}

// One label for each flow (between many rooms, one for each kind), if it covers no other label and no microbatch: left,
// top, width, height and flow.
function labelPlaces(c, flows, time, size) {
  const taken = [], known = new Set(), labels = [];
  for (const flow of flows)
    if (flow.microbatch >= 0)
      for (const [index] of flow.pairs) taken.push(tokenBox(c, curveOf(script.paths[index], size), flow, time));
  for (const flow of flows) {
    if (flow.end < time || flow.dtype.name === "other") continue;
    const key = flow.kind + " " + flow.dtype.name;
    if (script.rooms.length > 16 && known.has(key)) continue;
    known.add(key);
    const curves = (flow.pairs.length > 8 ? flow.pairs : flow.pairs.slice(0, 1)).map(
        ([index]) => curveOf(script.paths[index], size));
    const width = badgeWidth(c, 11, flow.dtype.name), height = 15;
    // Next to a token, or below it if the curve is short.
    const token = flow.microbatch >= 0, long = token && lengthOf(curves[0]) > 6 * width;
    for (const share of !long ? [0.5] : progressOf(flow, time) < 0.5 ? [0.75, 0.62] : [0.25, 0.38]) {
      const middles = curves.map(k => onCurve(k, share));
      const x = middles.reduce((sum, m) => sum + m[0], 0) / middles.length - width / 2;
      const y = middles.reduce((sum, m) => sum + m[1], 0) / middles.length - height / 2 + (token && !long ? 19 : 0);
      if (taken.some(t => x < t[0] + t[2] + 3 && t[0] < x + width + 3 && y < t[1] + t[3] + 3 && t[1] < y + height + 3)) continue;
      taken.push([x, y, width, height]);
      labels.push({x, y, width, height, flow});
      break;
    }
  }
  return labels;
}

function drawLabels(c, flows, time, size) {
  for (const {x, y, flow} of labelPlaces(c, flows, time, size)) badge(c, x, y, 11, flow.dtype.name, flow.dtype.color);
}

// The flow under a point; null if there is none.
function flowUnder(flows, x, y, size) {
  let best = null, least = 7;
  for (const flow of flows)
    for (const [index] of flow.pairs) {
      const k = curveOf(script.paths[index], size);
      for (let i = 0; i <= 16; ++i) {
        const [px, py] = onCurve(k, i / 16), distance = Math.hypot(px - x, py - y);
        if (distance < least) {
          least = distance;
          best = flow;
        }
      }
    }
  return best;
}
