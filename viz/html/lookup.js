// Looks up the script at a time. Intervals are flat arrays of numbers, sorted by begin; the first two numbers of each
// interval are begin and length.
"use strict";
const script = JSON.parse(document.getElementById("data").textContent);
const text = id => script.texts[id];
const kAction = 5, kModule = 5, kWait = 5, kHeld = 3, kFlow = 10, kMemory = 1 + script.memory.length;

// The number of entries, of `stride` numbers each, that begin at `time` or before.
function countUntil(flat, stride, time) {
  let low = 0, high = flat.length / stride;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (flat[middle * stride] <= time) low = middle + 1; else high = middle;
  }
  return low;
}

// All `stride` numbers of the interval that contains a time; null if there is none.
function at(flat, stride, time) {
  const i = countUntil(flat, stride, time) - 1;
  if (i < 0 || flat[i * stride] + flat[i * stride + 1] <= time) return null;
  return flat.slice(i * stride, (i + 1) * stride);
}

function moduleAt(room, time) {
  for (let depth = room.modules.length - 1; depth >= 0; --depth) {
    const found = at(room.modules[depth], kModule, time);
    if (found) return {text: text(found[2]), format: text(found[3])};
  }
  return null;
}

// What a rank does at a time: an action, a module in it, a wait.
function doingAt(room, time) {
  const action = at(room.actions, kAction, time), wait = at(room.waits, kWait, time);
  return {
    action: action && {begin: action[0], length: action[1], text: text(action[2]), paint: script.paints[action[3]]},
    module: moduleAt(room, time),
    wait: wait && {length: wait[1], text: text(wait[2]), cause: script.causes[wait[3]]},
    unrecorded: time >= room.unrecorded[0] && time < room.unrecorded[1],
  };
}

function memoryAt(room, time) {
  if (room.memory.length === 0) return null;
  const i = Math.max(0, countUntil(room.memory, kMemory, time) - 1);
  return room.memory.slice(i * kMemory + 1, (i + 1) * kMemory);
}

function heldAt(room, time) {
  const out = [];
  const count = countUntil(room.held, kHeld, time);
  for (let i = 0; i < count; ++i)
    if (room.held[i * kHeld] + room.held[i * kHeld + 1] > time) out.push(room.held[i * kHeld + 2]);
  return out;
}

// The flows that are on their links at a time, or ended less than `linger` before it.
function flowsAt(time, linger) {
  const out = [];
  for (let i = countUntil(script.flows, kFlow, time) - 1; i >= 0 && script.flowsUntil[i] > time - linger; --i) {
    const [begin, length, pairs, kind, verb, dtype, microbatch, gradients, bytes, width] =
        script.flows.slice(i * kFlow, (i + 1) * kFlow);
    if (begin + length <= time - linger && !(length === 0 && begin === time)) continue;
    out.push({begin, length, end: begin + length, pairs: script.pairs[pairs], kind, verb: script.verbs[verb],
              dtype: script.dtypes[dtype], microbatch, gradients, bytes, width: width / 100});
  }
  return out.reverse();
}

// 0: only the shard, 1: being gathered, 2: gathered.
function shardAt(history, time) {
  const i = countUntil(history, 2, time) - 1;
  return i < 0 ? 0 : history[2 * i + 1];
}

// In ascending times, the next one after a time, or the last one before it; null if there is none.
function neighbour(times, time, forward) {
  const until = countUntil(times, 1, time);
  if (forward) return until < times.length ? times[until] : null;
  let i = until - 1;
  while (i >= 0 && times[i] >= time) --i;
  return i < 0 ? null : times[i];
}
