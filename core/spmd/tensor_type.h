// The type of a tensor over the mesh, and what operators and collectives make of types. The words are those of
// PyTorch's DTensor placements and spmd_types: over an axis a tensor is replicated (the same on all its ranks), varying
// (each rank has its own, such as a shard) or partial (the sum over its ranks is the value).
//
// Instead of a word per axis a type holds three partitions of the ranks (rank_partitions.h), which say the same for
// every axis at once, dense or expert:
//   same  ranks that have the same numbers
//   need  ranks whose numbers must be added up
//   have  ... of which this much has been added: partial while it is less
// A gradient is typed by duality, as in spmd_types: the gradient of what is the same on several ranks needs the sum
// over them, unless it is itself the same there, because then each rank has already seen all uses. Torch-free. Thread
// rule: one thread.
#pragma once
#include <optional>
#include <span>
#include <string>

#include "core/base/type_change.h"
#include "core/spmd/rank_partitions.h"

namespace ranklab {

struct TensorType {
  PartitionId same = RankPartitions::kTogether;
  PartitionId have = RankPartitions::kApart;
  PartitionId need = RankPartitions::kApart;

  bool partial() const { return have != need; }
  bool operator==(const TensorType&) const = default;
};

// What an operator does with the numbers of an operand.
enum class OperandUse : uint8_t {
  kCarried,     // moved, chosen or added up: a partial sum stays one
  kAdded,       // to the others that are added, and to the product of those that are multiplied
  kMultiplied,  // with the others that are multiplied
  kNonlinear,   // a function that is not linear in it: also a divisor, an exponent, a side of a comparison
};

// What is wrong with a use. The texts are literals.
struct TypeFault {
  Axis axis = Axis::kCount;
  const char* got = "";
  const char* want = "";
  const char* fix = "";
};

class TypeRules {
 public:
  explicit TypeRules(RankPartitions partitions) : partitions_(std::move(partitions)) {}

  RankPartitions& partitions() { return partitions_; }

  // An operator on these operands, of which there is one at least, and the use of each. Sets `fault` where they do not
  // go together.
  TensorType combined(std::span<const TensorType> operands, std::span<const OperandUse> uses,
                      std::optional<TypeFault>& fault);
  TensorType combined(std::span<const TensorType> operands, OperandUse of_all, std::optional<TypeFault>& fault);
  TensorType all_reduced(const TensorType& type, Axis axis, std::optional<TypeFault>& fault);
  TensorType all_reduced_max(const TensorType& type, Axis axis, std::optional<TypeFault>& fault);
  TensorType reduce_scattered(const TensorType& type, Axis axis, std::optional<TypeFault>& fault);
  TensorType all_gathered(TensorType type, Axis axis);  // also broadcast
  TensorType exchanged(TensorType type, Axis axis);     // all_to_all; a part of it
  TensorType product(const TensorType& type, const TensorType& operand, PartitionId split_of_weight);
  // The gradient of a tensor with the type `forward`, as computed so far with the type `grad`.
  TensorType gradient(const TensorType& forward, const TensorType& grad);

  // The first axis over which the sum is missing: of the ranks in `need` that are not in `have`.
  Axis missing(PartitionId need, PartitionId have, bool of_experts = false);
  // The axis that a user sets, of which this is a part: tp of the copies of key/value heads.
  static Axis set_axis(Axis axis);
  // Over the axes with several ranks; stages of a pipeline have different tensors, so over pp only of partial ones.
  TypeChange change(const TensorType& before, const TensorType& after);
  // "partial over tp, replicated over cp, varying over dp".
  std::string text(const TensorType& type);

 private:
  AxisType over(const TensorType& type, PartitionId groups);
  TensorType summed(const TensorType& type, Axis axis, std::optional<TypeFault>& fault);

  RankPartitions partitions_;
};

}  // namespace ranklab
