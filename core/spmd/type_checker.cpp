#include "core/spmd/type_checker.h"

#include <utility>

#include "core/comm/call.h"
#include "core/comm/group.h"
#include "core/spmd/type_checker_state.h"

namespace ranklab {
namespace {

using Known = TypedTensors::Known;
using Types = std::vector<SpmdType>;

constexpr uint64_t kNoType = ~uint64_t{0};

uint64_t packed(const SpmdType& type) {
  return uint64_t{type.same} | uint64_t{type.have} << 16 | uint64_t{type.need} << 32;
}
SpmdType unpacked(uint64_t bits) {
  return {static_cast<PartitionId>(bits), static_cast<PartitionId>(bits >> 16), static_cast<PartitionId>(bits >> 32)};
}

}  // namespace

SpmdType TypeChecker::State::made_of(const at::Tensor& result, const std::vector<at::Tensor>& from) {
  if (const std::optional<SpmdType> own = type_of(result)) return *own;
  Types types = {SpmdType{}};
  for (const at::Tensor& tensor : from)
    if (const std::optional<SpmdType> type = type_of(tensor)) types.push_back(*type);
  std::optional<TypeFault> wrong;
  return rules.combined(types, OperandUse::kCarried, wrong);
}

void TypeChecker::State::fault(const TypeFault& wrong, std::string what, const std::string& where, const SpmdType& type,
                               std::optional<TypePhase> at) {
  report->add({.phase = at.value_or(phase),
               .order = order++,
               .rank = global_rank,
               .module = where,
               .what = std::move(what),
               .axis = wrong.axis,
               .type = rules.text(type),
               .got = wrong.got,
               .want = wrong.want,
               .fix = wrong.fix});
}

TypeChecker::TypeChecker(RankPartitions partitions, ReplicaAxes replicas, int global_rank,
                         std::shared_ptr<TypeReport> report)
    : state_(std::make_unique<State>(std::move(partitions), replicas, global_rank, std::move(report))) {
  type_watch_of_thread = this;
}

TypeChecker::~TypeChecker() {
  type_watch_of_thread = nullptr;
  state_->report->count(state_->follower.operators(), state_->arrivals, state_->untyped);
}

void TypeChecker::enter(const std::string& module, TypePhase phase) {
  state_->module = module;
  state_->phase = phase;
}

void TypeChecker::resume() { state_->follower.set_paused(false); }

TypeChange TypeChecker::called(const Call& call, const Group& group) {
  if (!call.input.defined()) {
    if (call.output.defined()) state_->tensors.forget(call.output);
    return {};
  }
  TypeRules& rules = state_->rules;
  const auto rule = [&](const SpmdType& type, std::optional<TypeFault>& wrong) {
    // A mean of what all ranks have counts nothing several times.
    const bool sums = call.op == ReduceOp::kSum || (call.op == ReduceOp::kAvg && type.partial());
    switch (call.verb) {
      case Verb::kAllReduce:
        return sums ? rules.all_reduced(type, group.axis, wrong) : rules.all_reduced_max(type, group.axis, wrong);
      case Verb::kReduceScatter:
        return sums ? rules.reduce_scattered(type, group.axis, wrong)
                    : rules.exchanged(rules.all_reduced_max(type, group.axis, wrong), group.axis);
      case Verb::kAllGather:
      case Verb::kBroadcast:
        return rules.all_gathered(type, group.axis);
      case Verb::kAllToAll:
        return rules.exchanged(type, group.axis);
      default:
        return type;
    }
  };
  state_->latest = group.axis;
  const std::string what = std::string(name(call.verb)) + " over " + std::string(name(group.axis));
  if (const std::optional<TypeChange> of_bucket = state_->on_bucket(call.input, call.output, rule, what))
    return *of_bucket;
  const std::optional<Known> known = state_->tensors.find(call.input);
  if (!known && call.output.defined()) state_->tensors.forget(call.output);
  if (!known) return {};
  std::optional<TypeFault> wrong;
  const SpmdType type = rule(known->type, wrong);
  if (wrong) state_->fault(*wrong, what, state_->module, known->type);
  if (call.output.defined()) state_->tensors.set(call.output, {type, known->parameter}, true);
  return rules.change(known->type, type);
}

KeptTypes TypeChecker::ran_forward(const std::string& function, const std::vector<at::Tensor>& inputs,
                                   const std::vector<at::Tensor>& outputs) {
  KeptTypes kept{.inputs = {}, .outputs = {}, .axis = std::exchange(state_->latest, Axis::kCount)};
  Types operands;
  for (const at::Tensor& input : inputs) {
    const std::optional<SpmdType> type = state_->type_of(input);
    kept.inputs.push_back(type ? packed(*type) : kNoType);
    if (type) operands.push_back(*type);
  }
  for (const at::Tensor& output : outputs) {
    std::optional<SpmdType> type = output.defined() ? state_->type_of(output) : std::nullopt;
    if (output.defined() && !type && !operands.empty()) {
      std::optional<TypeFault> wrong;
      type = state_->rules.combined(operands, OperandUse::kNonlinear, wrong);
      if (wrong) state_->fault(*wrong, function, state_->module, *type);
      state_->tensors.set(output, {*type}, true);
    }
    kept.outputs.push_back(type ? packed(*type) : kNoType);
  }
  return kept;
}

void TypeChecker::begin_backward(const KeptTypes& kept, const std::vector<at::Tensor>& grads) {
  for (size_t i = 0; i < grads.size() && i < kept.outputs.size(); ++i) {
    if (!grads[i].defined() || kept.outputs[i] == kNoType) continue;
    const std::optional<SpmdType> type = state_->type_of(grads[i]);
    if (type) state_->tensors.set(grads[i], {state_->rules.gradient(unpacked(kept.outputs[i]), *type)}, false);
  }
}

void TypeChecker::end_backward(const std::string& function, const KeptTypes& kept, const std::vector<at::Tensor>& grads,
                               const std::vector<at::Tensor>& made) {
  TypeRules& rules = state_->rules;
  Types operands;
  for (const at::Tensor& grad : grads)
    if (const auto type = grad.defined() ? state_->type_of(grad) : std::nullopt) operands.push_back(*type);
  for (const uint64_t input : kept.inputs)
    if (input != kNoType) operands.push_back({unpacked(input).same});
  for (size_t i = 0; i < made.size() && i < kept.inputs.size(); ++i) {
    if (!made[i].defined() || kept.inputs[i] == kNoType || operands.empty()) continue;
    std::optional<TypeFault> wrong;
    const SpmdType forward = unpacked(kept.inputs[i]);
    const std::optional<SpmdType> own = state_->type_of(made[i]);
    const SpmdType type = rules.gradient(forward, own ? *own : rules.combined(operands, OperandUse::kCarried, wrong));
    state_->tensors.set(made[i], {type}, false);
    RankPartitions& partitions = rules.partitions();
    const PartitionId reached = partitions.join(type.have, forward.same);
    if (forward.partial() || partitions.within(type.need, reached)) continue;
    const bool calls = kept.axis != Axis::kCount && partitions.groups(kept.axis) != RankPartitions::kApart;
    const bool by_call = calls && partitions.within(partitions.groups(kept.axis), type.need) &&
                         !partitions.within(partitions.groups(kept.axis), reached);
    state_->fault({.axis = by_call ? TypeRules::set_axis(kept.axis) : rules.missing(type.need, reached),
                   .got = "a gradient that is still partial reaches a tensor that varies: nobody will add the rest",
                   .want = "the sum over the ranks that used the tensor",
                   .fix = "let backward reduce (reduce_scatter where forward gathered)"},
                  function, state_->module, type);
  }
}

void TypeChecker::is_part(const at::Tensor& tensor, Axis axis) {
  SpmdType type = state_->type_of(tensor).value_or(SpmdType{});
  state_->tensors.set(tensor, {state_->rules.exchanged(type, axis)}, false);
}

void TypeChecker::is_same_over(const at::Tensor& tensor, std::initializer_list<Axis> axes) {
  RankPartitions& partitions = state_->rules.partitions();
  SpmdType type{RankPartitions::kApart};
  for (const Axis axis : axes) type.same = partitions.join(type.same, partitions.groups(axis));
  state_->tensors.set(tensor, {type}, true);
}

void TypeChecker::is_partial_over(const at::Tensor& tensor, Axis axis) {
  RankPartitions& partitions = state_->rules.partitions();
  SpmdType type = state_->type_of(tensor).value_or(SpmdType{});
  type.same = partitions.meet(type.same, partitions.places(axis));
  type.need = partitions.join(type.need, partitions.groups(axis));
  state_->tensors.set(tensor, {type}, false);
}

void TypeChecker::is_product(const at::Tensor& result, const at::Tensor& operand, const at::Tensor& weight) {
  const std::optional<SpmdType> of_operand = state_->type_of(operand);
  if (!of_operand) return;
  const SpmdType type = state_->made_of(result, {operand, weight});
  state_->tensors.set(result, {state_->rules.product(type, *of_operand, split_of(weight))}, true);
}

void TypeChecker::is_made_of(const at::Tensor& result, const at::Tensor& operand) {
  if (state_->type_of(operand)) state_->tensors.set(result, {state_->made_of(result, {operand})}, true);
}

void TypeChecker::is_scattered_sum_of(const at::Tensor& result, const at::Tensor& summand, Axis axis) {
  const std::optional<SpmdType> type = state_->type_of(summand);
  std::optional<TypeFault> wrong;
  if (type) state_->tensors.set(result, {state_->rules.reduce_scattered(*type, axis, wrong)}, false);
}

void TypeChecker::is_contraction(const at::Tensor& result, const at::Tensor& operand, const at::Tensor& weight) {
  SpmdType type = state_->made_of(result, {operand, weight});
  type.need = state_->rules.partitions().join(type.need, split_of(weight));
  state_->tensors.set(result, {type}, true);
}

PartitionId TypeChecker::split_of(const at::Tensor& weight) const {
  const auto found = state_->by_storage.find(weight.storage().unsafeGetStorageImpl());
  if (found == state_->by_storage.end() || !found->second->parameter.split) return RankPartitions::kApart;
  return state_->rules.partitions().groups(found->second->parameter.is_expert ? Axis::kEtp : Axis::kTp);
}

void TypeChecker::expect_same(const at::Tensor& numbers, std::initializer_list<Axis> axes, const std::string& what) {
  const std::optional<SpmdType> type = state_->type_of(numbers);
  if (!type) return;
  RankPartitions& partitions = state_->rules.partitions();
  for (const Axis axis : axes) {
    if (partitions.within(partitions.groups(axis), type->same)) continue;
    state_->fault({.axis = axis,
                   .got = "ranks update a shared tensor with different numbers",
                   .want = "the same numbers on all of them",
                   .fix = "reduce these numbers over the axis first"},
                  "update", what, *type, TypePhase::kUpdate);
  }
}

}  // namespace ranklab
