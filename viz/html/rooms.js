// Draws rooms: what a rank does or waits for, its memory, its shards, the microbatches that it holds.
function drawNodes(c, size) {
  for (const node of script.nodes) {
    const [x0, y0, x1, y1] = node.box;
    const x = x0 * size.width, y = y0 * size.height, width = (x1 - x0) * size.width, height = (y1 - y0) * size.height;
    fillBox(c, x, y, width, height, theme().frame, 8);
    c.strokeStyle = theme().line;
    c.lineWidth = 1.5;
    c.stroke();
    if ((script.rooms[0].box[1] - script.nodes[0].box[1]) * size.height < 14) continue;
    setFont(c, 11);
    c.fillStyle = theme().dim;
    c.textAlign = "left";
    c.textBaseline = "top";
    c.fillText("node " + node.number, x + 8, y + 3);
  }
}

function drawMemory(c, room, time, x, y, width, height) {
  c.fillStyle = theme().field;
  c.fillRect(x, y, width, height);
  const now = memoryAt(room, time);
  let top = y + height;
  if (now && script.memoryTop > 0)
    now.forEach((bytes, i) => {
      const high = height * bytes / script.memoryTop;
      top -= high;
      c.fillStyle = script.memory[i].color;
      c.fillRect(x, Math.max(top, y), width, high);
    });
  c.strokeStyle = room.limit > 0 && script.memoryTop >= room.limit ? theme().bad : theme().faint;
  c.lineWidth = 1;
  c.strokeRect(x + 0.5, y + 0.5, width - 1, height - 1);
}

function drawShards(c, index, time, x, y, width, height) {
  const cells = script.shards.filter(row => row.cells[index]);
  const wide = width / Math.max(cells.length, 1), gap = wide > 6 ? 2 : 0;
  cells.forEach((row, i) => {
    const cell = row.cells[index], left = x + wide * i, room = wide - gap, held = shardAt(cell.history, time);
    c.fillStyle = held === 2 ? script.colors.gathered : theme().cell;
    c.fillRect(left, y, room, height);
    if (held === 1) hatch(c, left, y, room, height, "rising", script.colors.gathered);
    const mark = Math.max(height * 0.3, 3), shard = Math.max(room / row.shards, 1.5);
    c.fillStyle = script.colors.parameters;
    c.fillRect(left + (room - shard) * cell.shard / Math.max(row.shards - 1, 1), y + height - mark, shard, mark);
    if (room > 13 && height - mark > 8)
      centred(c, left, y, room, height - mark, row.label, 10.5, held === 2 ? "#14181d" : theme().text);
  });
}

function drawHeld(c, room, time, x, y, width, height) {
  const now = heldAt(room, time);
  setFont(c, 11);
  const wide = Math.max(c.measureText("0").width + 8, height * 0.9), step = wide + 2;
  const fit = Math.max(0, Math.floor((width + 2) / step));
  now.slice(Math.max(0, now.length - fit)).forEach((microbatch, i) => {
    fillBox(c, x + i * step, y, wide, height, script.colors.activations);
    centred(c, x + i * step, y, wide, height, String(microbatch), 11, wordsOn(script.colors.activations));
  });
}

function drawAction(c, doing, time, x, y, width, height) {
  const action = doing.action, words = action.paint.text;
  fillBox(c, x, y, width, height, action.paint.color);
  const line = Math.min(3, height * 0.12);
  c.globalAlpha = 0.6;
  fillBox(c, x, y + height - line, width * Math.min(1, (time - action.begin) / Math.max(action.length, 1)), line, words, 1);
  c.globalAlpha = 1;
  const second = doing.module && height > 34;
  centred(c, x, y, width, second ? height * 0.55 : height - line, action.text, Math.min(20, height * 0.45), words);
  if (!second) return;
  centred(c, x, y + height * 0.5, width, height * 0.4, doing.module.text, 12, words);
  const format = doing.module.format;
  if (format && badgeWidth(c, 11, format) < width * 0.55)
    badge(c, x + width - badgeWidth(c, 11, format) - 2, y + 2, 11, format, script.formats[format]);
}

