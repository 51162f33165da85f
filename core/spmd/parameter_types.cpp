// The types of parameters' gradients, from where autograd leaves them, through buckets and reductions, to the norm and
// the optimizer.
#include <algorithm>
#include <utility>

#include "core/spmd/type_checker_state.h"

namespace ranklab {

void TypeChecker::add(const TypedParameter& parameter) {
  RankPartitions& partitions = state_->partitions();
  State::Gradient gradient{.parameter = parameter, .forward = {}};
  if (!parameter.pipeline_ranks.empty()) gradient.copies = partitions.copies(parameter.pipeline_ranks);
  PartitionId same = partitions.join(
      partitions.groups(parameter.is_expert ? state_->replicas.expert : state_->replicas.dense), gradient.copies);
  if (!parameter.split) same = partitions.join(same, partitions.groups(parameter.is_expert ? Axis::kEtp : Axis::kTp));
  gradient.forward.same = same;
  state_->tensors.set(parameter.data, {gradient.forward}, true);
  State::Gradient& kept = state_->gradients[parameter.name] = std::move(gradient);
  state_->made.push_back(&kept);
  state_->by_storage[parameter.data.storage().unsafeGetStorageImpl()] = &kept;
}

void TypeChecker::check_gradients() {
  // Roughly in the order of the backward.
  for (auto one = state_->made.rbegin(); one != state_->made.rend(); ++one) {
    const State::Gradient* gradient = *one;
    if (!gradient->type) continue;
    SpmdType type = *gradient->type, before = gradient->before.value_or(type);
    // If other ranks update a parameter, they also sum its copies.
    before.have = state_->partitions().join(before.have, gradient->copies);
    if (!gradient->is_counted) type.have = state_->partitions().join(type.have, gradient->copies);
    if (before.partial()) type = before;
    if (!type.partial()) continue;
    const Axis axis = state_->rules.missing(type.need, type.have, gradient->parameter.is_expert);
    state_->fault({.axis = axis,
                   .got = "the optimizer uses a gradient that is still partial: each rank has its own part of the sum",
                   .want = "one sum over every axis whose ranks hold the parameter and saw different tokens or heads",
                   .fix = "reduce this parameter's gradient over the axis"},
                  "gradient", gradient->parameter.name, type, TypePhase::kReduction);
  }
}

void TypeChecker::arrived(const std::string& parameter, const at::Tensor& grad) {
  const auto found = state_->gradients.find(parameter);
  if (found == state_->gradients.end()) return;
  ++state_->arrivals;
  State::Gradient& gradient = found->second;
  const std::optional<SpmdType> type = state_->type_of(grad);
  if (!type) {
    ++state_->untyped;
    return;
  }
  const SpmdType whole = state_->rules.gradient(gradient.forward, *type);
  state_->tensors.set(grad, {whole, &found->first}, false);
  if (std::exchange(gradient.was_reduced, false)) gradient.before = std::exchange(gradient.type, std::nullopt);
  std::optional<TypeFault> wrong;
  const std::vector<SpmdType> both = {gradient.type.value_or(whole), whole};
  if (gradient.type && *gradient.type != whole) {
    const SpmdType sum = state_->rules.combined(both, OperandUse::kAdded, wrong);
    if (wrong) state_->fault(*wrong, "gradients of microbatches", parameter, whole);
    gradient.type = sum;
  } else {
    gradient.type = whole;
  }
}

void TypeChecker::begin_bucket(const at::Tensor& flat, const std::vector<const std::string*>& parameters) {
  std::vector<State::Gradient*> gradients;
  int reduction = 0;
  for (const std::string* parameter : parameters) {
    const auto found = state_->gradients.find(*parameter);
    if (found == state_->gradients.end()) continue;
    reduction = std::max(reduction, ++found->second.reductions);
    // A gradient that was not added to since the last reduction is zero in this one.
    if (!found->second.was_reduced) gradients.push_back(&found->second);
  }
  state_->add_bucket(flat, std::move(gradients), reduction);
}

void TypeChecker::handed_over(const std::string& parameter, const at::Tensor& grad) {
  if (const State::Gradient* gradient = state_->typed(parameter))
    state_->tensors.set(grad, {*gradient->type, &gradient->parameter.name}, false);
}

std::string TypeChecker::type_text(const std::string& parameter, bool of_gradient) {
  const auto found = state_->gradients.find(parameter);
  if (found == state_->gradients.end() || (of_gradient && !found->second.type)) return "";
  return state_->rules.text(of_gradient ? *found->second.type : found->second.forward);
}

void TypeChecker::summed_over_copies(const std::string& parameter) {
  State::Gradient* const gradient = state_->typed(parameter);
  if (gradient == nullptr) return;
  RankPartitions& partitions = state_->partitions();
  SpmdType& type = *gradient->type;
  type.have = partitions.join(type.have, gradient->copies);
  type.same = partitions.join(type.same, gradient->copies);
}

void TypeChecker::counted(const std::string& parameter, bool first_only, Axis axis) {
  State::Gradient* const known = state_->typed(parameter);
  if (known == nullptr) return;
  State::Gradient& gradient = *known;
  gradient.is_counted = true;
  state_->follower.set_paused(true);
  if (!first_only) return;
  RankPartitions& partitions = state_->partitions();
  const PartitionId ranks = axis == Axis::kPp ? gradient.copies : partitions.groups(axis);
  if (!partitions.within(ranks, gradient.type->same)) {
    state_->fault(
        {.axis = axis,
         .got = "the norm counts a gradient on the first rank only, and the others have different parts of it",
         .want = "each part counted once",
         .fix = "count it on every rank of the axis"},
        parameter, "grad_norm", *gradient.type, TypePhase::kNorm);
  }
  gradient.once = partitions.join(gradient.once, ranks);
}

void TypeChecker::norm_summed(bool experts, Axis axis) {
  RankPartitions& partitions = state_->partitions();
  const PartitionId ranks = partitions.groups(axis);
  for (auto& [parameter, gradient] : state_->gradients) {
    if (!gradient.is_counted || gradient.parameter.is_expert != experts) continue;
    if (!partitions.within(partitions.meet(ranks, gradient.type->same), gradient.once)) {
      state_->fault({.axis = axis,
                     .got = "the norm counts a gradient several times: on every rank that has the same part",
                     .want = "each part counted once",
                     .fix = "count it on the first rank of the axis"},
                    parameter, "grad_norm", *gradient.type, TypePhase::kNorm);
    }
    gradient.counted = partitions.join(gradient.counted, ranks);
  }
}

void TypeChecker::check_norm() {
  RankPartitions& partitions = state_->partitions();
  if (partitions.ranks() == 1) return;
  for (const auto& [parameter, gradient] : state_->gradients) {
    if (!gradient.is_counted) continue;
    PartitionId reached = partitions.join(
        gradient.counted, partitions.within(gradient.once, gradient.counted) ? gradient.type->same : gradient.once);
    // Each DiLoCo replica clips by a norm of its own.
    if (state_->replicas.dense == Axis::kDpShard)
      reached = partitions.join(reached, partitions.groups(Axis::kDpReplica));
    if (reached == RankPartitions::kTogether || partitions.within(RankPartitions::kTogether, reached)) continue;
    state_->fault({.axis = state_->rules.missing(RankPartitions::kTogether, reached, gradient.parameter.is_expert),
                   .got = "each rank of an axis clips by a norm of its own part",
                   .want = "the same norm on all ranks",
                   .fix = "sum the squares over the axis"},
                  parameter, "grad_norm", *gradient.type, TypePhase::kNorm);
  }
}

}  // namespace ranklab
