// The settings of context parallelism. Torch-free.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "core/spec/sequence_part.h"

namespace ranklab {

// How attention gets the keys and values of other ranks' positions. Elements that a rank sends per layer, for B
// sequences of S positions, query width H and key width K (both of this tp rank), n ranks:
//   kP2p        ring attention (Liu et al. 2023, arXiv 2310.01889): keys and values go round while blocks of them are
//               attended to; 2 K B S (n-1)/n forward, the same and their gradients (n hops, fp32) backward
//   kAllGather  all keys and values at once (Llama 3, arXiv 2407.21783): 2 K B S (n-1)/n forward; backward gathers them
//               again and reduce-scatters their gradients
//   kAllToAll   an all-to-all exchanges heads for positions (DeepSpeed Ulysses, arXiv 2309.14509): each rank attends
//               with a part of the heads to whole sequences; (2 H + 2 K) B S/n (n-1)/n each way
//   kAllToAllP2p  both (USP: Fang & Zhao 2024, arXiv 2405.07719; Megatron-Core's hierarchical context parallelism):
//               groups of neighbours exchange heads for positions, and keys and values go round a ring of groups
enum class ContextExchange { kP2p, kAllGather, kAllToAll, kAllToAllP2p };

struct ContextSplit {
  ContextExchange exchange = ContextExchange::kP2p;
  SequenceBalance balance = SequenceBalance::kZigzag;
  std::vector<ContextExchange> by_layer = {};  // one per layer; empty: `exchange` in all layers

  // Layers after the model's own layers (multi-token prediction) use the same exchange as the last one.
  ContextExchange of_layer(int64_t layer) const {
    if (by_layer.empty()) return exchange;
    return by_layer[static_cast<size_t>(std::min<int64_t>(layer, static_cast<int64_t>(by_layer.size()) - 1))];
  }
  bool uses(ContextExchange one) const {
    return by_layer.empty() ? exchange == one : std::ranges::find(by_layer, one) != by_layer.end();
  }
};

constexpr std::string_view name(ContextExchange exchange) {
  constexpr std::array<std::string_view, 4> kNames = {"p2p", "all_gather", "a2a", "a2a+p2p"};
  return kNames[static_cast<size_t>(exchange)];
}
constexpr std::string_view name(SequenceBalance balance) {
  constexpr std::array<std::string_view, 3> kNames = {"contiguous", "zigzag", "stripe"};
  return kNames[static_cast<size_t>(balance)];
}

}  // namespace ranklab
