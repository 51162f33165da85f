// Which tensors of a Hugging Face folder are which of ours, element for element: the rows of module_table.h, so names
// and shapes of ours have one source, under the rules of hf_family.h. Ours are fused where theirs are apart (queries,
// keys and values; gate and up), so one of ours is several of theirs, each a run of its rows. Read either way, the same
// table exports and imports. Cost: a row a tensor. Thread rule: pure functions.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "core/checkpoint/hf_family.h"

namespace ranklab {

enum class HfPartKind {
  kTensor,    // holds these rows
  kCopy,      // holds them again: written, and compared when read
  kTiedCopy,  // as kCopy, but left out when written: the head of a tied embedding
};

struct HfPart {
  std::string name;
  std::vector<int64_t> shape;  // of theirs
  int64_t first_row = 0;       // of ours
  int64_t rows = 0;
  HfLayout layout = HfLayout::kSame;
  int64_t head_rows = 0;   // of kNeighbours..., kTurnedFirst and kHeadsTogether: rows of a head, ...
  int64_t turned = 0;      // of which the last, or first, so many carry position
  int64_t with_heads = 0;  // of kTurnedFirst: rows of such heads; values behind them stay
  HfPartKind kind = HfPartKind::kTensor;
  bool keeps_fp32 = false;  // whatever the type of the others
};

struct HfTensor {
  std::string ours;            // as checkpoints have it: "weight/layers.0.attention.qkv.weight", "buffer/..."
  std::vector<int64_t> shape;  // of ours
  std::vector<HfPart> parts;   // kTensor: rising, all rows together
};

// In the order of module_table.h. `family` is hf_family(config) or one that the configuration was read for.
std::vector<HfTensor> hf_mapping(const ModelConfig& config, const HfFamily& family);

// Refuses a model of many times the tensors that `where` has, before a list of them is made: its numbers are a
// stranger's. Throws kBadFile.
void check_tensor_count(const ModelConfig& config, size_t tensors, const std::string& where);

// Which row of ours (counted within the part) is row `row` of theirs.
int64_t our_row(const HfPart& part, int64_t row);

}  // namespace ranklab
