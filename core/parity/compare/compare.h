// Compares the tensors of a run with those of a reference (reference.h). Three things are exact in any layout: copies
// of weights and of the numbers by which gradients are scaled have the same bits on all ranks, the reported gradient
// norm is the norm of the gradients, and the optimizer keeps its states in the same type. Thread rule: pure.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "core/parity/compare/reference.h"

namespace ranklab {

// One rank's part of a tensor compared with the reference.
struct RankDistance {
  TensorDistance worst = {};  // of the rank's pieces
  GlobalSlice slice = {};     // of that piece
  bool fits = true;           // all of the rank's pieces have the reference's shape
};

// One tensor of a run compared with the reference.
struct TensorVerdict {
  TensorKey key;
  double tolerance = 0;       // in epsilons
  TensorDistance worst = {};  // of all pieces
  int worst_rank = 0;
  std::vector<int> wrong_ranks = {}, right_ranks = {};
  std::map<int, RankDistance> ranks = {};  // the ranks that have a part of it
  bool fits = true;                        // every piece has the reference's shape
  double left_out = 0;      // share of elements that were not compared because rounding decides their value
  std::string broken = {};  // what is wrong regardless of the distance: copies that differ, or another dtype
  bool wrong() const { return !wrong_ranks.empty(); }
};

struct ParityComparison {
  std::vector<TensorVerdict> verdicts;  // in causal order: all tensors that both records have
  std::vector<TensorKey> not_compared;  // tensors that one of the records does not have, or has in another shape
  size_t pieces = 0;
  const TensorVerdict* first_wrong() const;
  const TensorVerdict* closest() const;  // the tensor whose distance is closest to, or farthest above, its tolerance
  size_t count_wrong() const;
};

// Compares without a reference: copies of the same elements on different ranks must have the same bits, whatever their
// values (weights, activations between layers, reduced gradients, states). In causal order.
ParityComparison audit(const ParityRecord& got);
TensorVerdict audit(const ParityRecord& got, const TensorKey& key);

// The verdict on one tensor that both runs have.
TensorVerdict judge(const ParityRecord& got, const ParityReference& want, const TensorKey& key, bool exact);
// `exact`: both runs do the same arithmetic, so no difference is allowed.
ParityComparison compare(const ParityRecord& got, const ParityReference& want, bool exact = false);

}  // namespace ranklab
