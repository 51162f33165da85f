// Who follows the types of a rank's tensors: over which mesh axes a tensor is the same on all ranks, varies, or is a
// partial sum (core/spmd/tensor_type.h). Most types follow from the operators, collectives and autograd functions that
// the watch sees by itself; code says the rest here, where ranks take their own part of something. Without a watch a
// call costs the reading of a word. Thread rule: its rank's thread.
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
  Axis axis = Axis::kCount;  // of the collective in it, if there was one
};

class TypeWatch {
 public:
  virtual ~TypeWatch() = default;

  // A collective, as it is posted. RETURNS: what it makes of its tensor's type; of several tensors in a bucket, what it
  // makes of all alike.
  virtual TypeChange called(const Call& call, const Group& group) = 0;

  // An autograd function with a backward of its own: what no operator made inside of it depends on all its inputs.
  virtual KeptTypes ran_forward(const std::string& function, const std::vector<at::Tensor>& inputs,
                                const std::vector<at::Tensor>& outputs) = 0;
  virtual void begin_backward(const KeptTypes& kept, const std::vector<at::Tensor>& grads) = 0;
  // `made`: the gradients of the inputs that are tensors.
  virtual void end_backward(const std::string& function, const KeptTypes& kept, const std::vector<at::Tensor>& grads,
                            const std::vector<at::Tensor>& made) = 0;

  // This rank's part of something that the ranks of the axis have parts of.
  virtual void is_part(const at::Tensor& tensor, Axis axis) = 0;
  // Made outside of the step: the same over these axes, and varying over all others.
  virtual void is_same_over(const at::Tensor& tensor, std::initializer_list<Axis> axes) = 0;
  // This rank's summand.
  virtual void is_partial_over(const at::Tensor& tensor, Axis axis) = 0;
  // The product of an operand and a parameter: contracted over what both are split over, it is a partial sum.
  virtual void is_product(const at::Tensor& result, const at::Tensor& operand, const at::Tensor& weight) = 0;
  // What a kernel of our own makes of the operand; or zeros to which this rank may add that, or nothing.
  virtual void is_made_of(const at::Tensor& result, const at::Tensor& operand) = 0;
  // This rank's part of the sum, over the ranks of the axis, of tensors like `summand`: where they travelled together
  // with others in one message.
  virtual void is_scattered_sum_of(const at::Tensor& result, const at::Tensor& summand, Axis axis) = 0;
  // What is made of an operand and the rows or columns that this rank has of a parameter: the other ranks' are missing
  // in the sum.
  virtual void is_contraction(const at::Tensor& result, const at::Tensor& operand, const at::Tensor& weight) = 0;

  // A parameter's gradient, on its way to the optimizer. A bucket holds the sums of several.
  virtual void arrived(const std::string& parameter, const at::Tensor& grad) = 0;
  virtual void begin_bucket(const at::Tensor& flat, const std::vector<const std::string*>& parameters) = 0;
  virtual void handed_over(const std::string& parameter, const at::Tensor& grad) = 0;
  virtual void summed_over_copies(const std::string& parameter) = 0;

  // The norm by which gradients are clipped: a parameter is counted on every rank, or only on the first of an axis.
  virtual void counted(const std::string& parameter, bool first_only, Axis axis) = 0;
  virtual void norm_summed(bool experts, Axis axis) = 0;

  // A parameter's type, or its gradient's as it is now: "partial over tp, varying over dp"; "": not known. From any
  // thread while the rank is held.
  virtual std::string type_text(const std::string& parameter, bool of_gradient) = 0;

  // Numbers that must be the same on all ranks of these axes when `what` is updated with them.
  virtual void expect_same(const at::Tensor& numbers, std::initializer_list<Axis> axes, const std::string& what) = 0;
};

inline thread_local TypeWatch* type_watch_of_thread = nullptr;

// Whether work on a tensor that costs nothing can be left out: it has no numbers (a plan's), and nobody follows its
// type.
inline bool only_shapes(const at::Tensor& x) { return type_watch_of_thread == nullptr && x.is_meta(); }

}  // namespace ranklab
