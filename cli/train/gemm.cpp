#include "cli/train/gemm.h"

#include <vector>

#include "core/runtime/gemm_choice.h"
#include "core/sim/aten.h"
#include "core/spec/layer_specs.h"

namespace ranklab {
namespace {

// The shapes of one rank's linear layers.
std::vector<GemmShape> shapes_of(const RunPlan& plan) {
  const ModelConfig& m = plan.config.model;
  const int64_t tp = plan.mesh.size(Axis::kTp);
  const int64_t tokens = plan.micro_batch_size * m.seq_length;
  const int64_t up = m.has_gated_mlp() ? 2 : 1, linear = m.linear_layer_count(), mamba = m.mamba_layer_count();
  const int64_t softmax = m.softmax_layer_count(), mlp = m.layer_count(&ModelConfig::has_feed_forward);
  std::vector<GemmShape> shapes = {{tokens, (m.qkv_width() + m.output_gate_width()) / tp, m.hidden_size, softmax},
                                   {tokens, m.hidden_size, m.query_width() / tp, softmax},
                                   {tokens, up * m.ffn_hidden_size / tp, m.hidden_size, mlp},
                                   {tokens, m.hidden_size, m.ffn_hidden_size / tp, mlp},
                                   {tokens, (m.vocab_size + tp - 1) / tp, m.hidden_size, 1}};
  if (mamba > 0) {
    const MambaSpec spec = mamba_spec(m);
    shapes.push_back({tokens, spec.in.shape[0] / tp, m.hidden_size, mamba});
    shapes.push_back({tokens, m.hidden_size, spec.out.shape[1] / tp, mamba});
  }
  std::erase_if(shapes, [](const GemmShape& shape) { return shape.count == 0; });
  if (linear > 0) {
    const DeltaNetSpec spec = delta_net_spec(m);
    shapes.push_back({tokens, spec.in.shape[0] / tp, m.hidden_size, linear});
    shapes.push_back({tokens, m.hidden_size, m.linear.value_width() / tp, linear});
  }
  return shapes;
}

std::string setting_of(GemmLibrary library) { return library == GemmLibrary::kOneDnn ? "onednn" : "mkl"; }

}  // namespace

std::string choose_gemm(RunPlan& plan) {
  TrainConfig& c = plan.config;
  if (c.element_dtype() != DType::kFloat32 || c.on_gpu()) return "";
  GemmChoice choice;
  if (c.gemm == "auto") choice = usual_gemm();
  if (c.gemm == "fastest") choice = measure_gemm(shapes_of(plan));
  if (c.gemm == "onednn") choice = {GemmLibrary::kOneDnn, "oneDNN (--gemm onednn)"};
  if (c.gemm == "mkl") choice = {GemmLibrary::kMkl, "MKL (--gemm mkl)"};
  use_gemm(choice.library);
  c.gemm = setting_of(choice.library);
  return choice.reason;
}

std::string choose_gemm(RunPlan& plan, World& world) {
  TrainConfig& c = plan.config;
  const bool chosen = (c.gemm == "auto" || c.gemm == "fastest") && c.element_dtype() == DType::kFloat32 && !c.on_gpu();
  if (!chosen || world.local_ranks() == world.size()) return choose_gemm(plan);
  std::string reason = world.has_rank_zero() ? choose_gemm(plan) : "";
  const int64_t without_onednn = onednn_available() ? 0 : 1;
  world.run([&](Endpoint& endpoint) {
    const CommunicatorPtr comm = endpoint.communicator(plan.mesh.group(Axis::kWorld, endpoint.global_rank()));
    const at::Tensor choice = at::full({1}, static_cast<int64_t>(gemm_in_use()), at::kLong);
    comm->broadcast(choice, 0);
    // Hosts may have different processors, so oneDNN is used only if all of them support it.
    const bool all_have_it = comm->all_reduce(at::full({1}, without_onednn, at::kLong)).item<int64_t>() == 0;
    use_gemm(all_have_it ? static_cast<GemmLibrary>(choice.item<int64_t>()) : GemmLibrary::kMkl);
  });
  const bool overruled = world.has_rank_zero() && c.gemm != setting_of(gemm_in_use());
  if (overruled) reason = "MKL: oneDNN does not work on the processor of another host";
  c.gemm = setting_of(gemm_in_use());
  return reason;
}

}  // namespace ranklab
