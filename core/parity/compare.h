// Compares the tensors of two records. How far they are apart is the root mean square of the difference over that of
// the reference, in units of the compute dtype's epsilon; how far they may be apart is what a change of the reference's
// weights by one unit in the last place makes of each tensor (TTrace, arXiv 2506.09280). Three things are exact in any
// layout: copies of weights and of the numbers by which gradients are scaled have the same bits on all ranks, the
// gradient norm is that of the gradients, and the optimizer keeps its states in the same type. Thread rule: pure.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/parity/parity_record.h"
#include "core/parity/whole_tensor.h"

namespace ranklab {

struct TensorDistance {
  double eps = 0;      // root mean square of the difference / of the reference, in epsilons
  double largest = 0;  // largest difference of an element
  int64_t place = 0;   // ... and where, in the global tensor
  double got = 0, want = 0;
};

struct PiecesApart {
  std::vector<std::optional<TensorDistance>> pieces = {};
  double largest = 0, together = 0;  // epsilons: of one piece, of all elements
};

constexpr double kFactor = 8, kLeastEps = 16;

class ParityReference {
 public:
  // `perturbed`: runs of the same with other weights by one unit in the last place, or that add in another order.
  // `factor`: how often the distance that they have is allowed; at least `least` epsilons are.
  ParityReference(ParityRecord record, const std::vector<ParityRecord>& perturbed, double factor = kFactor,
                  double least = kLeastEps);

  // One more of `perturbed`: tolerances can only grow.
  void add(const ParityRecord& perturbed);

  const ParityRecord& record() const { return record_; }
  const std::vector<TensorKey>& keys() const { return keys_; }  // in causal order
  const WholeTensor& whole(const TensorKey& key) const { return whole_.at(key); }
  bool has(const TensorKey& key) const { return whole_.contains(key); }
  // In epsilons: of each piece of a tensor, and of all of them together.
  double tolerance(const TensorKey& key) const { return tolerance_.at(key); }
  double tolerance_together(const TensorKey& key) const { return together_.at(key); }
  double epsilon() const { return epsilon_; }
  at::ScalarType type(const TensorKey& key) const { return record_.tensors.at(key).front().value.scalar_type(); }

  // The values of the reference where the piece's are; padding has 0.
  at::Tensor at_slice(const TensorKey& key, const GlobalSlice& slice) const;
  // Nothing for a piece whose tensor has another shape here. `slack`: what each element of the global tensor may be
  // apart beside (flat; undefined: nothing).
  std::optional<TensorDistance> distance(const TensorKey& key, const TensorPiece& piece,
                                         const at::Tensor& slack = {}) const;
  PiecesApart distances(const TensorKey& key, const std::vector<TensorPiece>& pieces,
                        const at::Tensor& slack = {}) const;
  // How far each element of a weight may be apart by the first and second moments that AdamW had in the two runs. Of an
  // optimizer whose step is a sign (Lion) it is known only that rounding decides it where a moment is small, or has the
  // other sign and is as near as its tensor is allowed to be: infinitely far.
  at::Tensor slack(const ParityRecord& got, const TensorKey& key) const;
  // How much farther an expert's gradient may be apart, and its moments, by tokens whose router was near a tie and that
  // went to another expert in `got`. In epsilons.
  double by_flips(const ParityRecord& got, const TensorKey& key) const;

 private:
  ParityRecord record_;
  std::vector<TensorKey> keys_;
  void measure_idle_experts();
  at::Tensor turned(const WholeTensor& got, const TensorKey& moment) const;
  void widen(const ParityRecord& perturbed, bool weights);

  std::map<TensorKey, WholeTensor> whole_;
  std::map<TensorKey, double> tolerance_, together_;
  double epsilon_, factor_;
};

// What one rank has of a tensor, beside the reference's.
struct RankDistance {
  TensorDistance worst = {};  // of its pieces
  GlobalSlice slice = {};     // of that piece
  bool fits = true;           // all of them have the reference's shape
};

// One tensor of a run beside the reference's.
struct TensorVerdict {
  TensorKey key;
  double tolerance = 0;       // in epsilons
  TensorDistance worst = {};  // of all pieces
  int worst_rank = 0;
  std::vector<int> wrong_ranks = {}, right_ranks = {};
  std::map<int, RankDistance> ranks = {};  // of those that have a part of it
  bool fits = true;                        // every piece has the reference's shape
  double left_out = 0;                     // share of its elements that rounding decided and nobody compared
  std::string broken = {};  // what is wrong with it whatever its distance: copies that differ, another type
  bool wrong() const { return !wrong_ranks.empty(); }
};

struct ParityComparison {
  std::vector<TensorVerdict> verdicts;  // in causal order, of all tensors that both have
  std::vector<TensorKey> not_compared;  // that one of them does not have, or in another shape
  size_t pieces = 0;
  const TensorVerdict* first_wrong() const;
  const TensorVerdict* closest() const;  // to its tolerance
  size_t count_wrong() const;
};

// Without a reference: copies of the same elements on different ranks must have the same bits, whatever they are
// (weights, activations between layers, reduced gradients, states). In causal order.
ParityComparison audit(const ParityRecord& got);
TensorVerdict audit(const ParityRecord& got, const TensorKey& key);

// The verdict on one tensor that both runs have.
TensorVerdict judge(const ParityRecord& got, const ParityReference& want, const TensorKey& key, bool exact);
// `exact`: both runs do the same arithmetic, and no distance is allowed.
ParityComparison compare(const ParityRecord& got, const ParityReference& want, bool exact = false);

}  // namespace ranklab
