#include "core/config/precision_settings.h"

#include <array>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/config/precision_lists.h"
#include "core/precision/recipe_check.h"
#include "core/precision/recipe_toml.h"

namespace ranklab {
namespace {

[[noreturn]] void refuse_precision(const std::string& what, const std::string& got, const std::string& want,
                                   const std::string& fix = "leave it out for the default") {
  throw Error(ErrorKind::kInvalidArgument, {.where = "config", .what = what, .got = got, .want = want, .fix = fix});
}

std::string text(DType dtype) { return std::string(name(dtype)); }

void check_modes(const TrainConfig& c) {
  const std::array<std::pair<const char*, bool>, 4> modes = {
      {{"--bf16", c.bf16}, {"--fp16", c.precision.fp16}, {"--fp8", c.precision.fp8}, {"--fp4", c.precision.fp4}}};
  std::vector<std::string> on;
  for (const auto& [flag, set] : modes) {
    if (set) on.emplace_back(flag);
  }
  if (on.size() > 1)
    refuse_precision("modes of precision exclude each other", join(on, ", "), "one of --bf16, --fp16, --fp8, --fp4",
                     "leave the others out: FP8 and FP4 recipes define the type of the rest themselves");
  if (!on.empty() && c.params_dtype != "fp32")
    refuse_precision(on[0] + " and --params-dtype ask for different types",
                     on[0] + ", --params-dtype " + c.params_dtype, "one of them", "leave one of them out");
}

// Bits of the narrowest format among the GEMM's operands; 0 if none is quantized.
int narrowest_bits(const LinearPrecision& linear) {
  int bits = 0;
  for (const TensorPrecision* tensor : {&linear.activation, &linear.weight, &linear.gradient}) {
    if (tensor->quantized() && (bits == 0 || tensor->format->bits() < bits)) bits = tensor->format->bits();
  }
  return bits;
}

void check_mode_against(const TrainConfig& c, const PrecisionRecipe& recipe) {
  const int bits = narrowest_bits(recipe.linear);
  const std::string products = bits == 0 ? text(recipe.compute) : strprintf("%d bits", bits);
  const auto require = [&](bool holds, const std::string& flag, const std::string& is) {
    if (!holds)
      refuse_precision("the recipe contradicts " + flag,
                       flag + ", --precision-recipe " + c.precision.recipe + ": " + is, "one of them",
                       "leave " + flag + " out");
  };
  require(!c.bf16 || recipe.compute == DType::kBFloat16, "--bf16", "parameters in " + text(recipe.compute));
  require(!c.precision.fp16 || recipe.compute == DType::kFloat16, "--fp16", "parameters in " + text(recipe.compute));
  require(!c.precision.fp8 || bits == 8, "--fp8", "products in " + products);
  require(!c.precision.fp4 || bits == 4, "--fp4", "products in " + products);
  require(c.params_dtype == "fp32", "--params-dtype " + c.params_dtype, "parameters in " + text(recipe.compute));
}

// The recipe used when neither a mode nor a recipe is named: everything is in the dtype of the parameters.
PrecisionRecipe plain_recipe(const TrainConfig& c) {
  PrecisionRecipe recipe = find_precision_recipe(c.bf16 ? "bf16" : (c.precision.fp16 ? "fp16" : "fp32"));
  if (c.params_dtype != "fp64") return recipe;
  recipe.name = "fp64";
  for (DType* dtype : {&recipe.compute, &recipe.main_params, &recipe.main_grads, &recipe.exp_avg, &recipe.exp_avg_sq})
    *dtype = DType::kFloat64;
  return recipe;
}

void apply_fp8_format(const std::string& format, PrecisionRecipe& recipe) {
  if (format == "auto") return;
  int changed = 0;
  const auto set = [&](TensorPrecision& tensor, const NumberFormat* to) {
    if (!tensor.quantized() || tensor.format->bits() != 8) return;
    tensor.format = to;
    ++changed;
  };
  set(recipe.linear.activation, e4m3());
  set(recipe.linear.weight, e4m3());
  set(recipe.linear.gradient, format == "hybrid" ? e5m2() : e4m3());
  if (changed == 0)
    refuse_precision("--fp8-format applies to products in FP8", "--fp8-format " + format + ", recipe " + recipe.name,
                     "--fp8, or a recipe with FP8", "leave it out");
}

void apply_block_size(int64_t block, PrecisionRecipe& recipe) {
  constexpr int64_t kLargest = 1 << 20;
  if (block < 0 || block > kLargest)
    refuse_precision("--quantization-block-size is out of range", std::to_string(block),
                     "1 to " + std::to_string(kLargest) + " (0: the recipe's)");
  if (block == 0) return;
  int changed = 0;
  LinearPrecision& linear = recipe.linear;
  for (TensorPrecision* tensor :
       {&linear.activation, &linear.weight, &linear.gradient, &recipe.dispatch, &recipe.gather}) {
    if (!tensor->quantized() || tensor->block == 0) continue;
    tensor->block = block;
    ++changed;
  }
  if (changed == 0)
    refuse_precision("--quantization-block-size applies to tiles and blocks, and the recipe has none",
                     "--quantization-block-size " + std::to_string(block) + ", recipe " + recipe.name,
                     "a recipe with tiles or blocks (deepseek_v3, mxfp8, nvfp4, mxfp4)", "leave it out");
}

void apply_sums(const std::string& sums, PrecisionRecipe& recipe) {
  if (sums == "auto") return;
  const SumPrecision chosen = sums == "fp32"     ? SumPrecision::kFp32
                              : sums == "hopper" ? SumPrecision::kHopper
                                                 : SumPrecision::kHopperPromoted;
  if (!recipe.linear.quantized() || (chosen != SumPrecision::kFp32 && !all_fp8(recipe.linear)))
    refuse_precision("--fp8-accumulation applies to products with both operands in FP8",
                     "--fp8-accumulation " + sums + ", recipe " + recipe.name,
                     "--fp8, or a recipe with FP8 for all three tensors", "leave it out");
  recipe.linear.sum = chosen;
}

void apply_state_types(const PrecisionConfig& p, PrecisionRecipe& recipe) {
  const auto set = [](const std::string& asked, DType& dtype) {
    if (asked != "auto") dtype = parse_dtype(asked);
  };
  set(p.main_params_dtype, recipe.main_params);
  set(p.main_grads_dtype, recipe.main_grads);
  set(p.exp_avg_dtype, recipe.exp_avg);
  set(p.exp_avg_sq_dtype, recipe.exp_avg_sq);
}

// The format of quantized messages. Scales travel with the data, so a tensor scale becomes one scale per row (a rank
// sends only a part of the tensor), and delayed scaling is not used.
TensorPrecision to_send(TensorPrecision tensor) {
  if (tensor.granularity == Granularity::kTensor) tensor.granularity = Granularity::kRow;
  if (tensor.scale == ScaleRule::kDelayedFp32) tensor.scale = ScaleRule::kFp32;
  tensor.rounding = Rounding::kNearest;
  return tensor;
}

// Tokens are rounded to values that are exact in their own dtype.
TensorPrecision to_dispatch(TensorPrecision tensor) {
  tensor = to_send(tensor);
  if (tensor.scale == ScaleRule::kFp32) tensor.scale = ScaleRule::kPowerOfTwo;
  if (tensor.scale == ScaleRule::kE4M3) tensor.scale = ScaleRule::kE8M0Up;
  return tensor;
}

void apply_wire(const char* flag, std::optional<bool> asked, const TensorPrecision& product,
                const TensorPrecision& sent, TensorPrecision& wire, const std::string& recipe) {
  if (!asked) return;
  if (!*asked) {
    wire = {};
  } else if (!wire.quantized()) {
    if (!product.quantized())
      refuse_precision(std::string(flag) + " sends numbers in the recipe's format, and it has none",
                       std::string(flag) + ", recipe " + recipe, "--fp8, --fp4 or a recipe with formats",
                       "leave it out");
    wire = sent;
  }
}

void apply_flags(const TrainConfig& c, PrecisionRecipe& recipe) {
  const PrecisionConfig& p = c.precision;
  apply_fp8_format(p.fp8_format, recipe);
  apply_block_size(p.block_size, recipe);
  apply_sums(p.sums, recipe);
  apply_state_types(p, recipe);
  if (p.dispatch.value_or(false) && !c.model.moe.enabled())
    refuse_precision("--low-precision-dispatch applies to tokens sent to experts, and this model has no experts",
                     "--low-precision-dispatch, --num-experts 0", "a preset with experts (deepseek_v3_tiny)",
                     "leave it out");
  apply_wire("--low-precision-dispatch", p.dispatch, recipe.linear.activation, to_dispatch(recipe.linear.activation),
             recipe.dispatch, recipe.name);
  apply_wire("--fp8-param-gather", p.param_gather, recipe.linear.weight, to_send(recipe.linear.weight), recipe.gather,
             recipe.name);
  if (recipe.linear.quantized()) check_recipe(recipe, "config");
}

PrecisionRules read_rules(const PrecisionConfig& p, const PrecisionRecipe& recipe) {
  PrecisionRules rules{.include = parse_list("--low-precision-include", p.include),
                       .exclude = parse_list("--low-precision-exclude", p.exclude),
                       .compute_rules = parse_typed_list("--module-compute-dtype-rule", p.compute_rules),
                       .compute_overrides = parse_typed_list("--module-compute-dtype-override", p.compute_override)};
  const bool selects = !rules.include.empty() || !rules.exclude.empty();
  if (selects && !recipe.linear.quantized())
    refuse_precision(
        "this chooses what is quantized, but the recipe quantizes nothing",
        (rules.include.empty() ? "--low-precision-exclude " + p.exclude : "--low-precision-include " + p.include) +
            ", recipe " + recipe.name,
        "--fp8, --fp4 or a recipe with formats", "leave it out");
  return rules;
}

void check_numbers(const PrecisionConfig& p) {
  if (p.amax_history_len < 1)
    refuse_precision("--fp8-amax-history-len is out of range", std::to_string(p.amax_history_len), "1 or more");
  if (p.stats_interval < 0)
    refuse_precision("--precision-stats-interval is out of range", std::to_string(p.stats_interval),
                     "0 (none) or more");
}

}  // namespace

void take_params_dtype(TrainConfig& c) {
  const bool is_bf16 = c.params_dtype == "bf16";
  if (!is_bf16 && c.params_dtype != "fp16") return;
  const bool low = c.precision.fp8 || c.precision.fp4;
  if ((is_bf16 ? c.precision.fp16 : c.bf16 || low))
    refuse_precision(
        "a mode and --params-dtype ask for different types",
        std::string(c.bf16 ? "--bf16" : (c.precision.fp16 ? "--fp16" : (c.precision.fp8 ? "--fp8" : "--fp4"))) +
            ", --params-dtype " + c.params_dtype,
        "one of them", "leave one of them out");
  if (!low) (is_bf16 ? c.bf16 : c.precision.fp16) = true;
  c.params_dtype = "fp32";
}

PrecisionSettings precision_settings(const TrainConfig& asked) {
  TrainConfig config = asked;
  take_params_dtype(config);
  const PrecisionConfig& p = config.precision;
  check_numbers(p);
  check_modes(config);
  PrecisionSettings settings;
  settings.named = p.fp8 || p.fp4 || !p.recipe.empty();
  if (!p.recipe.empty()) {
    settings.recipe = load_precision_recipe(p.recipe);
    check_mode_against(config, settings.recipe);
  } else {
    settings.recipe = p.fp8 ? fp8_delayed_recipe() : (p.fp4 ? nvfp4_recipe() : plain_recipe(config));
  }
  apply_flags(config, settings.recipe);
  settings.rules = read_rules(p, settings.recipe);
  return settings;
}

}  // namespace ranklab
