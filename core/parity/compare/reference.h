// The run that others are compared with. How far a tensor may be from it is found per tensor: by how much the tensor
// changes if the reference's weights are changed by one unit in the last place (TTrace, arXiv 2506.09280). Thread rule:
// pure.
#pragma once
#include <map>
#include <optional>
#include <vector>

#include "core/parity/compare/tensor_distance.h"
#include "core/parity/parity_record.h"
#include "core/parity/whole_tensor.h"

namespace ranklab {

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

}  // namespace ranklab
