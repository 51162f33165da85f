#include "core/config/precision_choice.h"

#include "core/base/error.h"
#include "core/config/linear_modules.h"
#include "core/config/sharding.h"

namespace ranklab {
namespace {

// What simulated ranks alone can do, or only where their tensors are in the host's memory.
void check_on_gpus(const TrainConfig& config, const PrecisionRecipe& recipe) {
  if (!config.on_gpu()) return;
  const std::string where = config.simulated() ? "--device cuda" : "--backend " + config.backend;
  const std::string got = where + ", recipe " + recipe.name;
  RANKLAB_CHECK(
      recipe.linear.sum == SumPrecision::kFp32, ErrorKind::kInvalidArgument, .where = "config",
      .what = "sums of Hopper's tensor cores are emulated, and a GPU's are the hardware's own",
      .got = got + ", --fp8-accumulation " + std::string(name(recipe.linear.sum)),
      .want = std::string(config.simulated() ? "--device cpu" : "--backend cpu_sim") + ", or --fp8-accumulation fp32",
      .fix = "use one of them");
  if (config.simulated()) return;  // codes of tokens and shards are made on the host
  RANKLAB_CHECK(!config.model.moe.enabled() || !recipe.dispatch.quantized(), ErrorKind::kInvalidArgument,
                .where = "config", .what = "tokens travel in few bits between simulated ranks only", .got = got,
                .want = "--backend cpu_sim, or --no-low-precision-dispatch", .fix = "use one of them");
  RANKLAB_CHECK(!recipe.gather.quantized() || !kZeroStages[static_cast<size_t>(resolve_zero_stage(config))].parameters,
                ErrorKind::kInvalidArgument, .where = "config",
                .what = "shards of weights are gathered in few bits by simulated ranks only",
                .got = got + ", --zero-stage 3", .want = "--backend cpu_sim, or --no-fp8-param-gather",
                .fix = "use one of them");
}

}  // namespace

PrecisionSettings settle_precision(TrainConfig& config) {
  take_params_dtype(config);
  PrecisionSettings settings = precision_settings(config);
  check_on_gpus(config, settings.recipe);
  if (!settings.named) return settings;
  if (config.precision.recipe.empty()) config.precision.recipe = settings.recipe.name;
  config.precision.fp8 = config.precision.fp4 = false;
  config.bf16 = settings.recipe.compute == DType::kBFloat16;
  config.precision.fp16 = settings.recipe.compute == DType::kFloat16;
  return settings;
}

std::shared_ptr<const PrecisionPolicy> precision_policy(PrecisionSettings settings, const ModelConfig& model) {
  if (!settings.decides()) return nullptr;
  return std::make_shared<PrecisionPolicy>(std::move(settings.recipe), settings.rules, linear_modules(model));
}

PrecisionPolicy explain_precision(const TrainConfig& config) {
  PrecisionSettings settings = precision_settings(config);
  return PrecisionPolicy(std::move(settings.recipe), settings.rules, linear_modules(config.model));
}

}  // namespace ranklab
