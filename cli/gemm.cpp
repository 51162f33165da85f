#include "cli/gemm.h"

#include <ATen/ops/full.h>

#include <vector>

#include "core/runtime/gemm_choice.h"

namespace ranklab {
namespace {

// The linear layers of one rank.
std::vector<GemmShape> shapes_of(const RunPlan& plan) {
  const ModelConfig& m = plan.config.model;
  const int64_t tp = plan.mesh.size(Axis::kTp);
  const int64_t tokens = plan.micro_batch_size * m.seq_length;
  const int64_t up = m.activation == ActivationKind::kSwiGlu ? 2 : 1;
  return {{tokens, m.qkv_width() / tp, m.hidden_size, m.num_layers},
          {tokens, m.hidden_size, m.query_width() / tp, m.num_layers},
          {tokens, up * m.ffn_hidden_size / tp, m.hidden_size, m.num_layers},
          {tokens, m.hidden_size, m.ffn_hidden_size / tp, m.num_layers},
          {tokens, (m.vocab_size + tp - 1) / tp, m.hidden_size, 1}};
}

}  // namespace

std::string choose_gemm(const RunPlan& plan) {
  const TrainConfig& c = plan.config;
  if (c.element_dtype() != DType::kFloat32 || c.on_gpu()) return "";
  if (c.gemm != "auto") {
    use_gemm(c.gemm == "onednn" ? GemmLibrary::kOneDnn : GemmLibrary::kMkl);
    return c.gemm == "onednn" ? "oneDNN (--gemm onednn)" : "MKL (--gemm mkl)";
  }
  const GemmChoice choice = measure_gemm(shapes_of(plan));
  use_gemm(choice.library);
  return choice.reason;
}

std::string choose_gemm(const RunPlan& plan, World& world) {
  const TrainConfig& c = plan.config;
  const bool measured = c.gemm == "auto" && c.element_dtype() == DType::kFloat32 && !c.on_gpu();
  if (!measured || world.local_ranks() == world.size()) return choose_gemm(plan);
  const std::string reason = world.has_rank_zero() ? choose_gemm(plan) : "";
  world.run([&](Endpoint& endpoint) {
    const CommunicatorPtr comm = endpoint.communicator(plan.mesh.group(Axis::kWorld, endpoint.global_rank()));
    const at::Tensor choice = at::full({1}, static_cast<int64_t>(gemm_in_use()), at::kLong);
    comm->broadcast(choice, 0);
    use_gemm(static_cast<GemmLibrary>(choice.item<int64_t>()));
  });
  return reason;
}

}  // namespace ranklab
