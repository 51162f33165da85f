#include "core/spmd/type_checker.h"

#include <ATen/record_function.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <unordered_map>
#include <utility>

#include "core/comm/call.h"
#include "core/comm/group.h"
#include "core/spmd/operand_uses.h"
#include "core/spmd/typed_tensors.h"

namespace ranklab {
namespace {

using Known = TypedTensors::Known;
using Types = std::vector<TensorType>;

constexpr uint64_t kNoType = ~uint64_t{0};

uint64_t packed(const TensorType& type) {
  return uint64_t{type.same} | uint64_t{type.have} << 16 | uint64_t{type.need} << 32;
}
TensorType unpacked(uint64_t bits) {
  return {static_cast<PartitionId>(bits), static_cast<PartitionId>(bits >> 16), static_cast<PartitionId>(bits >> 32)};
}

// Calls visit(tensor) for the tensors of an argument or a result.
template <typename Visit>
void each_tensor(const c10::IValue& value, const Visit& visit) {
  if (value.isTensor()) {
    const at::Tensor& tensor = value.toTensor();
    if (tensor.defined()) visit(tensor);
  } else if (value.isTensorList()) {
    for (const at::Tensor& tensor : value.toTensorVector())
      if (tensor.defined()) visit(tensor);
  } else if (value.isList()) {
    for (const c10::IValue& one : value.toListRef()) each_tensor(one, visit);
  }
}

}  // namespace

struct TypeChecker::State {
  struct Gradient {
    TypedParameter parameter;
    TensorType forward;
    PartitionId copies = RankPartitions::kApart;  // on other pipeline ranks
    std::optional<TensorType> type = {};
    // In the norm: ranks with the same part of which only the first counts, and over which it was summed.
    bool is_counted = false;
    PartitionId once = RankPartitions::kApart, counted = RankPartitions::kApart;
  };
  struct Bucket {
    c10::weak_intrusive_ptr<c10::StorageImpl> alive;
    std::vector<Gradient*> gradients;
  };
  struct Frame {
    const OperatorRule* rule = nullptr;  // null: not followed
    std::optional<Known> known;          // of what the operands give
    std::optional<TypeFault> fault;
    bool inner = false;  // it was made of other operators
  };

  State(RankPartitions partitions, Axis its_replicas, int rank, std::shared_ptr<TypeReport> its_report)
      : rules(std::move(partitions)), replicas(its_replicas), global_rank(rank), report(std::move(its_report)) {}

  const OperatorRule& lookup(const at::RecordFunction& fn) {
    const char* const address = fn.name();
    const auto found = by_address.find(address);
    if (found != by_address.end() && std::strcmp(found->second.first.c_str(), address) == 0)
      return *found->second.second;
    const std::string overload = fn.overload_name();
    const OperatorRule* rule =
        &known_rules.try_emplace(std::string(address) + '.' + overload, operator_rule(address, overload)).first->second;
    by_address.insert_or_assign(address, std::pair(std::string(address), rule));
    return *rule;
  }

  void fault(const TypeFault& what, std::string name, const std::string& where, const TensorType& type,
             std::optional<TypePhase> at = {}) {
    report->add({.phase = at.value_or(phase),
                 .order = order++,
                 .rank = global_rank,
                 .module = where,
                 .what = std::move(name),
                 .axis = what.axis,
                 .type = rules.text(type),
                 .got = what.got,
                 .want = what.want,
                 .fix = what.fix});
  }

  std::optional<TensorType> type_of(const at::Tensor& tensor) const {
    const std::optional<Known> known = tensors.find(tensor);
    return known ? std::optional(known->type) : std::nullopt;
  }

  // The result's type, or that of what it was made of, where kernels of our own made it.
  TensorType made_of(const at::Tensor& result, const std::vector<at::Tensor>& from) {
    if (const std::optional<TensorType> own = type_of(result)) return *own;
    Types types = {TensorType{}};
    for (const at::Tensor& tensor : from)
      if (const std::optional<TensorType> type = type_of(tensor)) types.push_back(*type);
    std::optional<TypeFault> wrong;
    return rules.combined(types, OperandUse::kCarried, wrong);
  }

