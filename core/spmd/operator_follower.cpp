#include "core/spmd/operator_follower.h"

#include <cstring>
#include <memory>

namespace ranklab {
namespace {

thread_local OperatorFollower* t_follower = nullptr;

std::unique_ptr<at::ObserverContext> on_start(const at::RecordFunction& fn) {
  if (t_follower != nullptr) t_follower->begin(fn);
  return nullptr;
}
void on_end(const at::RecordFunction& fn, at::ObserverContext* /*context*/) {
  if (t_follower != nullptr) t_follower->end(fn);
}

// Calls visit(tensor) for the tensors of an argument or a result.
template <typename Visit>
void each_tensor(const c10::IValue& value, const Visit& visit) {
  if (value.isTensor()) {
    const at::Tensor& tensor = value.toTensor();
    if (tensor.defined()) visit(tensor);
  } else if (value.isList()) {
    for (const c10::IValue& one : value.toListRef()) each_tensor(one, visit);
  }
}

}  // namespace

OperatorFollower::OperatorFollower(TypeRules& rules, TypedTensors& tensors, OnFault on_fault)
    : rules_(rules), tensors_(tensors), on_fault_(std::move(on_fault)) {
  t_follower = this;
  handle_ = at::addThreadLocalCallback(at::RecordFunctionCallback(&on_start, &on_end)
                                           .needsInputs(true)
                                           .needsOutputs(true)
                                           .scopes({at::RecordScope::FUNCTION}));
  // Also enables it inside a scope of the observer, which may have disabled it (core/sim/op_observer.cpp).
  at::enableRecordFunction(true);
}

OperatorFollower::~OperatorFollower() {
  at::removeCallback(handle_);
  t_follower = nullptr;
}

const OperatorRule& OperatorFollower::lookup(const at::RecordFunction& fn) {
  const char* const address = fn.name();
  const auto found = by_address_.find(address);
  // Comparing the text detects an address that was reused for another operator.
  if (found != by_address_.end() && std::strcmp(found->second.first.c_str(), address) == 0)
    return *found->second.second;
  const std::string overload = fn.overload_name();
  const OperatorRule* rule =
      &known_rules_.try_emplace(std::string(address) + '.' + overload, operator_rule(address, overload)).first->second;
  by_address_.insert_or_assign(address, std::pair(std::string(address), rule));
  return *rule;
}

// Operands are examined here because they are gone when the operator ends.
void OperatorFollower::begin(const at::RecordFunction& fn) {
  Frame& frame = frames_.emplace_back();
  if (paused_) return;
  frame.rule = &lookup(fn);
  if (!frame.rule->makes_constants) take_operands(fn, frame);
}

// Integer operands select among the others: they are not added to them, but make the result vary where they vary.
void OperatorFollower::take_operands(const at::RecordFunction& fn, Frame& frame) {
  operands_.clear();
  uses_.clear();
  choices_.clear();
  const auto inputs = fn.inputs();
  const size_t end = inputs.size() - (frame.rule->has_out && !inputs.empty() ? 1 : 0);
  for (size_t i = frame.rule->reads_first ? 0 : 1; i < end; ++i)
    each_tensor(inputs[i], [&](const at::Tensor& tensor) {
      const std::optional<TypedTensors::Known> known = tensors_.find(tensor);
      if (!known) return;
      const bool chooses = !at::isFloatingType(tensor.scalar_type());
      (chooses ? choices_ : operands_).push_back(known->type);
      if (!chooses) uses_.push_back(frame.rule->use_of(i));
      if (frame.known && frame.known->parameter == nullptr) frame.known->parameter = known->parameter;
      if (!frame.known) frame.known = known;
    });
  if (!frame.known) return;
  if (operands_.empty()) {
    operands_.swap(choices_);
    uses_.assign(operands_.size(), frame.rule->use_of(0));
  }
  SpmdType& type = frame.known->type;
  type = rules_.combined(operands_, uses_, frame.fault);
  for (const SpmdType& choice : choices_) type.same = rules_.partitions().meet(type.same, choice.same);
}

void OperatorFollower::end(const at::RecordFunction& fn) {
  if (frames_.empty()) return;  // the operator that was running when following began
  Frame frame = std::move(frames_.back());
  frames_.pop_back();
  if (frame.rule == nullptr) return;
  ++operators_;
  if (frame.fault && !std::exchange(frame.reported, true)) on_fault_(*frame.fault, fn.name(), *frame.known);
  if (!frames_.empty()) {
    frames_.back().inner = true;
    frames_.back().reported |= frame.reported;
  }
  for (const c10::IValue& value : fn.outputs())
    each_tensor(value, [&](const at::Tensor& tensor) { give_type(tensor, frame); });
}

void OperatorFollower::give_type(const at::Tensor& result, const Frame& frame) {
  const OperatorRule& rule = *frame.rule;
  if (rule.makes_constants || (!frame.known && !rule.reads_first)) return tensors_.forget(result);
  if (!frame.known || (frame.inner && tensors_.find(result))) return;
  const bool view = result.is_view() && !rule.in_place;
  tensors_.set(result, *frame.known, !view && (rule.in_place || !tensors_.find(result)));
}

}  // namespace ranklab
