// The state of a TypeChecker, for its two source files: type_checker.cpp follows tensors, parameter_types.cpp follows
// the gradients of parameters on their way to the optimizer.
#pragma once
#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/spmd/operator_follower.h"
#include "core/spmd/type_checker.h"

namespace ranklab {

struct TypeChecker::State {
  struct Gradient {
    TypedParameter parameter;
    SpmdType forward;
    PartitionId copies = RankPartitions::kApart;  // copies of the parameter on other pipeline ranks
    std::optional<SpmdType> type = {};
    // If gradients are reduced after each microbatch: the number of reductions so far, whether the gradient has not
    // been added to since the last one, and the type after the reductions before the last one.
    int reductions = 0;
    bool was_reduced = false;
    std::optional<SpmdType> before = {};
    // In the gradient norm: `once`: ranks with the same part of the gradient, of which only the first counts it;
    // `counted`: the ranks over which the norm was summed.
    bool is_counted = false;
    PartitionId once = RankPartitions::kApart, counted = RankPartitions::kApart;
  };
  struct Bucket {
    c10::weak_intrusive_ptr<c10::StorageImpl> alive;
    std::vector<Gradient*> gradients;
    int reduction = 0;  // index of the step's reduction for which the bucket was made
  };

  State(RankPartitions of_mesh, ReplicaAxes its_replicas, int rank, std::shared_ptr<TypeReport> its_report)
      : rules(std::move(of_mesh)),
        replicas(its_replicas),
        global_rank(rank),
        report(std::move(its_report)),
        follower(rules, tensors, [this](const TypeFault& wrong, const char* name, const TypedTensors::Known& operands) {
          fault(wrong, name, operands.parameter != nullptr ? *operands.parameter : module, operands.type);
        }) {}

  RankPartitions& partitions() { return rules.partitions(); }
  // Null if this is no parameter of the model, or if the type of its gradient is not known.
  Gradient* typed(const std::string& parameter) {
    const auto found = gradients.find(parameter);
    return found != gradients.end() && found->second.type ? &found->second : nullptr;
  }
  std::optional<SpmdType> type_of(const at::Tensor& tensor) const {
    const std::optional<TypedTensors::Known> known = tensors.find(tensor);
    return known ? std::optional(known->type) : std::nullopt;
  }
  // The type of the result, or if a kernel of this program made it, the type derived from the tensors that it was made
  // from.
  SpmdType made_of(const at::Tensor& result, const std::vector<at::Tensor>& from);
  void fault(const TypeFault& wrong, std::string what, const std::string& where, const SpmdType& type,
             std::optional<TypePhase> at = {});
  // Applies the rule of a collective on a bucket to each gradient in the bucket. RETURNS: the change of type that all
  // gradients have in common; nothing if `input` is not a bucket.
  template <typename Rule>
  std::optional<TypeChange> on_bucket(const at::Tensor& input, const at::Tensor& output, const Rule& rule,
                                      const std::string& what) {
    const auto found = buckets.find(input.storage().unsafeGetStorageImpl());
    if (found == buckets.end() || found->second.alive.expired()) return {};
    std::optional<TypeChange> all;
    const std::vector<Gradient*> held = found->second.gradients;
    const int reduction = found->second.reduction;
    for (Gradient* gradient : held) {
      if (!gradient->type) continue;
      gradient->was_reduced = true;
      std::optional<TypeFault> wrong;
      const SpmdType before = *gradient->type;
      gradient->type = rule(before, wrong);
      if (wrong) fault(*wrong, what, gradient->parameter.name, before, TypePhase::kReduction);
      // Shards of the first reduction end up holding the sum of all reductions, so the earlier type changes with this
      // one.
      if (gradient->before && reduction < gradient->reductions) gradient->before = rule(*gradient->before, wrong);
      const TypeChange change = rules.change(before, *gradient->type);
      all = all ? all->common(change) : change;
    }
    if (output.defined()) add_bucket(output, held, reduction);
    return all.value_or(TypeChange());
  }
  void add_bucket(const at::Tensor& flat, std::vector<Gradient*> held, int reduction) {
    buckets.insert_or_assign(flat.storage().unsafeGetStorageImpl(),
                             Bucket{flat.storage().getWeakStorageImpl(), std::move(held), reduction});
  }

  TypeRules rules;
  ReplicaAxes replicas;
  int global_rank;
  std::shared_ptr<TypeReport> report;
  TypedTensors tensors;
  std::map<std::string, Gradient> gradients;
  std::vector<Gradient*> made;  // the parameters in the order in which the model created them
  std::unordered_map<const c10::StorageImpl*, Gradient*> by_storage;
  std::unordered_map<const c10::StorageImpl*, Bucket> buckets;
  std::string module = "the step";
  TypePhase phase = TypePhase::kForward;
  Axis latest = Axis::kCount;  // axis of the latest collective since the last function ended
  int64_t order = 0, arrivals = 0, untyped = 0;
  OperatorFollower follower;
};

}  // namespace ranklab
