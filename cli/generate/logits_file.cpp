#include "cli/generate/logits_file.h"

#include "core/checkpoint/safetensors.h"
#include "core/sim/aten.h"
#include "core/sim/op_observer.h"

namespace ranklab {
namespace {

TensorToWrite row(const std::string& name, TensorType type, const at::Tensor& tensor) {
  return {.name = name,
          .type = type,
          .shape = tensor.sizes().vec(),
          .bytes = {static_cast<const std::byte*>(tensor.const_data_ptr()), tensor.nbytes()}};
}

}  // namespace

bool is_logits_file(const std::string& path) {
  const SafetensorsFile file(path);
  return file.tensors().size() == 2 && file.find("tokens") != nullptr && file.find("logits") != nullptr;
}

void write_logits(StepContext& context, const std::vector<int64_t>& tokens, const std::string& path) {
  const at::NoGradGuard no_grad;
  const NoCostScope no_cost;
  const at::Tensor tokens_S = at::tensor(tokens, at::kLong);
  const at::Tensor device_BS = tokens_S.unsqueeze(0).to(context.ctx.device());
  const at::Tensor logits_BSV = run_logits(context, device_BS);
  if (context.ctx.global_rank() != 0) return;
  const bool fp64 = logits_BSV.scalar_type() == at::kDouble;
  const at::Tensor logits_SV = logits_BSV[0].to(at::kCPU, fp64 ? at::kDouble : at::kFloat).contiguous();
  write_safetensors(path,
                    std::vector<TensorToWrite>{row("tokens", TensorType::kI64, tokens_S),
                                               row("logits", fp64 ? TensorType::kF64 : TensorType::kF32, logits_SV)});
}

}  // namespace ranklab
