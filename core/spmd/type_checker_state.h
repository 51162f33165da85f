// What a TypeChecker knows, for its two sources: type_checker.cpp follows tensors, parameter_types.cpp the gradients of
// parameters on their way to the optimizer.
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
    TensorType forward;
    PartitionId copies = RankPartitions::kApart;  // on other pipeline ranks
    std::optional<TensorType> type = {};
    // Where gradients are reduced after each microbatch: how often, whether none came since, and what the reductions
    // before the latest made of them.
    int reductions = 0;
    bool was_reduced = false;
    std::optional<TensorType> before = {};
    // In the norm: ranks with the same part of which only the first counts, and over which it was summed.
    bool is_counted = false;
    PartitionId once = RankPartitions::kApart, counted = RankPartitions::kApart;
  };
  struct Bucket {
    c10::weak_intrusive_ptr<c10::StorageImpl> alive;
    std::vector<Gradient*> gradients;
    int reduction = 0;  // of those of a step: the one that it was made for
  };

  State(RankPartitions of_mesh, Axis its_replicas, int rank, std::shared_ptr<TypeReport> its_report)
      : rules(std::move(of_mesh)),
        replicas(its_replicas),
        global_rank(rank),
        report(std::move(its_report)),
        follower(rules, tensors, [this](const TypeFault& wrong, const char* name, const TypedTensors::Known& operands) {
          fault(wrong, name, operands.parameter != nullptr ? *operands.parameter : module, operands.type);
        }) {}

  RankPartitions& partitions() { return rules.partitions(); }
  // Null: no parameter of the model, or of its gradient no type is known.
  Gradient* typed(const std::string& parameter) {
    const auto found = gradients.find(parameter);
    return found != gradients.end() && found->second.type ? &found->second : nullptr;
  }
  std::optional<TensorType> type_of(const at::Tensor& tensor) const {
    const std::optional<TypedTensors::Known> known = tensors.find(tensor);
    return known ? std::optional(known->type) : std::nullopt;
  }
  // The result's type, or that of what it was made of, where kernels of our own made it.
  TensorType made_of(const at::Tensor& result, const std::vector<at::Tensor>& from);
  void fault(const TypeFault& wrong, std::string what, const std::string& where, const TensorType& type,
             std::optional<TypePhase> at = {});
  // A collective on a bucket, as a rule of types: on each gradient in it. RETURNS: what it makes of all alike; nothing:
  // it is on no bucket.
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
      const TensorType before = *gradient->type;
      gradient->type = rule(before, wrong);
      if (wrong) fault(*wrong, what, gradient->parameter.name, before, TypePhase::kReduction);
      // Shards of the first reduction hold the sum of all.
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
  Axis replicas;
  int global_rank;
  std::shared_ptr<TypeReport> report;
  TypedTensors tensors;
  std::map<std::string, Gradient> gradients;
  std::vector<Gradient*> made;  // in the order of the model
  std::unordered_map<const c10::StorageImpl*, Gradient*> by_storage;
  std::unordered_map<const c10::StorageImpl*, Bucket> buckets;
  std::string module = "the step";
  TypePhase phase = TypePhase::kForward;
  Axis latest = Axis::kCount;  // of a collective since the last function ended
  int64_t order = 0, arrivals = 0, untyped = 0;
  OperatorFollower follower;
};

}  // namespace ranklab
