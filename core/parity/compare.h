// Compares the tensors of two records. The distance between two tensors is the root mean square of their difference
// relative to that of the reference, in units of the compute dtype's epsilon. How large it may be is found per tensor:
// by how much the tensor changes if the reference's weights are changed by one unit in the last place (TTrace, arXiv
// 2506.09280). Three things are exact in any layout: copies of weights and of the numbers by which gradients are scaled
// have the same bits on all ranks, the reported gradient norm is the norm of the gradients, and the optimizer keeps its
// states in the same type. Thread rule: pure.
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
  double eps = 0;      // root mean square of the difference / that of the reference, in epsilons
  double largest = 0;  // largest difference of one element
  int64_t place = 0;   // index of that element in the flat global tensor
  double got = 0, want = 0;
};

struct PiecesApart {
  std::vector<std::optional<TensorDistance>> pieces = {};
  double largest = 0, together = 0;  // in epsilons: of the worst piece, and of all elements together
};

constexpr double kFactor = 8, kLeastEps = 16;

class ParityReference {
 public:
  // `perturbed`: runs of the same training whose weights differ by one unit in the last place, or that add in another
  // order. `factor`: the tolerance as a multiple of the largest distance of these runs; it is at least `least`
  // epsilons.
  ParityReference(ParityRecord record, const std::vector<ParityRecord>& perturbed, double factor = kFactor,
                  double least = kLeastEps);

  // Adds another perturbed run: tolerances can only grow.
  void add(const ParityRecord& perturbed);

  const ParityRecord& record() const { return record_; }
  const std::vector<TensorKey>& keys() const { return keys_; }  // in causal order
  const WholeTensor& whole(const TensorKey& key) const { return whole_.at(key); }
  bool has(const TensorKey& key) const { return whole_.contains(key); }
  // The tolerances in epsilons: for each piece of a tensor, and for all pieces together.
  double tolerance(const TensorKey& key) const { return tolerance_.at(key); }
  double tolerance_together(const TensorKey& key) const { return together_.at(key); }
  double epsilon() const { return epsilon_; }
  at::ScalarType type(const TensorKey& key) const { return record_.tensors.at(key).front().value.scalar_type(); }

  // The reference's values at the positions of `slice`; 0 at padding.
  at::Tensor at_slice(const TensorKey& key, const GlobalSlice& slice) const;
  // Returns nothing for a piece whose tensor has another shape here. `slack`: an additional difference that is allowed
  // for each element of the global tensor (flat; undefined: none).
  std::optional<TensorDistance> distance(const TensorKey& key, const TensorPiece& piece,
                                         const at::Tensor& slack = {}) const;
  PiecesApart distances(const TensorKey& key, const std::vector<TensorPiece>& pieces,
                        const at::Tensor& slack = {}) const;
  // How far apart each element of a weight may be, given the first and second moments that AdamW had in the two runs.
  // For an optimizer whose step is a sign (Lion) it is only known where rounding decides the sign: where a moment is
  // small, or has the other sign but is within its tensor's tolerance. There the allowed difference is infinite.
  at::Tensor slack(const ParityRecord& got, const TensorKey& key) const;
  // How much farther apart an expert's gradient and moments may be because of tokens whose router scores were nearly
  // tied, and which therefore went to another expert in `got`. In epsilons.
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
