// The observer that follows the types of a rank's tensors: over which mesh axes a tensor is the same on all ranks,
// varies, or is a partial sum (core/spmd/tensor_type.h). The watch derives most types itself from operators,
// collectives and autograd functions; code reports the rest through this interface, in places where ranks take their
// own part of something. Without a watch, a call costs reading one word. Thread rule: its rank's thread.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "core/base/type_change.h"
#include "core/base/vocabulary.h"

namespace ranklab {

struct Call;   // core/comm/call.h
struct Group;  // core/comm/group.h

// The types of a function's inputs and outputs in forward, kept for its backward.
struct KeptTypes {
  std::vector<uint64_t> inputs, outputs;
  Axis axis = Axis::kCount;  // axis of the collective inside, if there was one
};

class TypeWatch {
 public:
  virtual ~TypeWatch() = default;

  // Called when a collective is posted. RETURNS: how it changes its tensor's type; for several tensors in a bucket, the
  // change that they have in common.
  virtual TypeChange called(const Call& call, const Group& group) = 0;

  // An autograd function with its own backward. Tensors in it that no operator produced are assumed to depend on all
  // its inputs.
  virtual KeptTypes ran_forward(const std::string& function, const std::vector<at::Tensor>& inputs,
                                const std::vector<at::Tensor>& outputs) = 0;
  virtual void begin_backward(const KeptTypes& kept, const std::vector<at::Tensor>& grads) = 0;
  // `made`: the gradients of the inputs that are tensors.
  virtual void end_backward(const std::string& function, const KeptTypes& kept, const std::vector<at::Tensor>& grads,
                            const std::vector<at::Tensor>& made) = 0;

  // The tensor is this rank's part of something of which each rank of the axis has a part.
  virtual void is_part(const at::Tensor& tensor, Axis axis) = 0;
  // The tensor was made outside of the step; it is the same over these axes and varies over all others.
  virtual void is_same_over(const at::Tensor& tensor, std::initializer_list<Axis> axes) = 0;
  // The tensor is this rank's contribution to a sum over the axis.
  virtual void is_partial_over(const at::Tensor& tensor, Axis axis) = 0;
  // The product of an operand and a parameter. It is a partial sum over the axes over which both are split along the
  // contracted dimension.
  virtual void is_product(const at::Tensor& result, const at::Tensor& operand, const at::Tensor& weight) = 0;
  // The result that one of our own kernels computes from the operand; or zeros, to which this rank may add such a
  // result, or nothing.
  virtual void is_made_of(const at::Tensor& result, const at::Tensor& operand) = 0;
  // This rank's part of the sum, over the ranks of the axis, of tensors like `summand`, which were sent with others in
  // one message.
  virtual void is_scattered_sum_of(const at::Tensor& result, const at::Tensor& summand, Axis axis) = 0;
  // What is computed from an operand and the rows or columns of a parameter that this rank has; the sum lacks the other
  // ranks' contributions.
  virtual void is_contraction(const at::Tensor& result, const at::Tensor& operand, const at::Tensor& weight) = 0;

  // The path of a parameter's gradient to the optimizer. A bucket holds the sums of several parameters.
  virtual void arrived(const std::string& parameter, const at::Tensor& grad) = 0;
  virtual void begin_bucket(const at::Tensor& flat, const std::vector<const std::string*>& parameters) = 0;
  virtual void handed_over(const std::string& parameter, const at::Tensor& grad) = 0;
  virtual void summed_over_copies(const std::string& parameter) = 0;

  // The norm by which gradients are clipped. A parameter is counted on every rank, or only on the first rank of an
  // axis.
  virtual void counted(const std::string& parameter, bool first_only, Axis axis) = 0;
  virtual void norm_summed(bool experts, Axis axis) = 0;

  // The type of a parameter, or of its gradient at this moment: "partial over tp, varying over dp"; "" if unknown. May
  // be called from any thread while the rank is held.
  virtual std::string type_text(const std::string& parameter, bool of_gradient) = 0;

  // Numbers that must be the same on all ranks of these axes when `what` is updated with them.
  virtual void expect_same(const at::Tensor& numbers, std::initializer_list<Axis> axes, const std::string& what) = 0;
};

inline thread_local TypeWatch* type_watch_of_thread = nullptr;

// Whether work on a tensor that has no cost can be skipped, because the tensor has no values (as in a plan) and its
// type is not followed.
inline bool only_shapes(const at::Tensor& x) { return type_watch_of_thread == nullptr && x.is_meta(); }

}  // namespace ranklab
