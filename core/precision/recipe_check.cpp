#include "core/precision/recipe_check.h"

#include "core/base/error.h"

namespace ranklab {
namespace {

bool is_power_of_two(ScaleRule rule) {
  return rule == ScaleRule::kPowerOfTwo || rule == ScaleRule::kE8M0 || rule == ScaleRule::kE8M0Up;
}

class Checker {
 public:
  explicit Checker(const std::string& where) : where_(where) {}

  void require(bool holds, const std::string& what, const std::string& got, const std::string& want) const {
    RANKLAB_CHECK(holds, ErrorKind::kInvalidArgument, .where = where_, .what = what, .got = got, .want = want,
                  .fix = "correct it there; ranklab precision recipes NAME --toml writes one to start from");
  }

  void tensor(const std::string& role, const TensorPrecision& t) const {
    constexpr int64_t kLargestBlock = 1 << 20;
    if (!t.quantized())
      return require(t == TensorPrecision{}, role + " has no format, and more than that", role, "a format");
    const std::string granularity(name(t.granularity)), scale(name(t.scale));
    require(t.format->special != NumberFormat::Special::kUnsignedNan, role + " is in a format of scales",
            std::string(t.format->name), "a format with a sign");
    const bool blocks = t.granularity == Granularity::kTile || t.granularity == Granularity::kBlock;
    require(blocks ? t.block > 0 && t.block <= kLargestBlock : t.block == 0,
            role + ".block does not go with its granularity",
            "block " + std::to_string(t.block) + ", granularity " + granularity,
            blocks ? "1 or more numbers a block" : "no block: it applies to tiles and blocks");
    require(t.scale != ScaleRule::kDelayedFp32 || t.granularity == Granularity::kTensor,
            role + " has a scale from past steps, which is that of a whole tensor", "granularity " + granularity,
            "granularity tensor, or another scale");
    require(t.scale != ScaleRule::kE4M3 || blocks,
            role + " has E4M3 scales, which stand under that of the whole tensor", "granularity " + granularity,
            "granularity tile or block, or another scale");
  }

  // A tensor that one rank sends: it must be decodable from its own scales.
  void wire(const std::string& role, const TensorPrecision& t) const {
    tensor(role, t);
    require(!t.quantized() || t.scale != ScaleRule::kDelayedFp32, role + " has a scale from past steps",
            "scale " + std::string(name(t.scale)), "a scale of the numbers that are sent");
    require(!t.quantized() || t.rounding == Rounding::kNearest, role + " is rounded stochastically",
            "rounding stochastic", "rounding nearest: what is sent is the same on all ranks");
  }

  void dtype(const std::string& role, DType type) const {
    const bool known = type == DType::kFloat32 || type == DType::kBFloat16 || type == DType::kFloat16;
    require(known, role + " cannot have this type", std::string(name(type)), "fp32, bf16 or fp16");
  }

 private:
  const std::string& where_;
};

}  // namespace

bool all_fp8(const LinearPrecision& linear) {
  for (const TensorPrecision* tensor : {&linear.activation, &linear.weight, &linear.gradient}) {
    if (!tensor->quantized() || tensor->format->bits() != 8) return false;
  }
  return true;
}

void check_recipe(const PrecisionRecipe& recipe, const std::string& where) {
  const Checker check(where);
  const LinearPrecision& linear = recipe.linear;
  check.tensor("activation", linear.activation);
  check.tensor("weight", linear.weight);
  check.tensor("gradient", linear.gradient);
  check.wire("dispatch", recipe.dispatch);
  check.wire("gather", recipe.gather);
  const bool by_token =
      recipe.dispatch.granularity == Granularity::kRow || recipe.dispatch.granularity == Granularity::kTile;
  check.require(!recipe.dispatch.quantized() || by_token, "dispatch has scales of several tokens, which part ways",
                "granularity " + std::string(name(recipe.dispatch.granularity)), "row or tile");
  // Tokens are rounded once and must then be exact in their own type on every hop.
  check.require(!recipe.dispatch.quantized() || is_power_of_two(recipe.dispatch.scale),
                "dispatch has scales that are not powers of two", "scale " + std::string(name(recipe.dispatch.scale)),
                "power_of_two, e8m0 or e8m0_up");
  constexpr int kByte = 8;
  check.require(
      !recipe.gather.quantized() || (recipe.gather.format->bits() == kByte && recipe.gather.scale != ScaleRule::kE4M3),
      "gather sends a byte a number, and scales of the weights alone",
      "format " + std::string(recipe.gather.quantized() ? recipe.gather.format->name : "") + ", scale " +
          std::string(name(recipe.gather.scale)),
      "e4m3 or e5m2, scale fp32, power_of_two, e8m0 or e8m0_up");
  check.require(linear.sum == SumPrecision::kFp32 || all_fp8(linear), "sums in 14 bits are those of FP8 products",
                "sum " + std::string(name(linear.sum)), "sum fp32, or all three tensors in e4m3 or e5m2");
  check.require(!linear.requantize_activation || linear.activation.quantized(),
                "requantize_activation applies to a quantized activation", "activation without a format", "a format");
  check.require(!linear.hadamard || linear.gradient.quantized(), "hadamard applies to quantized gradients",
                "gradient without a format", "a format");
  for (const auto& [role, dtype] : {std::pair{"compute", recipe.compute},
                                    {"main_params", recipe.main_params},
                                    {"main_grads", recipe.main_grads},
                                    {"exp_avg", recipe.exp_avg},
                                    {"exp_avg_sq", recipe.exp_avg_sq}})
    check.dtype(role, dtype);
}

}  // namespace ranklab
