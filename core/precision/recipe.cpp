#include "core/precision/recipe.h"

#include "core/base/named_rows.h"

namespace ranklab {

const NumberFormat* e4m3() {
  static const NumberFormat* const kFormat = &find_number_format("e4m3");
  return kFormat;
}
const NumberFormat* e5m2() {
  static const NumberFormat* const kFormat = &find_number_format("e5m2");
  return kFormat;
}
const NumberFormat* e2m1() {
  static const NumberFormat* const kFormat = &find_number_format("e2m1");
  return kFormat;
}

std::span<const PrecisionRecipe> precision_recipes() {
  static const std::vector<PrecisionRecipe> kRecipes = {
      fp32_recipe(),        bf16_recipe(),        fp16_recipe(),  fp8_delayed_recipe(), fp8_current_recipe(),
      fp8_rowwise_recipe(), deepseek_v3_recipe(), mxfp8_recipe(), nvfp4_recipe(),       mxfp4_recipe(),
  };
  return kRecipes;
}

const PrecisionRecipe& find_precision_recipe(const std::string& name) {
  return named_row(precision_recipes(), name,
                   {.where = "precision", .what = "there is no such recipe", .fix = "write your own as a TOML file"});
}

}  // namespace ranklab
