#include <algorithm>

#include "core/base/text.h"
#include "viz/model/store/time_text.h"
#include "viz/model/tables/attention_table.h"

namespace ranklab::viz {
namespace {

int rank_of(const TraceStore& store, const AttentionGroup& group, size_t member) {
  return store.rank(group.members[member]).global_rank;
}

// One line for each chunk of queries, with the rank that computes it for each chunk of keys; of several the first.
std::string grid_text(const TraceStore& store, const AttentionGroup& group, const AttentionUse& use) {
  constexpr int kShown = 32;
  const int chunks = std::min(use.chunks, kShown);
  std::vector<std::string> rows(static_cast<size_t>(chunks), std::string(static_cast<size_t>(chunks) * 4, ' '));
  for (size_t member = use.tiles.size(); member-- > 0;) {
    const std::string rank = strprintf("%4d", rank_of(store, group, member));
    for (const AttentionTile& tile : use.tiles[member])
      if (tile.query < chunks && tile.key < chunks)
        rows[static_cast<size_t>(tile.query)].replace(static_cast<size_t>(tile.key) * 4, 4, rank);
  }
  std::string out = "queries  keys";
  for (int key = 0; key < chunks; ++key) out += strprintf(key == 0 ? "%2d" : "%4d", key);
  out += "\n";
  for (size_t query = 0; query < rows.size(); ++query) {
    const std::string& row = rows[query];
    out += strprintf("%7zu    ", query) + row.substr(0, row.find_last_not_of(' ') + 1) + "\n";
  }
  if (use.chunks > chunks) out += strprintf("    ... %d chunks\n", use.chunks);
  return use.sharers() > 1 ? out + sharers_words(use) + "; the first of them is shown\n" : out;
}

std::string shares_text(const TraceStore& store, const AttentionGroup& group, const AttentionUse& use) {
  std::string out = strprintf("%7s %14s %8s %9s %10s\n", "rank", "pairs", "share", "of mean", "time");
  const double all = use.mean_pairs() * static_cast<double>(use.tiles.size());
  for (size_t member = 0; member < use.tiles.size(); ++member) {
    const double pairs = use.pairs(member);
    out += strprintf("%7d %14s %8s %9.2f %10s\n", rank_of(store, group, member),
                     use.by_heads() ? "-" : strprintf("%.0f", pairs).c_str(),
                     format_percent(all > 0 ? pairs / all : 0).c_str(), use.of_mean(member),
                     format_time(store, use.busy_ns(member)).c_str());
  }
  return out;
}

std::string chunk_words(const AttentionUse& use) {
  const auto each = static_cast<long long>(use.positions / use.chunks);
  if (use.by_heads()) return strprintf("whole sequences of %lld positions", static_cast<long long>(use.positions));
  return use.striped ? strprintf("%d chunks, each every %d-th of %lld positions", use.chunks, use.chunks,
                                 static_cast<long long>(use.positions))
                     : strprintf("%d chunks of %lld positions", use.chunks, each);
}

}  // namespace

std::string use_words(const AttentionUse& use) {
  std::string words = use.module.empty() ? "attention" : use.module;
  words += kAttentionPasses[static_cast<size_t>(use.pass)];
  if (use.microbatch >= 0) words += strprintf(", microbatch %d", use.microbatch);
  return words;
}

// A zigzag balances exactly: rank r has the r-th chunk and the r-th from the end, whose queries together see the same
// number of keys for every r. That is true only if queries attend to all keys before them.
std::string balance_words(const TraceStore& store, const AttentionGroup& group, const AttentionUse& use) {
  constexpr double kEven = 1.05;
  if (use.by_heads())
    return strprintf("every rank attends to whole sequences, with 1/%zu of the heads", use.tiles.size());
  if (use.imbalance() < kEven) return "every rank does about as much";
  const std::string words =
      strprintf("rank %d does %.2f times the mean", rank_of(store, group, use.fullest()), use.imbalance());
  return use.whole_triangle() ? words + "; --cp-balance zigzag would be 1.00" : words;
}

std::string sharers_words(const AttentionUse& use) {
  return strprintf("%zu ranks compute each block, with 1/%zu of the heads each", use.sharers(), use.sharers());
}

std::string attention_text(const TraceStore& store, const AttentionTable& table) {
  if (table.empty())
    return "no attention of several ranks: the trace has no context parallelism, or is less detailed than modules; "
           "./ranklab train --cp 8\n";
  std::string out;
  for (const AttentionGroup& group : table.groups) {
    const AttentionUse& use = group.uses.front();
    std::vector<int> ranks;
    for (size_t member = 0; member < group.members.size(); ++member) ranks.push_back(rank_of(store, group, member));
    if (!out.empty()) out += "\n";
    out += "ranks " + join(std::span<const int>(ranks), ", ") + strprintf(": step %d, ", use.step) + use_words(use) +
           "; " + chunk_words(use) + "\n";
    if (!use.by_heads()) out += grid_text(store, group, use);
    out += shares_text(store, group, use);
    out += strprintf("max / mean %.2f: ", use.imbalance()) + balance_words(store, group, use) + "\n";
  }
  return out;
}

}  // namespace ranklab::viz
