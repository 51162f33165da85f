// Maps tensors of a Hugging Face folder to ours, element for element: the rows of module_table.h (the one source of our
// names and shapes) under the rules of family.h. Ours are fused where theirs are separate (queries, keys and values;
// gate and up), so one of ours is several of theirs, each a run of its rows. The same table serves export and import.
// Cost: one row per tensor. Thread rule: pure functions.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "core/checkpoint/hf/family.h"

namespace ranklab {

enum class HfPartKind {
  kTensor,    // holds these rows
  kCopy,      // holds copies of them: written, and compared when read
  kTiedCopy,  // as kCopy, but left out when written: the head of a tied embedding
};

// Rows of ours in adjacent pairs (--rotary-interleaved), of which the rules of a family think as halves (family.h).
struct HfPairs {
  int64_t rows = 0;    // the first rows of the part, queries' or keys'; 0: there are no pairs
  int64_t head = 0;    // rows of a head, ...
  int64_t first = 0;   // of which those from here on are halved ...
  int64_t rotary = 0;  // ... and this many of them turn, the first ones of ours
};

struct HfPart {
  std::string name;
  std::vector<int64_t> shape;  // of their tensor
  int64_t first_row = 0;       // of our tensor
  int64_t rows = 0;
  int64_t slice = -1;  // their first dimension is over experts, of which this is one; -1: it is not
  HfLayout layout = HfLayout::kSame;
  int64_t head_rows = 0;    // kNeighbours..., kRotaryFirst and kHeadsTogether: rows of a head, ...
  int64_t rotary_rows = 0;  // of which the last, or first, so many are rotated
  int64_t with_heads =
      0;  // kRotaryFirst, kHeadsTogether: the first rows of ours, queries' or keys'; others do not turn
  std::vector<int64_t> pieces = {};  // kHeadsTogether: rows of each of our parts ...
  int64_t heads = 1;                 // ... and what has an equal share of each
  HfPairs pairs = {};
  HfPartKind kind = HfPartKind::kTensor;
  bool keeps_fp32 = false;  // whatever the type of the others
};

struct HfTensor {
  std::string ours;            // name in checkpoints: "weight/layers.0.attention.qkv.weight", "buffer/..."
  std::vector<int64_t> shape;  // of our tensor
  std::vector<HfPart> parts;   // kTensor: by ascending row, covering all rows
};

// In the order of module_table.h. `family` is hf_family(config) or the one whose keys the configuration was read with.
std::vector<HfTensor> hf_mapping(const ModelConfig& config, const HfFamily& family);

// Refuses a model with many times the tensors that `where` has, before a list of them is built: its configuration is
// untrusted. `family`: of whose files these are; null: they are ours. Throws kBadFile.
void check_tensor_count(const ModelConfig& config, const HfFamily* family, size_t tensors, const std::string& where);

bool is_transposed(HfLayout layout);

// The row of our part (counted within it) that is row `row` of theirs.
int64_t our_row(const HfPart& part, int64_t row);

}  // namespace ranklab
