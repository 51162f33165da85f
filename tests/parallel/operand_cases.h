// Operands of every recipe and ways to round them, for tests that hold one place where numbers are rounded to another.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/parallel/quantized/operand_rounding.h"
#include "core/precision/recipe.h"
#include "core/sim/aten.h"

namespace ranklab {

inline at::Tensor operand_sample(int64_t rows, int64_t cols, uint64_t seed) {
  const RandomStream stream(seed, RandomPurpose::kTest, "operand");
  at::Tensor x = at::empty({rows, cols}, at::kFloat);
  stream.fill_normal(0, {x.mutable_data_ptr<float>(), static_cast<size_t>(x.numel())});
  return x * at::exp2(at::arange(cols, at::kFloat).remainder(7) - 3);
}

struct OperandCase {
  std::string name;
  OperandRounding how;
};

// Cases of a matrix [rows, cols] with an even number of columns. `stream` is drawn from where a recipe does.
inline std::vector<OperandCase> operand_cases(int64_t rows, int64_t cols, const RandomStream& stream) {
  std::vector<OperandCase> cases;
  for (const PrecisionRecipe& recipe : precision_recipes()) {
    if (!recipe.linear.quantized()) continue;
    for (const TensorPrecision& p : {recipe.linear.activation, recipe.linear.weight, recipe.linear.gradient}) {
      for (const Along along : {Along::kColumns, Along::kRows}) {
        OperandRounding how{.precision = p, .along = along};
        if (p.rounding == Rounding::kStochastic) how.noise = {.stream = stream, .columns = cols + 3};
        if (p.scale == ScaleRule::kDelayedFp32) how.amax = 3.0F;
        const std::string name = recipe.name + (along == Along::kRows ? ", along rows" : ", along columns");
        cases.push_back({name + ", rows by content", how});
        if (p.granularity == Granularity::kTile || p.granularity == Granularity::kBlock) {
          how.along_columns_first = true;
          cases.push_back({name + ", along columns first", how});
          how.along_columns_first = false;
        }
        how.noise.rows.resize(static_cast<size_t>(how.noise.stream ? rows : 0));
        for (size_t row = 0; row < how.noise.rows.size(); ++row) how.noise.rows[row] = 7 * row + (uint64_t{1} << 33);
        how.col_parts = {{0, cols / 2, 3}, {cols / 2, cols / 2, cols / 2 + 3}};
        cases.push_back({name + ", two parts", how});
      }
    }
  }
  return cases;
}

// The same for kernels that read the rows' numbers on a device.
inline OperandRounding on_device(OperandRounding how, at::Device device) {
  std::vector<int64_t> rows(how.noise.rows.begin(), how.noise.rows.end());
  if (!rows.empty()) how.noise.device_rows = at::tensor(rows, at::kLong).to(device);
  how.noise.rows.clear();
  return how;
}

}  // namespace ranklab
