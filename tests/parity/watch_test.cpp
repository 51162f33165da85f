// --watch: correct trainings of any layout are silent; museum bugs injected into a training are named.
#include "core/parity/watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <set>

#include "core/base/error.h"
#include "core/config/exhibit_config.h"
#include "core/parity/smaller_layouts.h"
#include "core/parity/watch_layer.h"
#include "core/precision/precision_policy.h"
#include "core/runtime/engine.h"
#include "tests/all_cases.h"
#include "tests/parity/world_of.h"
#include "tests/support/small_config.h"

namespace ranklab {
namespace {

using testing::HasSubstr;

struct Watched {
  std::vector<SentinelValue> values;
  std::vector<std::string> alarms;
  TrainResult result;

  std::string all() const {
    std::string text;
    for (const std::string& alarm : alarms) text += alarm + "\n";
    return text;
  }
  // How often it was measured, and the largest.
  std::pair<int, double> measured(const std::string& name) const {
    std::pair<int, double> seen = {0, 0};
    for (const SentinelValue& value : values)
      if (value.name == name) seen = {seen.first + 1, std::max(seen.second, value.value)};
    return seen;
  }
};

class KeepReports final : public Hook {
 public:
  explicit KeepReports(Watched& watched) : watched_(watched) {}
  void on_step_end(const StepMetrics& m) override {
    if (!m.sentinels) return;
    watched_.values.insert(watched_.values.end(), m.sentinels->values.begin(), m.sentinels->values.end());
    for (const SentinelAlarm& alarm : m.sentinels->alarms)
      watched_.alarms.push_back("step " + std::to_string(m.step) + ": " + alarm.text());
  }