  void begin(const at::RecordFunction& fn) {
    if (paused) {
      frames.emplace_back();
      return;
    }
    const OperatorRule& rule = lookup(fn);
    frames.push_back({.rule = &rule, .known = {}, .fault = {}});
    if (rule.makes_constants) return;
    Frame& frame = frames.back();
    operands.clear();
    const auto inputs = fn.inputs();
    for (size_t i = rule.reads_first ? 0 : 1; i < inputs.size(); ++i)
      each_tensor(inputs[i], [&](const at::Tensor& tensor) {
        const std::optional<Known> known = tensors.find(tensor);
        if (!known) return;
        operands.push_back(known->type);
        if (frame.known && frame.known->parameter == nullptr) frame.known->parameter = known->parameter;
        if (!frame.known) frame.known = known;
      });
    if (operands.size() > 1 || (operands.size() == 1 && operands[0].partial()))
      frame.known->type = rules.combined(operands, rule.use, frame.fault);
  }

  void end(const at::RecordFunction& fn) {
    if (frames.empty()) return;  // the operator that was running when this began
    const Frame frame = frames.back();
    frames.pop_back();
    if (frame.rule == nullptr) return;
    ++operators;
    if (!frames.empty()) frames.back().inner = true;
    if (frame.fault && !frame.inner)
      fault(*frame.fault, fn.name(), frame.known->parameter != nullptr ? *frame.known->parameter : module,
            frame.known->type);
    for (const c10::IValue& value : fn.outputs())
      each_tensor(value, [&](const at::Tensor& tensor) { result(tensor, frame); });
  }

  void result(const at::Tensor& tensor, const Frame& frame) {
    if (frame.rule->makes_constants || (!frame.known && !frame.rule->reads_first)) return tensors.forget(tensor);
    if (!frame.known || (frame.inner && tensors.find(tensor))) return;
    const bool view = tensor.is_view() && !frame.rule->in_place;
    tensors.set(tensor, *frame.known, !view && (frame.rule->in_place || !tensors.find(tensor)));
  }

  void add_bucket(const at::Tensor& flat, std::vector<Gradient*> held) {
    buckets.insert_or_assign(flat.storage().unsafeGetStorageImpl(),
                             Bucket{flat.storage().getWeakStorageImpl(), std::move(held)});
  }

  // A collective on a bucket: on each gradient in it.
  template <typename Rule>
  bool on_bucket(const Call& call, const Rule& rule, const std::string& name) {
    const auto found = buckets.find(call.input.storage().unsafeGetStorageImpl());
    if (found == buckets.end() || found->second.alive.expired()) return false;
    const std::vector<Gradient*> held = found->second.gradients;
    for (Gradient* gradient : held) {
      if (!gradient->type) continue;
      std::optional<TypeFault> wrong;
      const TensorType before = *gradient->type;
      gradient->type = rule(before, wrong);
      if (wrong) fault(*wrong, name, gradient->parameter.name, before, TypePhase::kReduction);
    }
    if (call.output.defined()) add_bucket(call.output, held);
    return true;
  }

