#include "cli/bench/bench_precision.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <numeric>

#include "cli/common/json_output.h"
#include "cli/train/gemm.h"
#include "cli/world/make_world.h"
#include "core/base/text.h"
#include "core/runtime/engine.h"
#include "core/sim/memory_scope.h"

namespace ranklab {
namespace {

constexpr size_t kLastSteps = 20;

class LossHook : public Hook {
 public:
  void on_step_end(const StepMetrics& metrics) override { losses_.push_back(metrics.loss); }
  void on_validation(int64_t, double loss) override { validation_ = loss; }
  // Mean of the last steps: one batch alone is noise.
  double training() const {
    const size_t count = std::min(kLastSteps, losses_.size());
    return std::accumulate(losses_.end() - static_cast<std::ptrdiff_t>(count), losses_.end(), 0.0) /
           static_cast<double>(count);
  }
  double validation() const { return validation_; }

 private:
  std::vector<double> losses_;
  double validation_ = 0;
};

struct SeedOutcome {
  double training = 0, validation = 0;
};

SeedOutcome train(TrainConfig config, const std::string& recipe, uint64_t seed) {
  config.seed = seed;
  config.precision.recipe = recipe;
  RunPlan plan = resolve(config);
  choose_gemm(plan);
  RuntimeEngine engine(default_components(make_world(plan.config), plan), plan);
  const auto hook = std::make_shared<LossHook>();
  engine.add_hook(hook);
  engine.fit();
  return {hook->training(), hook->validation()};
}

struct RecipeRow {
  std::string recipe;
  std::vector<SeedOutcome> outcomes;  // one per seed
};

// For the worst seed, relative to the first recipe with the same seed.
double worst(const RecipeRow& row, const RecipeRow& first, double SeedOutcome::*loss) {
  double most = 0;
  for (size_t i = 0; i < row.outcomes.size(); ++i) {
    const double change = row.outcomes[i].*loss / (first.outcomes[i].*loss) - 1;
    if (std::abs(change) >= std::abs(most)) most = change;
  }
  return most;
}

nlohmann::ordered_json as_json(const TrainConfig& config, const std::vector<RecipeRow>& rows) {
  nlohmann::ordered_json json = {
      {"preset", config.preset}, {"steps", config.train_iters}, {"recipes", nlohmann::ordered_json::array()}};
  for (const RecipeRow& row : rows) {
    nlohmann::ordered_json training = nlohmann::ordered_json::array(), validation = training;
    for (const SeedOutcome& one : row.outcomes) {
      training.push_back(one.training);
      validation.push_back(one.validation);
    }
    json["recipes"].push_back({{"name", row.recipe},
                               {"loss", training},
                               {"validation_loss", validation},
                               {"worst_change", worst(row, rows[0], &SeedOutcome::training)},
                               {"worst_validation_change", worst(row, rows[0], &SeedOutcome::validation)}});
  }
  return json;
}

void print_head() {
  std::printf("%-14s  %-28s  %9s  %-28s  %9s\n", "recipe", "loss, last 20 steps, by seed", "worst", "validation loss",
              "worst");
}

void print_row(const RecipeRow& row, const RecipeRow& first) {
  std::string training, validation;
  for (const SeedOutcome& one : row.outcomes) {
    training += strprintf("%-8.4f ", one.training);
    validation += strprintf("%-8.4f ", one.validation);
  }
  std::printf("%-14s  %-28s  %+8.2f%%  %-28s  %+8.2f%%\n", row.recipe.c_str(), training.c_str(),
              100 * worst(row, first, &SeedOutcome::training), validation.c_str(),
              100 * worst(row, first, &SeedOutcome::validation));
}

}  // namespace

int run_bench_precision(const TrainConfig& config, const BenchPrecisionOptions& options) {
  install_booking_allocator();  // as `ranklab train` does
  std::vector<RecipeRow> rows;
  if (!options.json) print_head();
  for (const std::string& recipe : options.recipes) {
    rows.push_back({recipe, {}});
    for (int i = 0; i < options.seeds; ++i) {
      const uint64_t seed = config.seed + static_cast<uint64_t>(i);
      rows.back().outcomes.push_back(train(config, recipe, seed));
      std::fprintf(stderr, "%s, seed %llu: loss %.4f\n", recipe.c_str(), static_cast<unsigned long long>(seed),
                   rows.back().outcomes.back().training);
    }
    if (!options.json) print_row(rows.back(), rows.front());
  }
  if (options.json) std::fputs(json_result(as_json(config, rows)).c_str(), stdout);
  return 0;
}

}  // namespace ranklab