 private:
  Watched& watched_;
};

Watched watched(TrainConfig config, const std::function<RuntimeComponents(RuntimeComponents)>& change = {}) {
  config.trace = false;
  if (config.sentinels.parity_interval == 0) config.sentinels.parity_interval = 1;
  const RunPlan plan = resolve(config);
  RuntimeComponents parts = default_components(world_of(plan), plan);
  if (change) parts = change(std::move(parts));
  RuntimeEngine engine(with_parity_watch(std::move(parts)), plan);
  Watched watched;
  engine.add_hook(std::make_shared<KeepReports>(watched));
  watched.result = engine.fit();
  return watched;
}

template <typename Change>
TrainConfig layout(const ParallelDims& dims, const Change& change) {
  TrainConfig c = small_config();
  c.parallel = dims;
  c.train_iters = 4;
  change(c);
  return c;
}

std::vector<TrainConfig> layouts() {
  return {layout({.world = 8, .tp = 2, .pp = 2},
                 [](TrainConfig& c) {
                   c.zero_stage = 2;
                   c.params_dtype = "fp32";
                 }),
          layout({.world = 8, .tp = 2, .cp = 2},
                 [](TrainConfig& c) {
                   c.zero_stage = 3;
                   c.params_dtype = "fp64";
                 }),
          layout({.world = 4, .pp = 4},
                 [](TrainConfig& c) {
                   c.pipeline_schedule = "dualpipe";
                   c.model.dropout = 0.1;
                 }),
          layout({.world = 4, .tp = 2, .pp = 2},
                 [](TrainConfig& c) {
                   c.params_dtype = "fp32";
                   c.bf16 = true;
                   c.recompute_granularity = "full";
                 }),
          layout({.world = 4, .tp = 2, .ep = 4}, [](TrainConfig& c) { c.model.moe.num_experts = 8; }),
          layout({.world = 4, .tp = 2, .cp = 2}, [](TrainConfig& c) {
            c.documents = {.reset_attention_mask = true, .reset_position_ids = true, .eod_token = ' '};
            c.num_microbatches = 2;
          })};
}

TEST(ParityWatch, IsSilentWhereNothingIsWrong) {
  for (const TrainConfig& config : layouts()) {
    SCOPED_TRACE(layout_flags(config));
    const Watched run = watched(config);
    EXPECT_EQ(run.all(), "");
    EXPECT_EQ(run.measured("parity_copies"), (std::pair<int, double>{4, 0}));
    const auto [times, over] = run.measured("parity_layer");
    EXPECT_EQ(times, 4);  // each layer was computed again
    EXPECT_LT(over, 1);
    EXPECT_EQ(over > 0, config.parallel.tp > 1);  // a layer that one rank has whole has the same bits
  }
}

// What a layer does depends on other replicas there.
TEST(ParityWatch, LeavesOutLayersThatOneRankCannotComputeAlone) {
  const Watched run = watched(layout({.world = 2}, [](TrainConfig& c) {
    c.model.moe.num_experts = 8;
    c.model.moe.balancing = LoadBalancing::kGlobalAuxLoss;
    c.model.moe.aux_loss_coeff = 0.1;
  }));
  EXPECT_EQ(run.all(), "");
  EXPECT_EQ(run.measured("parity_copies").first, 4);
  EXPECT_EQ(run.measured("parity_layer").first, 0);
}

TEST(ParityWatch, SaysWhyLayersAreNotComputedAlone) {
  const auto why = [](const auto& change) { return why_not_alone(resolve(layout({.world = 2}, change))); };
  EXPECT_EQ(why([](TrainConfig& c) { c.documents.reset_attention_mask = true; }), "");
  EXPECT_THAT(why([](TrainConfig& c) {
                c.params_dtype = "fp32";
                c.bf16 = true;
                c.precision.recipe = "mxfp8";
              }),
              HasSubstr("scales of a whole tensor"));
  EXPECT_THAT(why([](TrainConfig& c) {
                c.model.moe.num_experts = 8;
                c.model.moe.balancing = LoadBalancing::kGlobalAuxLoss;
                c.model.moe.aux_loss_coeff = 0.1;
              }),
              HasSubstr("the tokens of all replicas"));
  EXPECT_THAT(why([](TrainConfig& c) {
                c.model.hidden_size = 1 << 15;
                c.model.ffn_hidden_size = 1 << 17;
              }),
              HasSubstr("weights, more than one rank is given"));
}

// Data of the program's own, with documents of its own, which say nothing of them beforehand: with one stage they need
// not.
class PackedData final : public DataProvider {
 public:
  explicit PackedData(std::shared_ptr<DataProvider> inner) : inner_(std::move(inner)) {}
  std::unique_ptr<RankData> build_data(const RankContext& ctx, const RunPlan& plan) const override {
    class Packed final : public RankData {
     public:
      Packed(std::unique_ptr<RankData> inner, int64_t dp_rank) : inner_(std::move(inner)), dp_rank_(dp_rank) {}
      Batch train_batch(int64_t step, int64_t microbatch) override {
        Batch batch = inner_->train_batch(step, microbatch);
        auto documents = std::make_shared<Documents>();
        for (int64_t i = 0; i < batch.tokens_BS.size(0); ++i)
          documents->starts.push_back({0, 2 + step + microbatch + 3 * dp_rank_, 11});
        batch.documents = documents;
        return batch;
      }
      bool has_validation() const override { return false; }
      Batch validation_batch(int64_t index, int64_t microbatch) override {
        return inner_->validation_batch(index, microbatch);
      }

     private:
      std::unique_ptr<RankData> inner_;
      int64_t dp_rank_;  // another replica's documents are others
    };
    return std::make_unique<Packed>(inner_->build_data(ctx, plan), ctx.coordinate(Axis::kDp));
  }
  std::string describe() const override { return "packed"; }

