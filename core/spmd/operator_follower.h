// Derives the types of the results of ATen operators, forward and backward, as they run on the thread on which it was
// created. It uses a callback like the virtual clock's (core/sim/op_observer.h). The result of an operator that is
// composed of others has the type that these gave it. Cost: a look-up for each operand and result. Thread rule: its
// rank's thread; one at a time.
#pragma once
#include <ATen/record_function.h>

#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/spmd/operand_uses.h"
#include "core/spmd/typed_tensors.h"

namespace ranklab {

class OperatorFollower {
 public:
  // Called for operands whose types do not go together, with the fault, the operator's name, and the operands' type and
  // the parameter whose gradient they are (or null).
  using OnFault = std::function<void(const TypeFault&, const char* name, const TypedTensors::Known& operands)>;

  OperatorFollower(TypeRules& rules, TypedTensors& tensors, OnFault on_fault);
  ~OperatorFollower();
  OperatorFollower(const OperatorFollower&) = delete;
  OperatorFollower& operator=(const OperatorFollower&) = delete;

  void set_paused(bool paused) { paused_ = paused; }
  int64_t operators() const { return operators_; }

  void begin(const at::RecordFunction& fn);
  void end(const at::RecordFunction& fn);

 private:
  struct Frame {
    const OperatorRule* rule = nullptr;             // null: the operator is not followed
    std::optional<TypedTensors::Known> known = {};  // derived from the operands
    std::optional<TypeFault> fault = {};
    bool inner = false;     // it ran other operators: those of which it is composed, or some for internal purposes
    bool reported = false;  // the fault of one of these has been reported
  };
  const OperatorRule& lookup(const at::RecordFunction& fn);
  void take_operands(const at::RecordFunction& fn, Frame& frame);
  void give_type(const at::Tensor& result, const Frame& frame);

  TypeRules& rules_;
  TypedTensors& tensors_;
  OnFault on_fault_;
  std::unordered_map<std::string, OperatorRule> known_rules_;
  std::unordered_map<const char*, std::pair<std::string, const OperatorRule*>> by_address_;
  std::vector<Frame> frames_;
  std::vector<SpmdType> operands_, choices_;
  std::vector<OperandUse> uses_;  // of the operands
  bool paused_ = false;
  int64_t operators_ = 0;
  at::CallbackHandle handle_ = 0;
};

}  // namespace ranklab
