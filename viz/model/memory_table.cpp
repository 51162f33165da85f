#include "viz/model/memory_table.h"

#include <algorithm>
#include <numeric>
#include <string_view>

namespace ranklab::viz {
namespace {

constexpr std::string_view kPrefix = "memory/";
constexpr int kOther = static_cast<int>(kMemoryCategories), kLimit = kOther + 1;

// Category of a counter, kOther, kLimit, or -1 when it is no memory counter.
int category_of(std::string_view counter) {
  if (!counter.starts_with(kPrefix)) return -1;
  counter.remove_prefix(kPrefix.size());
  for (size_t i = 0; i < kMemoryCategories; ++i) {
    if (counter == name(static_cast<MemoryCategory>(i))) return static_cast<int>(i);
  }
  return counter == "limit" ? kLimit : kOther;
}

RankMemory table_of(const TraceStore& store, const Window& window, size_t rank_index) {
  const RankTrace& trace = store.trace(rank_index);
  RankMemory out;
  out.global_rank = trace.global_rank;
  std::vector<int> categories;
  for (const std::string& name : trace.names) categories.push_back(category_of(name));
  std::vector<double> others(trace.names.size(), 0.0);
  MemorySample now;
  // Counters of one moment are one sample.
  for (const uint32_t index : store.rank(rank_index).counters) {
    const Event& event = trace.events[index];
    const int category = categories[event.name];
    if (category < 0 || !window.has(event, store.clock())) continue;
    if (category == kLimit) {
      out.limit_bytes = event.value;
      continue;
    }
    const int64_t time = begin_ns(event, store.clock());
    if (category == kOther) {
      others[event.name] = event.value;
      out.other_bytes = std::max(out.other_bytes, std::accumulate(others.begin(), others.end(), 0.0));
      continue;
    }
    now.time_ns = time;
    now.step = event.step;
    now.bytes[static_cast<size_t>(category)] = event.value;
    if (!out.samples.empty() && out.samples.back().time_ns == time && out.samples.back().step == event.step) {
      out.samples.back() = now;
    } else {
      out.samples.push_back(now);
    }
  }
  for (const MemorySample& sample : out.samples) {
    if (sample.total() > out.peak.total() || &sample == &out.samples.front()) out.peak = sample;
  }
  return out;
}

}  // namespace

double MemorySample::total() const { return std::accumulate(bytes.begin(), bytes.end(), 0.0); }

std::vector<RankMemory> memory_table(const TraceStore& store, const Window& window) {
  std::vector<RankMemory> out;
  for (size_t r = 0; r < store.ranks().size(); ++r) out.push_back(table_of(store, window, r));
  return out;
}

bool has_memory(const std::vector<RankMemory>& table) {
  return std::any_of(table.begin(), table.end(), [](const RankMemory& rank) { return !rank.samples.empty(); });
}

}  // namespace ranklab::viz
