// Follows the types (tensor_type.h) of one rank's tensors through a step. It sees each ATen operator, forward and
// backward, by a callback like the virtual clock's (core/sim/op_observer.h), each collective as it is posted, each
// autograd function with its own backward at its begin and end, and each parameter's gradient on its way to the
// optimizer. A tensor that no rule gives a type counts as a constant, and nothing is claimed about it. The real code
// runs, either on numbers or on shapes only (the meta device), where a missing reduction is reported before anything is
// computed. PyTorch's counterpart is spmd_types. Cost: two look-ups per operand. Thread rule: its rank's thread, on
// which it is the TypeWatch as long as it exists.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "core/base/type_change.h"
#include "core/sim/type_watch.h"
#include "core/spmd/tensor_type.h"
#include "core/spmd/type_report.h"

namespace ranklab {

// What the checker needs to know about a parameter in advance.
struct TypedParameter {
  std::string name;
  at::Tensor data;
  bool is_expert = false;
  bool split = false;                    // sharded over tp, or for an expert over etp
  std::vector<int> pipeline_ranks = {};  // the ranks that hold copies, if there are several
};

// The axes whose ranks hold the same parameter and sum its gradient.
struct ReplicaAxes {
  Axis dense = Axis::kDp, expert = Axis::kEdp;
};

class TypeChecker final : public TypeWatch {
 public:
  // `partitions`: of the run's mesh.
  TypeChecker(RankPartitions partitions, ReplicaAxes replicas, int global_rank, std::shared_ptr<TypeReport> report);
  ~TypeChecker() override;
  TypeChecker(const TypeChecker&) = delete;
  TypeChecker& operator=(const TypeChecker&) = delete;

  void add(const TypedParameter& parameter);
  // Sets the module and phase that later findings are attributed to.
  void enter(const std::string& module, TypePhase phase);
  // Call before the update: checks that each parameter's gradient is complete, whether or not this rank updates the
  // parameter.
  void check_gradients();
  void check_norm();
  // Operators are not followed from the gradient norm to the end of the update; resume() follows them again.
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
  PartitionId split_of(const at::Tensor& weight) const;  // kApart: the weight is whole

  std::unique_ptr<State> state_;
};

}  // namespace ranklab
