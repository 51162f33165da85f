// The peaks of memory_table.h as text.
#include <algorithm>

#include "core/base/text.h"
#include "viz/model/memory_table.h"

namespace ranklab::viz {
namespace {

constexpr size_t kListedRanks = 32;

std::string bytes_text(double bytes) { return bytes == 0 ? std::string("-") : human_bytes(bytes); }

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

std::string memory_text(const std::vector<RankMemory>& table) {
  if (!has_memory(table)) return "the trace has no memory counters: ./ranklab train --train-iters 3 records them\n";
  std::string out = "each rank at its fullest moment, bytes by category\n" + headings();
  for (size_t r = 0; r < std::min(table.size(), kListedRanks); ++r) out += rank_line(table[r]);
  if (table.size() > kListedRanks) out += strprintf("and %zu more ranks\n", table.size() - kListedRanks);
  return out;
}

}  // namespace ranklab::viz
