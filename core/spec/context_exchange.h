// The settings of context parallelism. Torch-free.
#pragma once
#include <array>
#include <string_view>

#include "core/spec/sequence_part.h"

namespace ranklab {

// How attention gets the keys and values of other ranks' positions. Elements that a rank sends per layer, for B
// sequences of S positions, query width H and key width K (both of this tp rank), n ranks:
//   kP2p        ring attention (Liu et al. 2023, arXiv 2310.01889): keys and values go round while blocks of them are
//               attended to; 2 K B S (n-1)/n forward, the same and their gradients (n hops, fp32) backward
//   kAllGather  all keys and values at once (Llama 3, arXiv 2407.21783): 2 K B S (n-1)/n forward; backward gathers them
//               again and reduce-scatters their gradients
//   kAllToAll   heads change places with positions (DeepSpeed Ulysses, arXiv 2309.14509): each rank attends with a part
//               of the heads to whole sequences; (2 H + 2 K) B S/n (n-1)/n each way
enum class ContextExchange { kP2p, kAllGather, kAllToAll };

struct ContextSplit {
  ContextExchange exchange = ContextExchange::kP2p;
  SequenceBalance balance = SequenceBalance::kZigzag;
};

constexpr std::string_view name(ContextExchange exchange) {
  constexpr std::array<std::string_view, 3> kNames = {"p2p", "all_gather", "a2a"};
  return kNames[static_cast<size_t>(exchange)];
}
constexpr std::string_view name(SequenceBalance balance) {
  constexpr std::array<std::string_view, 3> kNames = {"contiguous", "zigzag", "stripe"};
  return kNames[static_cast<size_t>(balance)];
}

}  // namespace ranklab
