// Fills what each room holds: bytes by category, and shards.
#include <algorithm>

#include "viz/model/stage/parts.h"

namespace ranklab::viz {
namespace {

// A bar cannot show more changes within a step.
constexpr size_t kMostSamples = 2000;
// The top of a bar is the device's limit if the fullest room reaches this part of it; otherwise nothing would be
// visible.
constexpr double kNearLimit = 0.2;

// Keeps the sample with the most bytes from each group of neighbours.
void thin(std::vector<MemorySample>& samples) {
  if (samples.size() <= kMostSamples) return;
  const size_t group = (samples.size() + kMostSamples - 1) / kMostSamples;
  std::vector<MemorySample> kept;
  for (size_t i = 0; i < samples.size(); i += group) {
    const auto first = samples.begin() + static_cast<std::ptrdiff_t>(i);
    const auto last = samples.begin() + static_cast<std::ptrdiff_t>(std::min(i + group, samples.size()));
    kept.push_back(*std::max_element(
        first, last, [](const MemorySample& a, const MemorySample& b) { return a.total() < b.total(); }));
  }
  samples = std::move(kept);
}

}  // namespace

void fill_holdings(const TraceStore& store, StageScript& script) {
  std::vector<RankMemory> memory = memory_table(store, script.window);
  double peak = 0, limit = 0;
  for (StageRoom& room : script.rooms) {
    room.memory = std::move(memory[room.rank_index]);
    thin(room.memory.samples);
    peak = std::max(peak, room.memory.peak.total());
    limit = std::max(limit, room.memory.limit_bytes);
  }
  script.memory_limit_bytes = limit;
  script.memory_top_bytes = peak >= limit * kNearLimit && limit >= peak ? limit : peak;
  if (script.window.step < 0 && store.steps().empty()) return;
  const ZeroTable zero = zero_table(store, script.window.step);
  // The shards of another step must not be shown.
  if (script.window.step < 0 || zero.step == script.window.step) script.zero = zero;
}

}  // namespace ranklab::viz
