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

struct SpmdType {
  PartitionId same = RankPartitions::kTogether;
  PartitionId have = RankPartitions::kApart;
  PartitionId need = RankPartitions::kApart;

  bool partial() const { return have != need; }
  bool operator==(const SpmdType&) const = default;
};

// What an operator does with the values of an operand.
enum class OperandUse : uint8_t {
  kCarried,     // moves them, chooses among them or adds them up: a partial sum stays one
  kAdded,       // adds them to the other added operands, and to the product of the multiplied ones
  kMultiplied,  // multiplies them with the other multiplied operands
  kNonlinear,   // applies a function that is not linear in them: also as a divisor, an exponent, a side of a comparison
};

// What is wrong with an operator or collective. The texts are literals.
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

  // The type of the result of an operator on these operands (at least one), given the use of each. Sets `fault` if the
  // operands do not go together.
  SpmdType combined(std::span<const SpmdType> operands, std::span<const OperandUse> uses,
                    std::optional<TypeFault>& fault);
  SpmdType combined(std::span<const SpmdType> operands, OperandUse of_all, std::optional<TypeFault>& fault);
  SpmdType all_reduced(const SpmdType& type, Axis axis, std::optional<TypeFault>& fault);
  SpmdType all_reduced_max(const SpmdType& type, Axis axis, std::optional<TypeFault>& fault);
  SpmdType reduce_scattered(const SpmdType& type, Axis axis, std::optional<TypeFault>& fault);
  SpmdType all_gathered(SpmdType type, Axis axis);  // also of a broadcast
  SpmdType exchanged(SpmdType type, Axis axis);     // of an all_to_all; of a part of the tensor
  SpmdType product(const SpmdType& type, const SpmdType& operand, PartitionId split_of_weight);
  // The type of the gradient of a tensor with the type `forward`, if the gradient computed so far has the type `grad`.
  SpmdType gradient(const SpmdType& forward, const SpmdType& grad);

  // The first axis over which the sum is missing, that is, whose groups are within `need` but not within `have`.
  Axis missing(PartitionId need, PartitionId have, bool of_experts = false);
  // The axis as users set it, if this one is derived from it: tp for the axis of key/value head copies.
  static Axis set_axis(Axis axis);
  // The change over each axis with several ranks. Stages of a pipeline have different tensors, so pp is listed only if
  // the tensor is partial over it.
  TypeChange change(const SpmdType& before, const SpmdType& after);
  // "partial over tp, replicated over cp, varying over dp".
  std::string text(const SpmdType& type);

 private:
  AxisType over(const SpmdType& type, PartitionId groups);
  SpmdType summed(const SpmdType& type, Axis axis, std::optional<TypeFault>& fault);

  RankPartitions partitions_;
};

}  // namespace ranklab
