#include <algorithm>

#include "core/base/text.h"
#include "viz/model/zero_table.h"

namespace ranklab::viz {
namespace {

const char* word(HeldParameters held) {
  switch (held) {
    case HeldParameters::kWhole:
      return "whole";
    case HeldParameters::kShard:
      return "shard";
    case HeldParameters::kGathering:
      return "gathering";
    case HeldParameters::kGathered:
      return "gathered";
  }
  return "";
}

std::string bytes(int64_t count) { return human_bytes(static_cast<double>(count)); }

std::string each(int64_t count, int64_t elements) {
  return elements > 0 ? strprintf("%.2f", static_cast<double>(count) / static_cast<double>(elements)) : "-";
}

// What the stages would hold, of the rank that has most.
std::string stages_text(const TraceStore& store, const ZeroTable& table) {
  size_t fullest = 0;
  for (size_t rank = 1; rank < store.traces().size(); ++rank) {
    if (table.elements(rank) > table.elements(fullest)) fullest = rank;
  }
  std::string out = "at the update, of " + store.rank(fullest).label + "\n";
  out += strprintf("%7s %12s %12s %12s %12s %18s\n", "stage", "parameters", "gradients", "optimizer", "together",
                   "bytes a parameter");
  for (int stage = 0; stage <= 3; ++stage) {
    const ZeroBytes held = table.bytes_of_stage(fullest, stage);
    out += strprintf("%7s %12s %12s %12s %12s %18s\n",
                     (std::to_string(stage) + (stage == table.stage ? " (run)" : "")).c_str(),
                     bytes(held.parameters).c_str(), bytes(held.gradients).c_str(), bytes(held.optimizer).c_str(),
                     bytes(held.together()).c_str(), each(held.together(), table.elements(fullest)).c_str());
  }
  return out;
}

}  // namespace

std::string zero_text(const TraceStore& store, const ZeroTable& table) {
  if (table.empty()) return "no buckets: the trace has no traced training step\n";
  std::string out = strprintf("ZeRO stage %d, step %d: who shares out what\n", table.stage, table.step);
  size_t widest = 6;
  for (const ZeroBucketRow& row : table.rows) widest = std::max(widest, row.label.size());
  out += strprintf("%-*s %12s %9s %7s %10s %22s\n", static_cast<int>(widest), "bucket", "elements", "padding", "ranks",
                   "a shard", "parameters between uses");
  for (const ZeroBucketRow& row : table.rows) {
    const int64_t shard = row.elements / row.shards;
    const bool shared = table.stage > 0 && row.shards > 1;
    out += strprintf("%-*s %12ld %9ld %7d %10ld %22s\n", static_cast<int>(widest), row.label.c_str(),
                     static_cast<long>(row.elements), static_cast<long>(row.padding), row.shards,
                     static_cast<long>(shared ? shard : row.elements),
                     word(table.stage == 3 && row.shards > 1 ? HeldParameters::kShard : HeldParameters::kWhole));
  }
  return out + stages_text(store, table);
}

}  // namespace ranklab::viz