  TypeRules rules;
  Axis replicas;
  int global_rank;
  std::shared_ptr<TypeReport> report;
  TypedTensors tensors;
  std::map<std::string, Gradient> gradients;
  std::vector<Gradient*> in_order;  // roughly that of backward: the last made first
  std::unordered_map<const c10::StorageImpl*, Gradient*> by_storage;
  std::unordered_map<const c10::StorageImpl*, Bucket> buckets;
  std::unordered_map<std::string, OperatorRule> known_rules;
  std::unordered_map<const char*, std::pair<std::string, const OperatorRule*>> by_address;
  std::vector<Frame> frames;
  Types operands;
  std::string module = "the step";
  TypePhase phase = TypePhase::kForward;
  bool paused = false;         // operators are not followed: the optimizer's
  Axis latest = Axis::kCount;  // of a collective since the last function ended
  int64_t order = 0, operators = 0, arrivals = 0, untyped = 0;
  at::CallbackHandle handle = 0;
};

namespace {

thread_local TypeChecker::State* t_state = nullptr;

std::unique_ptr<at::ObserverContext> on_start(const at::RecordFunction& fn) {
  if (t_state != nullptr) t_state->begin(fn);
  return nullptr;
}
void on_end(const at::RecordFunction& fn, at::ObserverContext* /*context*/) {
  if (t_state != nullptr) t_state->end(fn);
}

}  // namespace

TypeChecker::TypeChecker(RankPartitions partitions, Axis replicas, int global_rank, std::shared_ptr<TypeReport> report)
    : state_(std::make_unique<State>(std::move(partitions), replicas, global_rank, std::move(report))) {
  t_state = state_.get();
  type_watch_of_thread = this;
  state_->handle = at::addThreadLocalCallback(at::RecordFunctionCallback(&on_start, &on_end)
                                                  .needsInputs(true)
                                                  .needsOutputs(true)
                                                  .scopes({at::RecordScope::FUNCTION}));
}

TypeChecker::~TypeChecker() {
  at::removeCallback(state_->handle);
  t_state = nullptr;
  type_watch_of_thread = nullptr;
  state_->report->count(state_->operators, state_->arrivals, state_->untyped);
}

void TypeChecker::add(const TypedParameter& parameter) {
  RankPartitions& partitions = state_->rules.partitions();
  State::Gradient gradient{.parameter = parameter, .forward = {}};
  if (!parameter.pipeline_ranks.empty()) gradient.copies = partitions.copies(parameter.pipeline_ranks);
  PartitionId same =
      partitions.join(partitions.groups(parameter.is_expert ? Axis::kEdp : state_->replicas), gradient.copies);
  if (!parameter.split) same = partitions.join(same, partitions.groups(parameter.is_expert ? Axis::kEtp : Axis::kTp));
  gradient.forward.same = same;
  state_->tensors.set(parameter.data, {gradient.forward}, true);
  State::Gradient& kept = state_->gradients[parameter.name] = std::move(gradient);
  state_->in_order.insert(state_->in_order.begin(), &kept);
  state_->by_storage[parameter.data.storage().unsafeGetStorageImpl()] = &kept;
}

void TypeChecker::enter(const std::string& module, TypePhase phase) {
  state_->module = module;
  state_->phase = phase;
}

void TypeChecker::resume() { state_->paused = false; }

void TypeChecker::called(const Call& call, const Group& group) {
  if (!call.input.defined()) {
    if (call.output.defined()) state_->tensors.forget(call.output);
    return;
  }
  TypeRules& rules = state_->rules;
  const auto rule = [&](const TensorType& type, std::optional<TypeFault>& wrong) {
    const bool sums = call.op == ReduceOp::kSum || call.op == ReduceOp::kAvg;
    switch (call.verb) {
      case Verb::kAllReduce:
        return sums ? rules.all_reduced(type, group.axis, wrong) : rules.all_reduced_max(type, group.axis, wrong);
      case Verb::kReduceScatter:
        return rules.reduce_scattered(type, group.axis, wrong);
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
  if (state_->on_bucket(call, rule, what) || !call.output.defined()) return;
  const std::optional<Known> known = state_->tensors.find(call.input);
  if (!known) return state_->tensors.forget(call.output);
  std::optional<TypeFault> wrong;
  const TensorType type = rule(known->type, wrong);
  if (wrong) state_->fault(*wrong, what, state_->module, known->type);
  state_->tensors.set(call.output, {type, known->parameter}, true);
}

KeptTypes TypeChecker::ran_forward(const std::string& function, const std::vector<at::Tensor>& inputs,
                                   const std::vector<at::Tensor>& outputs) {
  KeptTypes kept{.inputs = {}, .outputs = {}, .axis = std::exchange(state_->latest, Axis::kCount)};
  Types operands;
  for (const at::Tensor& input : inputs) {
    const std::optional<TensorType> type = state_->type_of(input);
    kept.inputs.push_back(type ? packed(*type) : kNoType);
    if (type) operands.push_back(*type);
  }
  for (const at::Tensor& output : outputs) {
    std::optional<TensorType> type = output.defined() ? state_->type_of(output) : std::nullopt;
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
    const std::optional<TensorType> type = state_->type_of(grads[i]);
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
    const TensorType forward = unpacked(kept.inputs[i]);
    const std::optional<TensorType> own = state_->type_of(made[i]);
    const TensorType type = rules.gradient(forward, own ? *own : rules.combined(operands, OperandUse::kCarried, wrong));
    state_->tensors.set(made[i], {type}, false);
    RankPartitions& partitions = rules.partitions();
    const PartitionId reached = partitions.join(type.have, forward.same);
    if (forward.partial() || partitions.within(type.need, reached)) continue;
    const PartitionId of_call = kept.axis == Axis::kCount ? RankPartitions::kTogether : partitions.groups(kept.axis);
    const bool by_call = partitions.within(of_call, type.need) && !partitions.within(of_call, reached);
    state_->fault({.axis = by_call ? kept.axis : rules.missing(type.need, reached),
                   .got = "a gradient that is still partial reaches a tensor that varies: nobody will add the rest",
                   .want = "the sum over the ranks that used the tensor",
                   .fix = "let backward reduce (reduce_scatter where forward gathered)"},
                  function, state_->module, type);
  }
}

void TypeChecker::is_part(const at::Tensor& tensor, Axis axis) {
  TensorType type = state_->type_of(tensor).value_or(TensorType{});
  state_->tensors.set(tensor, {state_->rules.exchanged(type, axis)}, false);
}

void TypeChecker::is_same_over(const at::Tensor& tensor, std::initializer_list<Axis> axes) {
  RankPartitions& partitions = state_->rules.partitions();
  TensorType type{RankPartitions::kApart};
  for (const Axis axis : axes) type.same = partitions.join(type.same, partitions.groups(axis));
  state_->tensors.set(tensor, {type}, true);
}

void TypeChecker::is_partial_over(const at::Tensor& tensor, Axis axis) {
  RankPartitions& partitions = state_->rules.partitions();
  TensorType type = state_->type_of(tensor).value_or(TensorType{});
  type.same = partitions.meet(type.same, partitions.places(axis));
  type.need = partitions.join(type.need, partitions.groups(axis));
  state_->tensors.set(tensor, {type}, false);
}

void TypeChecker::is_product(const at::Tensor& result, const at::Tensor& operand, const at::Tensor& weight) {
  const std::optional<TensorType> of_operand = state_->type_of(operand);
  if (!of_operand) return;
  const TensorType type = state_->made_of(result, {operand, weight});
  state_->tensors.set(result, {state_->rules.product(type, *of_operand, split_of(weight))}, true);
}

void TypeChecker::is_contraction(const at::Tensor& result, const at::Tensor& operand, const at::Tensor& weight) {
  TensorType type = state_->made_of(result, {operand, weight});
  type.need = state_->rules.partitions().join(type.need, split_of(weight));
  state_->tensors.set(result, {type}, true);
}

PartitionId TypeChecker::split_of(const at::Tensor& weight) const {
  const auto found = state_->by_storage.find(weight.storage().unsafeGetStorageImpl());
  if (found == state_->by_storage.end() || !found->second->parameter.split) return RankPartitions::kApart;
  return state_->rules.partitions().groups(found->second->parameter.is_expert ? Axis::kEtp : Axis::kTp);
}

void TypeChecker::arrived(const std::string& parameter, const at::Tensor& grad) {
  const auto found = state_->gradients.find(parameter);
  if (found == state_->gradients.end()) return;
  ++state_->arrivals;
  State::Gradient& gradient = found->second;
  const std::optional<TensorType> type = state_->type_of(grad);
  if (!type) {
    ++state_->untyped;
    return;
  }
  const TensorType whole = state_->rules.gradient(gradient.forward, *type);
  state_->tensors.set(grad, {whole, &found->first}, false);
  std::optional<TypeFault> wrong;
  const std::vector<TensorType> both = {gradient.type.value_or(whole), whole};
  if (gradient.type && *gradient.type != whole) {
    const TensorType sum = state_->rules.combined(both, OperandUse::kAdded, wrong);
    if (wrong) state_->fault(*wrong, "gradients of microbatches", parameter, whole);
    gradient.type = sum;
  } else {
    gradient.type = whole;
  }
}

void TypeChecker::begin_bucket(const at::Tensor& flat, const std::vector<const std::string*>& parameters) {
  std::vector<State::Gradient*> gradients;
  for (const std::string* parameter : parameters)
    if (const auto found = state_->gradients.find(*parameter); found != state_->gradients.end())
      gradients.push_back(&found->second);
  state_->add_bucket(flat, std::move(gradients));
}

void TypeChecker::handed_over(const std::string& parameter, const at::Tensor& grad) {
  const auto found = state_->gradients.find(parameter);
  if (found != state_->gradients.end() && found->second.type)
    state_->tensors.set(grad, {*found->second.type, &found->first}, false);
}

void TypeChecker::summed_over_copies(const std::string& parameter) {
  const auto found = state_->gradients.find(parameter);
  if (found == state_->gradients.end() || !found->second.type) return;
  RankPartitions& partitions = state_->rules.partitions();
  TensorType& type = *found->second.type;
  type.have = partitions.join(type.have, found->second.copies);
  type.same = partitions.join(type.same, found->second.copies);
}

void TypeChecker::check_gradients() {
  for (const State::Gradient* gradient : state_->in_order) {
    if (!gradient->type || !gradient->type->partial()) continue;
    const Axis axis = state_->rules.missing(gradient->type->need, gradient->type->have, gradient->parameter.is_expert);
    state_->fault({.axis = axis,
                   .got = "the optimizer uses a gradient that is still partial: each rank has its own part of the sum",
                   .want = "one sum over every axis whose ranks hold the parameter and saw different tokens or heads",
                   .fix = "reduce this parameter's gradient over the axis"},
                  "gradient", gradient->parameter.name, *gradient->type, TypePhase::kReduction);
  }
}

void TypeChecker::counted(const std::string& parameter, bool first_only, Axis axis) {
  const auto found = state_->gradients.find(parameter);
  if (found == state_->gradients.end() || !found->second.type) return;
  State::Gradient& gradient = found->second;
  gradient.is_counted = true;
  state_->paused = true;
  if (!first_only) return;
  RankPartitions& partitions = state_->rules.partitions();
  const PartitionId ranks = axis == Axis::kPp ? gradient.copies : partitions.groups(axis);
  if (!partitions.within(ranks, gradient.type->same)) {
    state_->fault({.axis = axis,
                   .got = "the norm counts a gradient on the first rank only, and the others have other parts of it",
                   .want = "each part counted once",
                   .fix = "count it on every rank of the axis"},
                  parameter, "grad_norm", *gradient.type, TypePhase::kNorm);
  }
  gradient.once = partitions.join(gradient.once, ranks);
}

void TypeChecker::norm_summed(bool experts, Axis axis) {
  RankPartitions& partitions = state_->rules.partitions();
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
  RankPartitions& partitions = state_->rules.partitions();
  if (partitions.ranks() == 1) return;
  for (const auto& [parameter, gradient] : state_->gradients) {
    if (!gradient.is_counted) continue;
    const PartitionId reached = partitions.join(
        gradient.counted, partitions.within(gradient.once, gradient.counted) ? gradient.type->same : gradient.once);
    if (reached == RankPartitions::kTogether || partitions.within(RankPartitions::kTogether, reached)) continue;
    state_->fault({.axis = state_->rules.missing(RankPartitions::kTogether, reached, gradient.parameter.is_expert),
                   .got = "each rank of an axis clips by a norm of its own part",
                   .want = "the same norm on all ranks",
                   .fix = "sum the squares over the axis"},
                  parameter, "grad_norm", *gradient.type, TypePhase::kNorm);
  }
}

void TypeChecker::expect_same(const at::Tensor& numbers, std::initializer_list<Axis> axes, const std::string& what) {
  const std::optional<TensorType> type = state_->type_of(numbers);
  if (!type) return;
  RankPartitions& partitions = state_->rules.partitions();
  for (const Axis axis : axes) {
    if (partitions.within(partitions.groups(axis), type->same)) continue;
    state_->fault({.axis = axis,
                   .got = "ranks update what they share by numbers of their own",
                   .want = "the same numbers on all of them",
                   .fix = "reduce the numbers over the axis first"},
                  "update", what, *type, TypePhase::kUpdate);
  }
}

}  // namespace ranklab
