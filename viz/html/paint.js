// Helpers for drawing on a canvas: the theme's colours, textures of waits, words that fit, labels.
const dark = matchMedia("(prefers-color-scheme: dark)");
const kThemes = {
  true: {window: "#171a1f", field: "#111317", tile: "#202630", line: "#2f353e", text: "#dee3ea", dim: "#929caa", faint: "#808a98", cell: "#323842", cursor: "#ffd666", frame: "#1a1d23", bad: "#f07167"},
  false: {window: "#f6f7f9", field: "#ffffff", tile: "#e2e7ee", line: "#ccd2da", text: "#1b2027", dim: "#545d6a", faint: "#656e7b", cell: "#b0b8c3", cursor: "#925c00", frame: "#eef1f5", bad: "#ba261c"},
};
const theme = () => kThemes[dark.matches];
const kFont = '"DejaVu Sans", Verdana, sans-serif';

function channels(color) { return [1, 3, 5].map(i => parseInt(color.slice(i, i + 2), 16)); }
function mix(a, b, t) {
  const x = channels(a), y = channels(b);
  return "rgb(" + x.map((c, i) => Math.round(c + (y[i] - c) * t)).join(",") + ")";
}
// The colour of a flow, which is darker on a light page.
function flowColor(kind) { return dark.matches ? script.kinds[kind].color : mix(script.kinds[kind].color, "#000000", 0.22); }
function wordsOn(color) {
  const [r, g, b] = channels(color);
  return 0.299 * r + 0.587 * g + 0.114 * b > 140 ? "#10141a" : "#ffffff";
}

// Gives a canvas the resolution of the screen; coordinates are CSS pixels.
function prepare(canvas) {
  const ratio = window.devicePixelRatio || 1, width = canvas.clientWidth, height = canvas.clientHeight;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
  }
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  return {context, width, height};
}

function rounded(c, x, y, width, height, radius) {
  const r = Math.max(0, Math.min(radius, width / 2, height / 2));
  c.beginPath();
  c.moveTo(x + r, y);
  c.arcTo(x + width, y, x + width, y + height, r);
  c.arcTo(x + width, y + height, x, y + height, r);
  c.arcTo(x, y + height, x, y, r);
  c.arcTo(x, y, x + width, y, r);
  c.closePath();
}
function fillBox(c, x, y, width, height, color, radius = 3) {
  if (width <= 0 || height <= 0) return;
  c.fillStyle = color;
  rounded(c, x, y, width, height, radius);
  c.fill();
}

const patterns = new Map();
// Draws lines in the texture of a cause: "rising", "falling", "vertical", "horizontal", "crossed", "plain".
function pattern(c, texture, color) {
  const key = texture + color;
  if (patterns.has(key)) return patterns.get(key);
  const size = texture === "crossed" ? 9 : 6, tile = document.createElement("canvas");
  tile.width = tile.height = size;
  const p = tile.getContext("2d");
  p.strokeStyle = color;
  p.beginPath();
  const line = (a, b, x, y) => { p.moveTo(a, b); p.lineTo(x, y); };
  if (texture === "rising" || texture === "crossed") for (const d of [-size, 0, size]) line(d, size, d + size, 0);
  if (texture === "falling" || texture === "crossed") for (const d of [-size, 0, size]) line(d, 0, d + size, size);
  if (texture === "vertical") line(0.5, 0, 0.5, size);
  if (texture === "horizontal") line(0, 0.5, size, 0.5);
  p.stroke();
  const made = c.createPattern(tile, "repeat");
  patterns.set(key, made);
  return made;
}
function hatch(c, x, y, width, height, texture, color) {
  if (width <= 0 || height <= 0) return;
  c.fillStyle = pattern(c, texture, color);
  c.fillRect(x, y, width, height);
}
function fillWait(c, x, y, width, height, cause) {
  const tint = dark.matches ? cause.color : mix(cause.color, "#000000", 0.38);
  c.globalAlpha = 0.2;
  c.fillStyle = tint;
  c.fillRect(x, y, width, height);
  c.globalAlpha = 0.6;
  hatch(c, x, y, width, height, cause.texture, tint);
  c.globalAlpha = 1;
}

function setFont(c, size, bold = false) { c.font = (bold ? "600 " : "") + size + "px " + kFont; }
function elided(c, words, width) {
  if (c.measureText(words).width <= width) return words;
  let low = 0, high = words.length;
  while (low + 1 < high) {
    const middle = (low + high) >> 1;
    if (c.measureText(words.slice(0, middle) + "…").width <= width) low = middle; else high = middle;
  }
  return low > 0 ? words.slice(0, low) + "…" : "";
}
// Centres words in a box, makes them smaller if they do not fit, and omits them if even that does not help.
function centred(c, x, y, width, height, words, size, color) {
  setFont(c, size);
  const wide = c.measureText(words).width;
  if (wide > width - 4) size = Math.max(size * (width - 4) / wide, 8);
  setFont(c, size);
  if (c.measureText(words).width > width || size > height + 1) return;
  c.fillStyle = color;
  c.textAlign = "center";
  c.textBaseline = "middle";
  c.fillText(words, x + width / 2, y + height / 2 + 0.5);
}
// Breaks text between words into at most `most` lines.
function linesOf(c, words, width, most) {
  const lines = [];
  let line = "";
  for (const word of words.split(" ")) {
    const longer = line ? line + " " + word : word;
    if (line && c.measureText(longer).width > width && lines.length + 1 < most) {
      lines.push(line);
      line = word;
    } else {
      line = longer;
    }
  }
  lines.push(elided(c, line, width));
  return lines;
}
function badge(c, x, y, size, words, color) {
  setFont(c, size);
  const width = c.measureText(words).width + size * 0.7;
  fillBox(c, x, y, width, size * 1.35, color, size * 0.3);
  c.fillStyle = wordsOn(color);
  c.textAlign = "left";
  c.textBaseline = "middle";
  c.fillText(words, x + size * 0.35, y + size * 0.72);
  return width;
}
function badgeWidth(c, size, words) { setFont(c, size); return c.measureText(words).width + size * 0.7; }
