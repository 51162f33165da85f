// A long run holds no more memory than a short one. (A process also holds freed memory that malloc keeps.)
#include <gtest/gtest.h>

#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "backends/cpu_sim/thread_world.h"
#include "core/base/system.h"
#include "core/runtime/engine.h"
#include "core/runtime/record/trace_file.h"
#include "core/sim/memory_scope.h"
#include "core/spec/presets.h"
#include "core/trace/find_trace.h"

namespace ranklab {
namespace {

// Memory of this process, without pages of files.
int64_t own_kilobytes() { return process_memory_bytes("Anonymous:") / 1024; }

class KilobytesAfter : public Hook {
 public:
  explicit KilobytesAfter(std::vector<int64_t> steps) : steps_(std::move(steps)) {}
  void on_step_end(const StepMetrics& m) override {
    if (seen.size() < steps_.size() && m.step + 1 == steps_[seen.size()]) seen.push_back(own_kilobytes());
  }
  std::vector<int64_t> seen;

 private:
  std::vector<int64_t> steps_;
};

TrainConfig tiny(ParallelDims dims) {
  TrainConfig c;
  c.model = model_preset("gpt_tiny");
  c.model.num_layers = 2;
  c.model.hidden_size = 32;
  c.model.num_attention_heads = 4;
  c.model.seq_length = 32;
  c.parallel = dims;
  c.global_batch_size = 4;
  c.train_iters = 600;
  c.eval_interval = 0;
  c.sample_tokens = 0;
  c.trace = false;
  c.mock_data = true;
  c.gemm = "mkl";
  return c;
}

// Kilobytes that a step added between the 200th and the 600th.
double growth_a_step(const TrainConfig& config, const std::string& traced = {}) {
  install_booking_allocator();
  const RunPlan plan = resolve(config);
  RuntimeEngine engine(default_components(make_thread_world({.size = plan.config.parallel.world}), plan), plan);
  const auto hook = std::make_shared<KilobytesAfter>(std::vector<int64_t>{200, 600});
  engine.add_hook(hook);
  engine.stream_traces();
  if (!traced.empty()) engine.add_hook(std::make_shared<TraceWriterHook>(traced, plan));
  engine.fit();
  EXPECT_EQ(hook->seen.size(), 2u);
  return static_cast<double>(hook->seen.at(1) - hook->seen.at(0)) / 400;
}

// A sanitizer keeps freed memory, and needs more of its own with every thread and allocation.
class MemoryGrowth : public testing::Test {
 protected:
  void SetUp() override {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "a sanitizer's own memory grows";
#endif
  }
};

TEST_F(MemoryGrowth, AStepLeavesNothingBehind) {
  EXPECT_LT(growth_a_step(tiny({.world = 2, .tp = 1, .pp = 2})), 2.5) << "pp 2, KB";
  EXPECT_LT(growth_a_step(tiny({.world = 2, .tp = 2, .pp = 1})), 2.5) << "tp 2, KB";
  TrainConfig documents = tiny({.world = 2, .cp = 2});
  documents.documents = {.reset_attention_mask = true, .eod_token = ' '};
  EXPECT_LT(growth_a_step(documents), 2.5) << "cp 2, a document for each word, KB";
}

// 6 KB of events a step and rank.
TEST_F(MemoryGrowth, ATracedStepLeavesNothingBehindEither) {
  const std::string folder = testing::TempDir() + "/ranklab_traced_growth" + std::to_string(::getpid());
  TrainConfig config = tiny({.world = 4, .tp = 1, .pp = 2});
  config.trace = true;
  config.trace_step_end = config.train_iters;
  EXPECT_LT(growth_a_step(config, folder), 5) << "KB";
  EXPECT_GT(std::filesystem::file_size(trace_path(folder)), 1'000'000u);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace ranklab
