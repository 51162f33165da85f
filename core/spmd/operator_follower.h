// Types the results of ATen operators, forward and backward, as they run on the thread where it lives: by a callback as
// the virtual clock's (core/sim/op_observer.h). An operator that is made of others has the types that those gave. Cost:
// a look-up for each operand and result. Thread rule: its rank's thread; one at a time.
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
  // Called for operands that do not go together: what they are, in which operator, whose gradient (or null).
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
    const OperatorRule* rule = nullptr;             // null: not followed
    std::optional<TypedTensors::Known> known = {};  // of what the operands give
    std::optional<TypeFault> fault = {};
    bool inner = false;  // it ran other operators: those that it is made of, or a few for its own ends
    bool told = false;   // one of these was at fault
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
  std::vector<TensorType> operands_, choices_;
  std::vector<OperandUse> uses_;  // of the operands
  bool paused_ = false;
  int64_t operators_ = 0;
  at::CallbackHandle handle_ = 0;
};

}  // namespace ranklab
