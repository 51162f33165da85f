// Maps tensors of a Hugging Face folder to ours, element for element: the rows of module_table.h (the one source of our
// names and shapes) under the rules of family.h. Some of our tensors are fused where theirs are separate (queries, keys
// and values; gate and up), so one of ours corresponds to several of theirs, each a run of its rows. The same table
// serves export and import. Cost: one row per tensor. Thread rule: pure functions.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "core/checkpoint/hf/family.h"

namespace ranklab {

enum class HfPartKind {
  kTensor,    // holds these rows
  kCopy,      // holds copies of these rows: written, and compared when read
  kTiedCopy,  // like kCopy, but not written: the head of a tied embedding
};

// For models whose rotated rows are adjacent pairs (--rotary-interleaved), while the rules of a family assume halves
// (family.h).
struct HfPairs {
  int64_t rows = 0;    // the first rows of the part (queries or keys); 0: there are no pairs
  int64_t head = 0;    // rows of a head, ...
  int64_t first = 0;   // ... of which the rules take those from here on for two halves ...
  int64_t rotary = 0;  // ... and this many are rotated, the first of ours
};

struct HfPart {
  std::string name;
  std::vector<int64_t> shape;  // shape of their tensor
  int64_t first_row = 0;       // index in our tensor
  int64_t rows = 0;
  int64_t slice = -1;  // their first dimension is over experts, and this is the expert's index; -1: it is not
  HfLayout layout = HfLayout::kSame;
  int64_t head_rows = 0;    // kNeighbours..., kRotaryFirst and kHeadsTogether: rows per head, ...
  int64_t rotary_rows = 0;  // ... of which this many, at the end or at the beginning, are rotated
  // kRotaryFirst, kNeighboursFirst, kHeadsTogether: the number of our first rows (queries or keys) that have rotated
  // rows
  int64_t with_heads = 0;
  std::vector<int64_t> pieces = {};  // kHeadsTogether: the number of rows of each of our parts ...
  int64_t heads = 1;                 // ... and the number of heads among which each part is divided equally
  HfPairs pairs = {};
  HfPartKind kind = HfPartKind::kTensor;
  bool keeps_fp32 = false;  // whatever the type of the other tensors
};

struct HfTensor {
  std::string ours;            // name in checkpoints: "weight/layers.0.attention.qkv.weight", "buffer/..."
  std::vector<int64_t> shape;  // of our tensor
  std::vector<HfPart> parts;   // the kTensor parts, in ascending order, cover all rows
};

// In the order of module_table.h. `family`: hf_family(config), or the family whose keys were used to read the
// configuration.
std::vector<HfTensor> hf_mapping(const ModelConfig& config, const HfFamily& family);

// Refuses, before a list of them is built, a model that has many times more tensors than `where`; its configuration is
// untrusted. `family`: the family whose files these are; null: they are ours. Throws kBadFile.
void check_tensor_count(const ModelConfig& config, const HfFamily* family, size_t tensors, const std::string& where);

bool is_transposed(HfLayout layout);

// The row of our part (counted within the part) that corresponds to row `row` of theirs.
int64_t our_row(const HfPart& part, int64_t row);

}  // namespace ranklab
