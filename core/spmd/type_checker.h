// Follows the types (tensor_type.h) of one rank's tensors through a step: each ATen operator, forward and backward, by
// a callback as the virtual clock's (core/sim/op_observer.h), each collective as it is posted, each autograd function
// with a backward of its own at its ends, and each parameter's gradient to the optimizer. What no rule types is a
// constant, about which nothing is said. The real code runs: on numbers, or on shapes, where a missing reduction is
// named before anything is computed. PyTorch's counterpart is spmd_types. Cost: two look-ups an
// operand. Thread rule: its rank's thread, where it is the TypeWatch while it lives.
#pragma once
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/base/type_change.h"
#include "core/sim/type_watch.h"
#include "core/spmd/tensor_type.h"
#include "core/spmd/type_report.h"

namespace ranklab {

// What the checker knows of a parameter beforehand.
struct TypedParameter {
  std::string name;
  at::Tensor data;
  bool is_expert = false;
  bool split = false;                    // over tp, an expert's over etp
  std::vector<int> pipeline_ranks = {};  // with copies, if there are several
};

class TypeChecker final : public TypeWatch {
 public:
  // `partitions` of the run's mesh.
  TypeChecker(RankPartitions partitions, Axis replicas, int global_rank, std::shared_ptr<TypeReport> report);
  ~TypeChecker() override;
  TypeChecker(const TypeChecker&) = delete;
  TypeChecker& operator=(const TypeChecker&) = delete;

  void add(const TypedParameter& parameter);
  // Where what follows is found.
  void enter(const std::string& module, TypePhase phase);
  // Before the update: each parameter's gradient is whole, whether this rank updates it or not.
  void check_gradients();
  void check_norm();
  // From the gradient norm on operators are not followed, until the update is done.
  void resume();

  TypeChange called(const Call& call, const Group& group) override;
  KeptTypes ran_forward(const std::string& function, const std::vector<at::Tensor>& inputs,
                        const std::vector<at::Tensor>& outputs) override;
  void begin_backward(const KeptTypes& kept, const std::vector<at::Tensor>& grads) override;
  void end_backward(const std::string& function, const KeptTypes& kept, const std::vector<at::Tensor>& grads,
                    const std::vector<at::Tensor>& made) override;
  void is_part(const at::Tensor& tensor, Axis axis) override;
  void is_same_over(const at::Tensor& tensor, std::initializer_list<Axis> axes) override;
  void is_partial_over(const at::Tensor& tensor, Axis axis) override;
  void is_product(const at::Tensor& result, const at::Tensor& operand, const at::Tensor& weight) override;
  void is_made_of(const at::Tensor& result, const at::Tensor& operand) override;
  void is_scattered_sum_of(const at::Tensor& result, const at::Tensor& summand, Axis axis) override;
  void is_contraction(const at::Tensor& result, const at::Tensor& operand, const at::Tensor& weight) override;
  void arrived(const std::string& parameter, const at::Tensor& grad) override;
  void begin_bucket(const at::Tensor& flat, const std::vector<const std::string*>& parameters) override;
  void handed_over(const std::string& parameter, const at::Tensor& grad) override;
  void summed_over_copies(const std::string& parameter) override;
  void counted(const std::string& parameter, bool first_only, Axis axis) override;
  void norm_summed(bool experts, Axis axis) override;
  std::string type_text(const std::string& parameter, bool of_gradient) override;
  void expect_same(const at::Tensor& numbers, std::initializer_list<Axis> axes, const std::string& what) override;

  struct State;

 private:
  PartitionId split_of(const at::Tensor& weight) const;  // kApart: it is whole

  std::unique_ptr<State> state_;
};

}  // namespace ranklab
