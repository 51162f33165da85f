#include "core/spec/slowest_context_rank.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "core/spec/model_config.h"

namespace ranklab {

std::vector<AttentionOfLayers> attention_of_layers(const ModelConfig& model, const ContextSplit& split,
                                                   int head_ranks) {
  // number of layers by exchange, window and chunk
  std::map<std::tuple<ContextExchange, int64_t, int64_t>, int64_t> alike;
  for (int64_t layer = 0; layer < model.num_layers; ++layer)
    ++alike[{split.of_layer(layer), model.window_of_layer(layer), model.chunk_of_layer(layer)}];
  std::vector<AttentionOfLayers> all;
  for (const auto& [kind, layers] : alike) {
    const auto [exchange, window, chunk] = kind;
    if (exchange == ContextExchange::kAllToAll) continue;
    all.push_back({.window = window,
                   .chunk = chunk,
                   .layers = layers,
                   // Gathered latents are attended to rank after rank.
                   .in_order = exchange == ContextExchange::kAllGather && !model.mla.enabled(),
                   .joined = exchange == ContextExchange::kAllToAllP2p ? head_ranks : 1});
  }
  return all;
}

int slowest_rank(int64_t seq_length, int ranks, SequenceBalance balance, const std::vector<AttentionOfLayers>& layers,
                 SlowestBy by) {
  struct Work {
    int64_t pairs = 0, blocks = 0, queries = 0;
    auto in_order(SlowestBy by) const {
      return by == SlowestBy::kPairs ? std::tuple(pairs, blocks, queries) : std::tuple(blocks, pairs, queries);
    }
  };
  std::vector<Work> work(static_cast<size_t>(ranks));
  for (const auto& [window, chunk, count, in_order, joined] : layers) {
    std::vector<int64_t> starts;
    add_chunk_starts(starts, 0, seq_length, chunk);
    std::vector<std::vector<PositionRun>> parts;
    for (int member = 0; member < ranks / joined; ++member)
      parts.push_back(joined_part(seq_length, ranks, joined, member, balance));
    const std::vector<std::vector<PositionRun>> keys = in_order ? gathered_keys(seq_length, ranks, balance) : parts;
    for (size_t rank = 0; rank < work.size(); ++rank) {
      for (const std::vector<PositionRun>& others : keys) {
        for (const AttentionBlock& block :
             attention_blocks(parts[rank / static_cast<size_t>(joined)], others, window, starts)) {
          work[rank].pairs += count * block.pairs();
          work[rank].blocks += count;
          work[rank].queries += count * block.queries;
        }
      }
    }
  }
  const auto slowest = std::ranges::max_element(work, {}, [&](const Work& one) { return one.in_order(by); });
  return static_cast<int>(slowest - work.begin());
}

}  // namespace ranklab
