#include "viz/model/tables/memory_table.h"

#include "core/base/text.h"

#include <algorithm>
#include <numeric>
#include <string_view>

namespace ranklab::viz {
namespace {

constexpr std::string_view kPrefix = "memory/";
constexpr int kOther = static_cast<int>(kMemoryCategories), kLimit = kOther + 1;

// The category of a counter, kOther, kLimit, or -1 if it is not a memory counter.
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
  // Counters with the same time form one sample until one of them occurs again, because a rank's peak may lie between
  // two values of one counter.
  std::array<bool, kMemoryCategories> in_sample{};
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
    const auto at = static_cast<size_t>(category);
    now.bytes[at] = event.value;
    const bool same_moment =
        !out.samples.empty() && out.samples.back().time_ns == time && out.samples.back().step == event.step;
    if (same_moment && !in_sample[at]) {
      out.samples.back() = now;
    } else {
      out.samples.push_back(now);
      in_sample = {};
    }
    in_sample[at] = true;
  }
  for (const MemorySample& sample : out.samples) {
    if (sample.total() > out.peak.total() || &sample == &out.samples.front()) out.peak = sample;
  }
  return out;
}

constexpr size_t kListedRanks = 32;

std::string headings() {
  std::string out = strprintf("%-6s %11s %8s", "rank", "peak", "in step");
  for (size_t c = 0; c < kMemoryCategories; ++c)
    out += strprintf(" %11s", std::string(name(static_cast<MemoryCategory>(c))).c_str());
  return out + strprintf(" %11s %11s\n", "unknown", "of limit");
}

std::string rank_line(const RankMemory& rank) {
  std::string out = strprintf("r%-5d %11s %8s", rank.global_rank, bytes_text(rank.peak.total()).c_str(),
                              rank.peak.step < 0 ? "-" : std::to_string(rank.peak.step).c_str());
  for (const double bytes : rank.peak.bytes) out += strprintf(" %11s", bytes_text(bytes).c_str());
  const std::string share = rank.limit_bytes > 0 ? strprintf("%.3g %%", 100 * rank.share_of_limit()) : "-";
  return out + strprintf(" %11s %11s\n", bytes_text(rank.other_bytes).c_str(), share.c_str());
}

}  // namespace

double MemorySample::total() const { return std::accumulate(bytes.begin(), bytes.end(), 0.0); }

std::optional<MemorySample> fullest(const RankMemory& rank, TimeRange part) {
  auto sample = std::upper_bound(rank.samples.begin(), rank.samples.end(), part.begin_ns,
                                 [](int64_t time, const MemorySample& one) { return time < one.time_ns; });
  if (sample != rank.samples.begin()) --sample;  // held when the part begins
  std::optional<MemorySample> out;
  for (; sample != rank.samples.end() && sample->time_ns <= part.end_ns; ++sample)
    if (!out || sample->total() > out->total()) out = *sample;
  return out;
}

std::string fullest_text(const RankMemory& rank, const MemorySample& sample) {
  const std::string peak = "peak " + human_bytes(rank.peak.total());
  if (sample.total() == rank.peak.total()) return peak;
  const std::string step = rank.peak.step < 0 ? "" : strprintf(" in step %d", rank.peak.step);
  return human_bytes(sample.total()) + " here, " + peak + step;
}

std::vector<RankMemory> memory_table(const TraceStore& store, const Window& window) {
  std::vector<RankMemory> out;
  for (size_t r = 0; r < store.ranks().size(); ++r) out.push_back(table_of(store, window, r));
  return out;
}

bool has_memory(const std::vector<RankMemory>& table) {
  return std::any_of(table.begin(), table.end(), [](const RankMemory& rank) { return !rank.samples.empty(); });
}

std::string bytes_text(double bytes) { return bytes == 0 ? std::string("-") : human_bytes(bytes); }

std::string memory_text(const std::vector<RankMemory>& table) {
  if (!has_memory(table)) return "the trace has no memory counters: ./ranklab train --train-iters 3 records them\n";
  std::string out = "each rank at its peak, bytes by category\n" + headings();
  for (size_t r = 0; r < std::min(table.size(), kListedRanks); ++r) out += rank_line(table[r]);
  if (table.size() > kListedRanks) out += strprintf("and %zu more ranks\n", table.size() - kListedRanks);
  return out;
}

}  // namespace ranklab::viz
