// Which rank of a context-parallel group takes longest for a model's attention. Pure arithmetic, torch-free. Cost: one
// visit per block of attention. Thread rule: pure.
#pragma once
#include <cstdint>
#include <vector>

#include "core/spec/context_exchange.h"

namespace ranklab {

struct ModelConfig;  // core/spec/model_config.h

// A number of layers whose attention has the same form.
struct AttentionOfLayers {
  int64_t window = 0;
  int64_t chunk = 0;  // positions attend only within chunks of this many; 0: no chunks
  int64_t layers = 1;
  bool in_order = true;  // keys are ordered as in gathered_keys(); otherwise rank after rank
  int joined = 1;        // number of neighbours that exchange heads first: joined_part()
};

// The layers in which ranks have different positions; ranks that exchange heads have all of them, and are all alike.
// `head_ranks`: how many neighbours exchange heads with ContextExchange::kAllToAllP2p.
std::vector<AttentionOfLayers> attention_of_layers(const ModelConfig& model, const ContextSplit& split, int head_ranks);

// The rank of a context-parallel group that takes longest: by number of (query, key) pairs and then by number of
// blocks, or the other way round (for short sequences, whose kernels take hardly longer than their launch); ties are
// broken by the number of queries in blocks, whose results must be merged.
enum class SlowestBy { kPairs, kBlocks };
int slowest_rank(int64_t seq_length, int ranks, SequenceBalance balance, const std::vector<AttentionOfLayers>& layers,
                 SlowestBy by = SlowestBy::kPairs);

}  // namespace ranklab
