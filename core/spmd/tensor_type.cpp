#include "core/spmd/tensor_type.h"

#include <algorithm>
#include <array>
#include <vector>

namespace ranklab {
namespace {

// The order in which axes are named: axes that users set come before the axes derived from them.
constexpr std::array kDense = {Axis::kTp,  Axis::kCp,  Axis::kDp,      Axis::kPp,        Axis::kEp,
                               Axis::kEtp, Axis::kEdp, Axis::kDpShard, Axis::kDpReplica, Axis::kWorld};
constexpr std::array kExpert = {Axis::kEp, Axis::kEtp, Axis::kEdp,      Axis::kPp,         Axis::kTp,
                                Axis::kCp, Axis::kDp,  Axis::kEdpShard, Axis::kEdpReplica, Axis::kWorld};

}  // namespace

Axis TypeRules::missing(PartitionId need, PartitionId have, bool of_experts) {
  for (const Axis axis : of_experts ? kExpert : kDense) {
    const PartitionId groups = partitions_.groups(axis);
    if (groups == RankPartitions::kApart) continue;
    if (partitions_.within(groups, need) && !partitions_.within(groups, have)) return axis;
  }
  return Axis::kWorld;
}

SpmdType TypeRules::combined(std::span<const SpmdType> operands, std::span<const OperandUse> uses,
                             std::optional<TypeFault>& fault) {
  SpmdType out = operands.front();
  const SpmdType* partial = nullptr;
  bool nonlinear = false;
  size_t factors = 0;  // number of factors that are partial
  std::optional<SpmdType> product;
  for (size_t i = 0; i < operands.size(); ++i) {
    const SpmdType& operand = operands[i];
    out.same = partitions_.meet(out.same, operand.same);
    const bool multiplied = uses[i] == OperandUse::kMultiplied;
    if (multiplied && product) product->same = partitions_.meet(product->same, operand.same);
    if (multiplied && (!product || operand.partial()))
      product = SpmdType{product ? product->same : operand.same, operand.have, operand.need};
    if (!operand.partial()) continue;
    if (partial == nullptr) partial = &operand;
    nonlinear |= uses[i] == OperandUse::kNonlinear;
    factors += multiplied ? 1 : 0;
  }
  if (partial == nullptr) return {out.same};
  out.have = partial->have;
  out.need = partial->need;
  const auto wrong = [&](const char* got, const char* want, const char* fix) {
    fault = TypeFault{missing(out.need, out.have), got, want, fix};
  };
  if (nonlinear)
    wrong("a partial sum in an operator that is not linear in it", "the sum, or linear operators before it",
          "reduce it before this operator");
  if (factors > 1) wrong("the product of two partial sums", "at most one of them", "reduce one of them first");
  std::vector<SpmdType> summands;
  for (size_t i = 0; i < operands.size(); ++i)
    if (uses[i] == OperandUse::kAdded) summands.push_back(operands[i]);
  if (product && !summands.empty()) summands.push_back(*product);
  // A summand that is still to be summed over some ranks must not meet another that is the same on these ranks.
  const bool again = std::ranges::any_of(summands, [&](const SpmdType& sum) {
    return sum.partial() && std::ranges::any_of(summands, [&](const SpmdType& other) {
             return !partitions_.within(partitions_.meet(other.same, sum.need), sum.have);
           });
  });
  if (again)
    wrong("a partial sum and a complete tensor, added: the later sum would count the complete one on every rank",
          "both partial, or both complete", "reduce the partial one first, or add the other after the reduction");
  return out;
}

SpmdType TypeRules::combined(std::span<const SpmdType> operands, OperandUse of_all, std::optional<TypeFault>& fault) {
  return combined(operands, std::vector<OperandUse>(operands.size(), of_all), fault);
}

SpmdType TypeRules::summed(const SpmdType& type, Axis axis, std::optional<TypeFault>& fault) {
  const PartitionId groups = partitions_.groups(axis);
  SpmdType out = type;
  if (!type.partial() && type.need == RankPartitions::kApart) {
    if (partitions_.within(groups, type.same))
      fault = TypeFault{axis, "a sum of what all its ranks have: it counts the same numbers several times",
                        "a sum of partial or varying tensors", "leave this reduction out"};
    return out;
  }
  if (partitions_.meet(groups, type.have) != RankPartitions::kApart)
    fault = TypeFault{axis, "a second sum over ranks that are already in the sum", "one sum over each axis",
                      "leave one of the two reductions out"};
  else if (!partitions_.within(groups, type.need))
    fault = TypeFault{axis, "a sum over ranks that hold other parts", "a sum over the ranks that have the same part",
                      "reduce over the group whose ranks share the tensor"};
  out.have = partitions_.join(type.have, groups);
  if (!partitions_.within(out.have, out.need)) out.need = partitions_.join(out.need, out.have);
  return out;
}

SpmdType TypeRules::all_reduced(const SpmdType& type, Axis axis, std::optional<TypeFault>& fault) {
  SpmdType out = summed(type, axis, fault);
  out.same = partitions_.join(type.same, partitions_.groups(axis));
  return out;
}

SpmdType TypeRules::all_reduced_max(const SpmdType& type, Axis axis, std::optional<TypeFault>& fault) {
  if (type.partial())
    fault = TypeFault{missing(type.need, type.have), "the maximum of partial sums", "the maximum of the sum",
                      "reduce by a sum first"};
  SpmdType out = type;
  out.same = partitions_.join(type.same, partitions_.groups(axis));
  return out;
}

SpmdType TypeRules::reduce_scattered(const SpmdType& type, Axis axis, std::optional<TypeFault>& fault) {
  SpmdType out = summed(type, axis, fault);
  out.same = partitions_.meet(partitions_.join(type.same, partitions_.groups(axis)), partitions_.places(axis));
  return out;
}

SpmdType TypeRules::all_gathered(SpmdType type, Axis axis) {
  type.same = partitions_.join(type.same, partitions_.groups(axis));
  return type;
}

SpmdType TypeRules::exchanged(SpmdType type, Axis axis) {
  type.same = partitions_.meet(type.same, partitions_.places(axis));
  return type;
}

SpmdType TypeRules::product(const SpmdType& type, const SpmdType& operand, PartitionId split_of_weight) {
  SpmdType out = type;
  // Only a dimension over which both are split is contracted: a matrix that is split along its other dimension gives a
  // part of the result.
  if (split_of_weight == RankPartitions::kApart ||
      partitions_.meet(operand.same, split_of_weight) != RankPartitions::kApart)
    return out;
  out.need = partitions_.join(out.need, split_of_weight);
  return out;
}

SpmdType TypeRules::gradient(const SpmdType& forward, const SpmdType& grad) {
  SpmdType out = grad;
  // If a tensor varies, each rank has another part of it and so of its gradient; the summands of one sum all have the
  // same gradient.
  out.same = partitions_.meet(grad.same, partitions_.join(forward.same, forward.need));
  out.need = partitions_.join(forward.same, grad.need);
  out.have = partitions_.join(partitions_.meet(grad.same, forward.same), grad.have);
  return out;
}

Axis TypeRules::set_axis(Axis axis) {
  switch (axis) {
    case Axis::kKv:
      return Axis::kTp;
    case Axis::kCpHeads:
    case Axis::kCpRing:
      return Axis::kCp;
    case Axis::kDpShard:
    case Axis::kDpReplica:
      return Axis::kDp;
    default:
      return axis;
  }
}

AxisType TypeRules::over(const SpmdType& type, PartitionId groups) {
  if (partitions_.within(groups, type.need) && !partitions_.within(groups, type.have)) return AxisType::kPartial;
  return partitions_.within(groups, type.same) ? AxisType::kReplicated : AxisType::kVarying;
}

TypeChange TypeRules::change(const SpmdType& before, const SpmdType& after) {
  TypeChange out;
  const bool has_experts = partitions_.groups(Axis::kEp) != RankPartitions::kApart;
  for (const Axis axis : TypeChange::kAxes) {
    const PartitionId groups = partitions_.groups(axis);
    // without experts edp equals dp
    if (groups == RankPartitions::kApart || (axis == Axis::kEdp && !has_experts)) continue;
    const AxisType from = over(before, groups), to = over(after, groups);
    if (axis == Axis::kPp && from != AxisType::kPartial && to != AxisType::kPartial) continue;
    out.set(axis, from, to);
  }
  return out;
}

std::string TypeRules::text(const SpmdType& type) {
  const TypeChange types = change(type, type);
  return types.known() ? types.text() : "one rank";
}

}  // namespace ranklab
