#include "viz/model/tables/op_table.h"

#include <algorithm>
#include <map>

#include "core/trace/attention_event.h"
#include "viz/model/store/stalls.h"

namespace ranklab::viz {

std::string short_name(const std::string& op_name) {
  constexpr size_t kBytes = 32, kEnd = 15;  // PyTorch's differ at their end: "autograd::engine::evaluate_function: ..."
  if (op_name.size() <= kBytes) return op_name;
  const auto inside = [&](size_t at) { return (static_cast<uint8_t>(op_name[at]) & 0xC0) == 0x80; };
  size_t head = kBytes - 3 - kEnd, tail = op_name.size() - kEnd;
  while (head > 0 && inside(head)) --head;  // does not cut a UTF-8 character
  while (tail < op_name.size() && inside(tail)) ++tail;
  return op_name.substr(0, head) + "..." + op_name.substr(tail);
}

// "layers.*.attention backward": one name for the same module in all layers.
std::string of_all_layers(const std::string& path) {
  std::string out;
  for (size_t i = 0; i < path.size();) {
    const bool number = (i == 0 || path[i - 1] == '.') && path[i] >= '0' && path[i] <= '9';
    if (!number) {
      out += path[i++];
      continue;
    }
    while (i < path.size() && path[i] >= '0' && path[i] <= '9') ++i;
    out += '*';
  }
  return out;
}

namespace {

// "attention backward" for "attention q7 k3 backward".
std::string of_all_chunks(const std::string& name) {
  std::string out(kAttentionEvent.substr(0, kAttentionEvent.size() - 1));
  for (const std::string_view pass : kAttentionPasses)
    if (!pass.empty() && name.ends_with(pass)) out += pass;
  return out;
}

}  // namespace

std::string op_name(const RankTrace& trace, const Event& event) {
  const std::string& name = trace.names[event.name];
  if (event.kind == EventKind::kModule) return of_all_layers(name);
  if (event.kind == EventKind::kAttention) return of_all_chunks(name);
  if (event.kind != EventKind::kCollective) return name;
  std::string out = name + " " + std::string(ranklab::name(event.axis));
  if (event.purpose != Purpose::kOther) out += " " + std::string(ranklab::name(event.purpose));
  return out;
}

std::vector<OpRow> op_table(const TraceStore& store, const Window& window) {
  std::map<std::string, OpRow> ops;
  for (const RankTrace& trace : store.traces()) {
    const bool recorded = records_stalls(trace, store.clock());
    if (!recorded) {
      for (const Stall& stall : apparent_stalls(trace, store.clock(), window, window.range))
        ops[op_name(trace, trace.events[stall.event])].exposed_ns += stall.end_ns - stall.transfer_ns;
    }
    for (const Event& event : trace.events) {
      if (!is_slice(event) || !window.has(event, store.clock())) continue;
      OpRow& row = ops[op_name(trace, event)];
      row.kind = event.kind;
      ++row.time.count;
      row.time.total_ns += std::max<int64_t>(0, end_ns(event, store.clock()) - begin_ns(event, store.clock()));
      row.logical_bytes += event.logical_bytes;
      row.algorithm_bytes += event.algorithm_bytes;
      row.wire_bytes += event.wire_bytes;
      if (recorded) row.exposed_ns += event.virtual_exposed_ns;
      row.peer_wait_ns += event.virtual_peer_wait_ns;
    }
  }
  std::vector<OpRow> out;
  for (auto& [name, row] : ops) {
    row.name = name;
    out.push_back(std::move(row));
  }
  std::stable_sort(out.begin(), out.end(), [](const OpRow& a, const OpRow& b) {
    const bool first = a.kind == EventKind::kPhase, second = b.kind == EventKind::kPhase;
    return first != second ? second : a.time.total_ns > b.time.total_ns;
  });
  return out;
}

std::optional<double> overlap(const std::vector<OpRow>& ops) {
  int64_t time = 0, exposed = 0;
  for (const OpRow& row : ops) {
    if (row.kind != EventKind::kCollective) continue;
    time += row.time.total_ns;
    exposed += row.exposed_ns;
  }
  if (time <= 0) return std::nullopt;
  return std::clamp(1 - static_cast<double>(exposed) / static_cast<double>(time), 0.0, 1.0);
}

}  // namespace ranklab::viz