function drawWait(c, doing, x, y, width, height) {
  fillBox(c, x, y, width, height, theme().field);
  if (doing.action && width > 60) {
    const part = Math.min(width * 0.28, 46);
    fillBox(c, x, y, part, height, doing.action.paint.color);
    centred(c, x, y, part, height, doing.action.text, 14, doing.action.paint.text);
    x += part;
    width -= part;
  }
  fillWait(c, x, y, width, height, doing.wait.cause);
  const size = 12, most = Math.min(3, Math.floor(height / (size * 1.2)));
  if (most < 1 || width < 34) return;
  setFont(c, size);
  let words = doing.wait.cause.done ? "done" : "waits: " + doing.wait.text;
  let lines = linesOf(c, words, width - 10, most);
  if (!doing.wait.cause.done && lines[lines.length - 1].endsWith("…")) lines = linesOf(c, doing.wait.text, width - 10, most);
  const high = lines.length * size * 1.2, top = y + (height - high) / 2;
  c.globalAlpha = 0.82;
  fillBox(c, x + 3, top - 1, width - 6, high + 2, theme().field, 2);
  c.globalAlpha = 1;
  setFont(c, size);
  c.fillStyle = theme().text;
  c.textAlign = "center";
  c.textBaseline = "middle";
  lines.forEach((line, i) => c.fillText(line, x + width / 2, top + (i + 0.5) * size * 1.2));
}

function drawActivity(c, doing, time, x, y, width, height) {
  if (width < 2 || height < 2) return;
  if (doing.wait) return drawWait(c, doing, x, y, width, height);
  if (doing.action) return drawAction(c, doing, time, x, y, width, height);
  fillBox(c, x, y, width, height, theme().field);
  centred(c, x, y, width, height, doing.unrecorded ? "not recorded" : "idle", 12, theme().dim);
}

function drawTile(c, room, doing, x, y, width, height) {
  fillBox(c, x, y, width, height, theme().field, 2);
  if (doing.wait) fillWait(c, x, y, width, height, doing.wait.cause);
  else if (doing.action) fillBox(c, x, y, width, height, doing.action.paint.color, 2);
  const works = doing.action && !doing.wait;
  const words = works && width > 58 ? room.name + " " + doing.action.text : room.name;
  if (width > 22) centred(c, x, y, width, height, words, 11, works ? doing.action.paint.text : theme().text);
}

function drawRoom(c, index, time, size) {
  const room = script.rooms[index], doing = doingAt(room, time);
  const x = room.box[0] * size.width, y = room.box[1] * size.height;
  const width = (room.box[2] - room.box[0]) * size.width, height = (room.box[3] - room.box[1]) * size.height;
  if (width > 84 && height > 46) {
    fillBox(c, x, y, width, height, theme().tile, 5);
    const pad = 5, bar = Math.min(16, Math.max(7, width * 0.07)), memory = room.memory.length > 0;
    const inside = width - 2 * pad - (memory ? bar + 4 : 0);
    if (memory) drawMemory(c, room, time, x + width - pad - bar, y + pad, bar, height - 2 * pad);
    setFont(c, 14);
    c.fillStyle = theme().text;
    c.textAlign = "left";
    c.textBaseline = "top";
    c.fillText(room.name, x + pad, y + 4);
    const after = c.measureText(room.name).width + 7;
    setFont(c, 11);
    c.fillStyle = theme().dim;
    c.fillText(elided(c, room.coordinates, inside - after), x + pad + after, y + 6.5);
    let top = y + 22, bottom = y + height - pad;
    if (script.shards.length > 0 && bottom - top > 28) {
      const high = Math.min(24, Math.max(8, (bottom - top) * 0.24));
      drawShards(c, index, time, x + pad, bottom - high, inside, high);
      bottom -= high + 4;
    }
    if (room.held.length > kHeld && bottom - top > 32) {
      drawHeld(c, room, time, x + pad, bottom - 15, inside, 15);
      bottom -= 18;
    }
    drawActivity(c, doing, time, x + pad, top, inside, bottom - top);
  } else {
    drawTile(c, room, doing, x, y, width, height);
  }
  c.strokeStyle = theme().line;
  c.lineWidth = 1;
  rounded(c, x, y, width, height, 5);
  c.stroke();
}
