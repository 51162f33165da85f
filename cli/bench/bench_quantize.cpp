#include "cli/bench/bench_quantize.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/common/json_output.h"
#include "core/base/numbers/philox.h"
#include "core/base/text.h"
#include "core/precision/quantize.h"
#include "core/precision/recipe.h"

namespace ranklab {
namespace {

struct OperandRow {
  std::string recipe, role;
  TensorPrecision precision = {};  // for memcpy: not quantized
  Along along = Along::kColumns;
  double seconds = std::numeric_limits<double>::infinity();  // the best of all repetitions
};

std::string groups_text(const OperandRow& row) {
  const std::string block = std::to_string(row.precision.block);
  const bool columns = row.along == Along::kColumns;
  switch (row.precision.granularity) {
    case Granularity::kTensor:
      return "tensor";
    case Granularity::kRow:
      return columns ? "row" : "column";
    case Granularity::kTile:
      return columns ? "1x" + block : block + "x1";
    case Granularity::kBlock:
      return block + "x" + block;
  }
  return "";
}

// Each layout of a recipe's operands once; both layouts occur because GEMMs sum over columns and over rows.
std::vector<OperandRow> rows_of_recipes() {
  std::vector<OperandRow> rows = {{"memcpy", ""}};
  for (const PrecisionRecipe& recipe : precision_recipes()) {
    const LinearPrecision& linear = recipe.linear;
    const size_t first = rows.size();
    for (const auto& [role, precision] :
         {std::pair{"activation", linear.activation}, {"weight", linear.weight}, {"gradient", linear.gradient}}) {
      if (!precision.quantized()) continue;
      for (const Along along : {Along::kColumns, Along::kRows}) {
        OperandRow row{recipe.name, role, precision, along};
        const auto known =
            std::find_if(rows.begin() + static_cast<std::ptrdiff_t>(first), rows.end(), [&](const OperandRow& other) {
              return other.precision == precision && groups_text(other) == groups_text(row);
            });
        if (known == rows.end()) rows.push_back(std::move(row));
      }
    }
  }
  return rows;
}

class OperandBench {
 public:
  explicit OperandBench(const BenchQuantizeOptions& o)
      : o_(o), x_(static_cast<size_t>(o.rows * o.cols)), out_(x_.size()), numbers_(static_cast<size_t>(o.rows)) {
    RandomStream(1, RandomPurpose::kSample, "bench quantize").fill_normal(0, x_);
    for (size_t row = 0; row < numbers_.size(); ++row) numbers_[row] = row;
  }

  double bytes() const { return static_cast<double>(x_.size() * sizeof(float)); }

  void time(OperandRow& row) {
    const auto begin = std::chrono::steady_clock::now();
    if (row.precision.quantized()) {
      round(row.precision, row.along);
    } else {
      std::memcpy(out_.data(), x_.data(), x_.size() * sizeof(float));
    }
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    row.seconds = std::min(row.seconds, seconds);
  }

 private:
  void round(const TensorPrecision& precision, Along along) {
    const MatrixView view{x_.data(), o_.rows, o_.cols, o_.cols};
    const GroupShape groups = group_shape(precision, along, o_.rows, o_.cols);
    amax_.resize(static_cast<size_t>(groups.grid_rows(o_.rows) * groups.grid_cols(o_.cols)));
    scales_.resize(amax_.size());
    group_amax(view, groups, amax_);
    block_scales(precision, amax_, *std::max_element(amax_.begin(), amax_.end()), scales_);
    const RoundingNoise noise{&stream_, numbers_, 0, o_.cols};
    quantize_dequantize(view, groups, scales_, *precision.format,
                        precision.rounding == Rounding::kStochastic ? &noise : nullptr, out_.data());
  }

  const BenchQuantizeOptions& o_;
  std::vector<float> x_, out_, amax_;
  std::vector<uint64_t> numbers_;
  std::vector<BlockScale> scales_;
  const RandomStream stream_{1, RandomPurpose::kStochasticRounding, "bench quantize"};
};

std::string head(const BenchQuantizeOptions& o) {
  return strprintf("# %ld x %ld fp32 numbers, one thread, best of %d; bytes of the matrix per second\n",
                   static_cast<long>(o.rows), static_cast<long>(o.cols), o.repetitions) +
         strprintf("%-12s %-10s %-6s %-8s %-12s %-10s %10s %12s\n", "recipe", "operand", "format", "groups", "scale",
                   "rounding", "speed", "/ memcpy");
}

std::string line(const OperandRow& row, double bytes, double memcpy_seconds) {
  const TensorPrecision& p = row.precision;
  const bool copy = !p.quantized();
  return strprintf("%-12s %-10s %-6s %-8s %-12s %-10s %5.1f GB/s %10.2f x\n", row.recipe.c_str(), row.role.c_str(),
                   copy ? "" : std::string(p.format->name).c_str(), copy ? "" : groups_text(row).c_str(),
                   copy ? "" : std::string(name(p.scale)).c_str(), copy ? "" : std::string(name(p.rounding)).c_str(),
                   1e-9 * bytes / row.seconds, row.seconds / memcpy_seconds);
}

std::string json_text(const BenchQuantizeOptions& o, const std::vector<OperandRow>& rows, double bytes) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (size_t i = 1; i < rows.size(); ++i) {
    const OperandRow& row = rows[i];
    list.push_back({{"recipe", row.recipe},
                    {"operand", row.role},
                    {"format", row.precision.format->name},
                    {"groups", groups_text(row)},
                    {"scale", name(row.precision.scale)},
                    {"rounding", name(row.precision.rounding)},
                    {"bytes_per_s", bytes / row.seconds},
                    {"times_memcpy", row.seconds / rows[0].seconds}});
  }
  return json_result(
      {{"rows", o.rows}, {"cols", o.cols}, {"memcpy_bytes_per_s", bytes / rows[0].seconds}, {"operands", list}});
}

}  // namespace

int run_bench_quantize(const BenchQuantizeOptions& options) {
  OperandBench bench(options);
  std::vector<OperandRow> rows = rows_of_recipes();
  if (!options.json) std::fputs(head(options).c_str(), stdout);
  for (OperandRow& row : rows) {
    for (int repetition = 0; repetition < options.repetitions; ++repetition) bench.time(row);
    if (!options.json) std::fputs(line(row, bench.bytes(), rows[0].seconds).c_str(), stdout);
  }
  if (options.json) std::fputs(json_text(options, rows, bench.bytes()).c_str(), stdout);
  return 0;
}

}  // namespace ranklab
