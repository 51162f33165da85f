// Tiny training runs with checkpoints, given by their settings: each step's loss, and the final state.
#pragma once
#include <gtest/gtest.h>

#include <bit>
#include <string>
#include <utility>
#include <vector>

#include "backends/cpu_sim/thread_world.h"
#include "core/checkpoint/checkpoint_diff.h"
#include "core/checkpoint/run_folder.h"
#include "core/config/settings/sources.h"
#include "core/runtime/engine.h"
#include "tests/cli/run_program.h"

namespace ranklab::checkpoint_runs {

using Settings = std::vector<std::pair<std::string, std::string>>;  // key, text

inline Settings operator+(Settings a, const Settings& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

inline const Settings kTinyRun = {
    {"train.train_iters", "6"}, {"train.global_batch_size", "8"}, {"data.mock", "true"}, {"data.eval_interval", "0"},
    {"model.seq_length", "16"}, {"trace.enabled", "false"},       {"sample.tokens", "0"}};
// Rows of the embedding that tp does not divide: padding.
inline const Settings kDense = {{"model.num_layers", "4"},       {"model.hidden_size", "32"},
                                {"model.ffn_hidden_size", "48"}, {"model.num_attention_heads", "4"},
                                {"model.vocab_size", "259"},     {"model.tie_embeddings", "true"}};
inline const Settings kOne = kTinyRun + kDense + Settings{{"parallel.world_size", "1"}};
inline const Settings kMoe = {{"model.preset", "deepseek_v3_tiny"}};

struct RunRecord : public Hook {
  std::vector<StepMetrics> steps = {};
  std::vector<double> validations = {};
  std::vector<CheckpointNote> notes = {};
  std::vector<RankTrace> traces = {};
  std::string loaded = {};
  int64_t first_step = 0;

  void on_train_begin(const RunPlan&, const TrainInfo& info) override {
    loaded = info.loaded;
    first_step = info.first_step;
  }
  void on_step_end(const StepMetrics& metrics) override { steps.push_back(metrics); }
  void on_validation(int64_t, double loss) override { validations.push_back(loss); }
  void on_checkpoint(const CheckpointNote& note) override { notes.push_back(note); }
  void on_traces(const TracePiece& all) override { traces = *all; }
};

inline RunPlan plan_of(const Settings& settings) {
  std::vector<ConfigSetting> all;
  for (const auto& [key, text] : settings) all.push_back({.key = key, .text = text, .origin = "test"});
  TrainConfig config = merge_config(TrainConfig{}, all).config;
  config.virtual_time = false;
  return resolve(config);
}

// Stops after the step before `stop_at`, as Ctrl-C does; -1: never. Throws what the run throws.
inline std::shared_ptr<RunRecord> train(const RunPlan& plan, int64_t stop_at = -1) {
  const auto record = std::make_shared<RunRecord>();
  const std::shared_ptr<World> world = make_thread_world({.size = plan.mesh.world_size()});
  RuntimeEngine engine(default_components(world, plan), plan);
  engine.add_hook(record);
  engine.set_stop_request(
      [&] { return static_cast<int64_t>(record->steps.size()) + record->first_step + 1 == stop_at; });
  engine.fit();
  return record;
}
inline std::shared_ptr<RunRecord> train(const Settings& settings, int64_t stop_at = -1) {
  return train(plan_of(settings), stop_at);
}

inline Settings saving(const std::string& folder, int64_t interval = 0) {
  return {{"checkpoint.save", folder}, {"checkpoint.save_interval", std::to_string(interval)}};
}
inline Settings loading(const std::string& what) { return {{"checkpoint.load", what}}; }

// "" when both hold the same state of the same model, bit for bit.
inline std::string state_difference(const std::string& a, const std::string& b) {
  const CheckpointDifference diff = diff_checkpoints(Checkpoint(checkpoint_named(a)), Checkpoint(checkpoint_named(b)));
  if (diff.same()) return diff.same_tensors == 0 ? "no tensors" : "";
  if (!diff.progress.empty()) return diff.progress[0];
  return diff.tensors[0].name + ", " + std::to_string(diff.tensors[0].differing) + " elements, and " +
         std::to_string(diff.tensors.size() - 1) + " tensors more";
}

// The losses and norms of steps, as bits.
inline std::vector<std::pair<uint64_t, uint64_t>> curve(const RunRecord& record) {
  std::vector<std::pair<uint64_t, uint64_t>> bits;
  for (const StepMetrics& step : record.steps)
    bits.emplace_back(std::bit_cast<uint64_t>(step.loss), std::bit_cast<uint64_t>(step.grad_norm));
  return bits;
}

}  // namespace ranklab::checkpoint_runs
