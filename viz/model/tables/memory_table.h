// Bytes by category over time, from the counters "memory/parameters" ..., and each rank's peak with its composition.
// Cost: O(n). Thread rule: pure.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "viz/model/store/trace_store.h"

namespace ranklab::viz {

constexpr size_t kMemoryCategories = static_cast<size_t>(MemoryCategory::kCount);
using MemoryBytes = std::array<double, kMemoryCategories>;

struct MemorySample {
  int64_t time_ns = 0;
  int step = -1;
  MemoryBytes bytes{};
  double total() const;
};

struct RankMemory {
  int global_rank = 0;
  std::vector<MemorySample> samples;  // by time
  MemorySample peak;                  // largest total; the first of equal ones
  double limit_bytes = 0;             // of the modelled device, "memory/limit"; 0: unknown
  double other_bytes = 0;             // largest sum of the "memory/..." counters that belong to no category

  double share_of_limit() const { return limit_bytes > 0 ? peak.total() / limit_bytes : 0; }
};

// The sample with the largest total in a part of the time (the first of equal ones); nothing if the rank has no sample
// before the part's end.
std::optional<MemorySample> fullest(const RankMemory& rank, TimeRange part);
// The label of that sample: "peak 10.9 MiB"; or, if the peak is at another time, "9.00 MiB here, peak 10.9 MiB in step
// 0".
std::string fullest_text(const RankMemory& rank, const MemorySample& sample);

// Ranks without memory counters have no samples. Ordered like TraceStore::ranks().
std::vector<RankMemory> memory_table(const TraceStore& store, const Window& window);
bool has_memory(const std::vector<RankMemory>& table);

// One line for each of up to 32 ranks: its peak and its composition.
std::string memory_text(const std::vector<RankMemory>& table);
std::string bytes_text(double bytes);  // as in memory_text(): "-" for none

}  // namespace ranklab::viz
