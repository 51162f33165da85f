// Writes the tensors of chosen modules: one safetensors file per rank and step, FOLDER/step-3/rank-0.safetensors. For a
// module: its input, output and their gradients per microbatch, "layers.1.attention/output/0"; for a norm that reads
// the residual stream also that, "layers.1.mlp_norm/residual_stream/0". For its parameters: "weight/NAME" before the
// update, and "grad/NAME" as used by the update. The file's metadata give the rank's position in the mesh; under
// "slice/TENSOR" the part of the global tensor that a tensor is; and under "order" the names in the order in which they
// were computed. Thread rule: its rank's thread.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "core/config/dump_choice.h"
#include "core/runtime/components.h"
#include "core/runtime/observe/module_watch.h"

namespace ranklab {

// What a rank writes: tensors by name, and the JSON text of their slices.
struct RankDump {
  std::map<std::string, at::Tensor> tensors;
  std::map<std::string, std::string> slices;
  std::vector<std::string> order;  // names in the order in which they were computed

  void add(const std::string& name, const at::Tensor& tensor, const std::string& slice);
  void add(const std::string& kind, const Parameter& parameter, const at::Tensor& elements, int64_t begin, int64_t end);
};
// The file's path. Throws kIo.
std::string write_rank_dump(const std::string& folder, int64_t step, const RankContext& ctx, const RankDump& dump);
// Everything that the optimizer of this rank owns: weights and moments.
RankDump state_dump(RankOptimizer& optimizer);

class TensorDump final : public ModuleHook, public UpdateWatch {
 public:
  // Throws kInvalidArgument, on all ranks, for a pattern that matches no module or parameter. Collective over `world`.
  TensorDump(const RunPlan& plan, RankContext& ctx, CausalLm& model, std::string folder, Communicator& world);

  // Returns whether the step is dumped on this rank. If so, this object must be among the hooks during the step, and
  // end_step() writes the file.
  bool begin_step(int64_t step);
  void end_step(RankOptimizer& optimizer);

  void before_forward(const std::string& path, ModulePass pass, const at::Tensor& input) override;
  void after_forward(const std::string& path, ModulePass pass, const at::Tensor& output) override;
  void before_backward(const std::string& path, const at::Tensor& grad_output) override;
  void after_backward(const std::string& path, const at::Tensor& grad_input) override;
  void residual_stream(const std::string& path, ModulePass pass, const at::Tensor& sum) override;
  void before_update(const UpdateView& update) override;
  void after_update(const UpdateView&) override {}

 private:
  void begin_run(int64_t first_step);
  bool takes(const std::string& name) const;
  void keep(const std::string& path, ModuleTensor kind, const at::Tensor& tensor);
  std::string slice_of(const at::Tensor& tensor, int microbatch) const;

  const RunPlan& plan_;
  RankContext& ctx_;
  CausalLm& model_;
  std::string folder_;
  std::vector<std::string> patterns_;
  DumpChoice choice_;
  bool begun_ = false;
  int64_t step_ = -1;
  RankDump dump_;
};

}  // namespace ranklab