 private:
  std::shared_ptr<DataProvider> inner_;
};

TEST(ParityWatch, ReadsDocumentsFromDataOfOnesOwn) {
  TrainConfig config = layout({.world = 4, .tp = 2}, [](TrainConfig& c) { c.num_microbatches = 2; });
  const auto packed = [](RuntimeComponents parts) {
    parts.data_provider = std::make_shared<PackedData>(parts.data_provider);
    return parts;
  };
  const Watched run = watched(config, packed);
  EXPECT_EQ(run.all(), "");
  EXPECT_EQ(run.measured("parity_layer").first, 4);
  EXPECT_LT(run.measured("parity_layer").second, 1);
}

TEST(ParityWatch, DoesNotChangeTheTraining) {
  TrainConfig config = layouts()[4];
  const double with = watched(config).result.last_loss;
  const RunPlan plan = resolve(config);
  EXPECT_EQ(RuntimeEngine(default_components(world_of(plan), plan), plan).fit().last_loss, with);
}

// What it says of each, in the first three steps.
struct Found {
  const char *bug, *row, *tensor, *tells;
};
constexpr Found kFound[] = {
    {"replica-init", "parity_copies", "embedding.weight weight (weights), ranks 2, 3", "copies differ over dp"},
    {"dropout-seed-per-rank", "parity_copies", "embedding output (forward), rank 1", "copies differ over tp"},
    {"rope-local-positions", "parity_layer", "layers.0.attention output (forward", "computed over cp"},
    {"cp-attention-gradient", "parity_layer", "layers.0.attention grad_input (backward", "computed over cp"},
    {"gather-backward-slices", "parity_layer", "layers.0.mlp.router grad_output (backward", "computed over ep"},
    {"norm-unreduced", "parity_copies", "final_norm.weight", "copies differ over tp"},
    {"tied-embedding-unsynced", "parity_copies", "embedding.weight", "copies differ over pp"},
    {"clip-first-tp-rank-only", "parity_copies", "grad_norm clip factor (gradient norm), rank 1",
     "copies differ over tp"},
    {"bias-local-load", "parity_copies", "layers.0.mlp.router.bias buffer (weights)", "copies differ over dp"},
};

TEST(ParityWatch, NamesBugsOfTheMuseumInATraining) {
  for (const Found& found : kFound) {
    SCOPED_TRACE(found.bug);
    TrainConfig config = config_of_flags(exhibit_flags(*find_exhibit(found.bug), ""));
    config.inject = found.bug;
    config.train_iters = 3;
    const Watched run = watched(config);
    EXPECT_THAT(run.alarms, testing::Contains(
                                testing::AllOf(HasSubstr(found.row), HasSubstr(found.tensor), HasSubstr(found.tells))))
        << run.all();
  }
}

// It cannot see fifteen of them: errors that are the same on all ranks and not within a layer, and the hang.
const std::set<std::string> kUnseen = {"init-per-shard",      "sampler-seed-per-rank", "resume-without-sampler",
                                       "scatter-wrong-group", "vocab-padding",         "mean-of-means",
                                       "mtp-loss-over-cp",    "grad-buffer-stale",     "bf16-accumulation",
                                       "norm-averaged",       "expert-grad-times-ep",  "experts-missing-from-norm",
                                       "bf16-no-master",      "zero-padding",          "empty-expert-skips"};

TEST(ParityWatch, SeesTwentyBugsOfTheMuseumAndNoneFalsely) {
  if (!all_cases()) GTEST_SKIP() << "RANKLAB_ALL_CASES=1";
  for (const Exhibit* exhibit : exhibits()) {
    if (exhibit->kind == BugKind::kHang) continue;
    SCOPED_TRACE(exhibit->name);
    const std::string folder = testing::TempDir() + "watch_" + exhibit->name;
    std::filesystem::remove_all(folder);
    if (*exhibit->before != '\0') watched(config_of_flags(flags_before(*exhibit, folder)));
    TrainConfig config = config_of_flags(exhibit_flags(*exhibit, folder));
    config.train_iters = *exhibit->before != '\0' ? config.train_iters : 8;
    EXPECT_EQ(watched(config).all(), "");
    config.inject = exhibit->name;
    EXPECT_EQ(watched(config).alarms.empty(), kUnseen.contains(exhibit->name));
    std::filesystem::remove_all(folder);
  }
}

TEST(ParityWatch, EndsTheRunWhereItIsToldTo) {
  TrainConfig config = layout({.world = 4, .tp = 2, .dp = 2}, [](TrainConfig& c) {
    c.inject = "last-microbatch-local";
    c.num_microbatches = 2;
    c.sentinels.rules = "parity_copies action=stop";
    c.train_iters = 8;
  });
  const Watched run = watched(config);
  EXPECT_THAT(run.result.stopped, HasSubstr("parity_copies"));
  EXPECT_THAT(run.result.stopped, HasSubstr("copies differ over dp"));
  EXPECT_LT(run.result.steps_done, 8);
}

TEST(ParityWatch, ARunThatCannotBeWatchedSaysSo) {
  TrainConfig config = layouts()[0];
  config.sentinels.parity_interval = 2;
  const RunPlan plan = resolve(config);
  EXPECT_THROW(RuntimeEngine(default_components(world_of(plan), plan), plan).fit(), Error);
}

}  // namespace
}  // namespace ranklab
