// What data-parallel ranks shard, measured in runs: who updates what against the map, bytes of optimizer states and
// gradients against the plan, traffic in units of the parameters.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <mutex>

#include "backends/meta/meta_world.h"
#include "core/config/state_types.h"
#include "core/nn/scalar_type.h"
#include "core/parallel/data/bucket_shard.h"
#include "core/plan/record_step.h"
#include "core/runtime/provide.h"
#include "core/runtime/shapes/zero_map.h"
#include "core/sim/memory_scope.h"
#include "core/spec/presets.h"
#include "core/trace/trace_report.h"
#include "tests/plan/planned_step.h"
#include "tests/runtime/tiny_run.h"

namespace ranklab {
namespace {

TrainConfig zero_config(int world, int stage) {
  TrainConfig c = tiny_config(world, 1);
  c.parallel.pp = 1;
  c.zero_stage = stage;
  c.train_iters = 2;
  c.ddp_bucket_bytes = 9000;
  return c;
}

// "shard=[a:b)" lines of the pieces that each rank's optimizer was really given.
class NotingRuntime : public OptimizerRuntime {
 public:
  explicit NotingRuntime(std::map<int, std::vector<std::string>>& pieces, std::mutex& mutex)
      : pieces_(pieces), mutex_(mutex) {}
  std::unique_ptr<RankOptimizer> initialize(CausalLm& model, RankContext& ctx, const RunPlan& plan) const override {
    const auto make = [](const std::vector<Parameter*>& owned, const RunPlan&) { return make_adamw(owned, {}); };
    auto optimizer = provide_optimizer(make)->initialize(model, ctx, plan);
    const std::lock_guard lock(mutex_);
    for (const OwnedState& piece : optimizer->owned_state()) {
      const Parameter& whole = *piece.parameter;
      EXPECT_EQ(piece.weight.numel(), piece.end - piece.begin);
      if (plan.zero_stage < 3) {  // updated in place
        EXPECT_EQ(piece.weight.storage().data(), whole.data.storage().data());
        EXPECT_EQ(piece.weight.storage_offset() - whole.data.storage_offset(), piece.begin);
      }
      pieces_[ctx.global_rank()].push_back(whole.name + " numel=" + std::to_string(whole.data.numel()) + " shard=[" +
                                           std::to_string(piece.begin) + ":" + std::to_string(piece.end) + ")");
    }
    return optimizer;
  }

 private:
  std::map<int, std::vector<std::string>>& pieces_;
  std::mutex& mutex_;
};

// "[ZeRO Debug][rank=3] param[7] NAME dp numel=... shard=[...) group_size=..." -> rank 3, "NAME numel=... shard=[...)"
std::map<int, std::vector<std::string>> mapped(const RunPlan& plan) {
  std::map<int, std::vector<std::string>> pieces;
  for (const std::string& line : zero_debug_lines(plan, make_meta_world)) {
    const int rank = std::stoi(line.substr(line.find("rank=") + 5));
    const size_t begin = line.find("] ", line.find("param[")) + 2, space = line.find(' ', begin);
    const size_t numel = line.find("numel="), end = line.find(')', numel) + 1;
    pieces[rank].push_back(line.substr(begin, space - begin + 1) + line.substr(numel, end - numel));
  }
  for (auto& [rank, list] : pieces) std::sort(list.begin(), list.end());
  return pieces;
}

void expect_the_map(const TrainConfig& config) {
  const RunPlan plan = resolve(config);
  std::map<int, std::vector<std::string>> seen;
  std::mutex mutex;
  RuntimeComponents parts = default_components(make_thread_world({.size = plan.mesh.world_size()}), plan);
  parts.optimizer_runtime = std::make_shared<NotingRuntime>(seen, mutex);
  RuntimeEngine(parts, plan).fit(0);
  for (auto& [rank, list] : seen) std::sort(list.begin(), list.end());
  EXPECT_EQ(seen, mapped(plan));
}

TEST(ZeroMap, IsWhatTheOptimizersUpdate) {
  for (const int stage : {0, 1, 2, 3}) {
    TrainConfig c = zero_config(4, stage);
    c.model.hidden_size = 36;
    c.model.num_attention_heads = 6;
    c.model.ffn_hidden_size = 50;
    expect_the_map(c);
    c = zero_config(8, stage);
    c.parallel.pp = 2;
    c.parallel.tp = 2;
    c.model.tie_embeddings = true;
    expect_the_map(c);
    c = zero_config(8, stage);
    c.parallel.ep = 2;
    c.parallel.tp = 2;
    c.model.moe = {.num_experts = 4, .topk = 2, .ffn_hidden_size = 24, .first_dense_layers = 1};
    c.model.mtp_num_layers = 1;
    expect_the_map(c);
    c = zero_config(4, stage);
    c.parallel.pp = 2;
    c.pipeline_schedule = "dualpipe";
    expect_the_map(c);
    for (const MuonDistribution form : {MuonDistribution::kDistributed, MuonDistribution::kLayerSharded}) {
      c = zero_config(8, stage);
      c.parallel.pp = 2;
      c.parallel.ep = 2;
      c.model.moe = {.num_experts = 4, .topk = 2, .ffn_hidden_size = 24, .first_dense_layers = 1};
      c.optimizer = OptimizerKind::kMuon;
      c.muon_distribution = form;
      expect_the_map(c);
    }
    if (stage == 0) continue;
    c = zero_config(8, stage);
    c.parallel.replicas = 2;
    c.parallel.ep = 2;
    c.model.moe = {.num_experts = 4, .topk = 2, .ffn_hidden_size = 24, .first_dense_layers = 1};
    expect_the_map(c);
  }
}

// Rank 0's books after a later step.
class Books : public Hook {
 public:
  void on_step_end(const StepMetrics&) override {
    optimizer = thread_memory_book()->bytes(MemoryCategory::kOptimizer);
    peak_gradients = thread_memory_book()->peak_bytes(MemoryCategory::kGradients);
  }
  int64_t optimizer = 0, peak_gradients = 0;
};

struct Held {
  int64_t optimizer, peak_gradients;
  CategoryBytes planned;  // the highest of each category
};

Held run_and_measure(const TrainConfig& config) {
  install_booking_allocator();
  RuntimeEngine engine = tiny_engine(config);
  const auto books = std::make_shared<Books>();
  engine.add_hook(books);
  engine.fit();
  return {books->optimizer, books->peak_gradients,
          record_step(engine.plan(), make_meta_world).of_pipeline_rank(0).highest};
}

constexpr int64_t kStepCounters = 2 * 64;

TEST(ZeroMemory, OptimizerStatesAreADataParallelPart) {
  const Held plain = run_and_measure(zero_config(8, 0));
  for (const int stage : {1, 2, 3}) {
    const Held held = run_and_measure(zero_config(8, stage));
    EXPECT_NEAR(8.0 * static_cast<double>(held.optimizer - kStepCounters) / static_cast<double>(plain.optimizer), 1.0,
                0.02);
    EXPECT_NEAR(static_cast<double>(held.optimizer),
                static_cast<double>(held.planned[static_cast<size_t>(MemoryCategory::kOptimizer)]), kStepCounters);
  }
}

// The figures of docs/parallelism.md.
TEST(OverlappedGathers, HideBehindTheForwardOfALargeModel) {
  TrainConfig c;
  c.model = model_preset("llama_8b");
  c.parallel = {.world = 64};
  c.global_batch_size = 64;
  c.bf16 = true;
  c.zero_stage = 1;
  c.efficiency = Efficiency::kMeasured;
  EXPECT_EQ(planned_step_ms(c), 756);
  c.overlap_param_gather = true;
  EXPECT_EQ(planned_step_ms(c), 697);
}

TEST(ZeroMemory, StageTwoHoldsShardsAndAFewBuckets) {
  for (const bool overlap : {true, false}) {
    for (const int64_t micro_batch_size : {0, 1}) {
      TrainConfig config = zero_config(4, 2);
      config.overlap_grad_reduce = overlap;
      config.micro_batch_size = micro_batch_size;
      config.model.num_layers = 6;
      const Held held = run_and_measure(config);
      const int64_t planned = held.planned[static_cast<size_t>(MemoryCategory::kGradients)];
      EXPECT_NEAR(static_cast<double>(planned) / static_cast<double>(held.peak_gradients), 1.0, kPeakTolerance)
          << "overlap " << overlap << ", " << micro_batch_size;
      const auto whole = static_cast<double>(config.model.parameter_count() * config.element_bytes());
      const bool one_after_another = overlap && micro_batch_size == 0;
      if (one_after_another) {
        EXPECT_LT(static_cast<double>(held.peak_gradients), 0.5 * whole);
      } else {
        EXPECT_GT(static_cast<double>(held.peak_gradients), whole);
      }
    }
  }
}

// What each rank's books say when its optimizer is about to update, its gradients reduced.
struct AtUpdate {
  int64_t parameters = 0, gradients = 0, optimizer = 0, gathered = 0;
};

class BookedOptimizer : public Optimizer {
 public:
  BookedOptimizer(std::unique_ptr<Optimizer> inner, AtUpdate& seen) : inner_(std::move(inner)), seen_(seen) {}
  void step(double lr) override {
    const auto bytes = [](MemoryCategory category) { return thread_memory_book()->bytes(category); };
    seen_ = {.parameters = bytes(MemoryCategory::kParameters),
             .gradients = bytes(MemoryCategory::kGradients),
             .optimizer = bytes(MemoryCategory::kOptimizer),
             .gathered = bytes(MemoryCategory::kGathered)};
    inner_->step(lr);
  }
  void zero_grad() override { inner_->zero_grad(); }

 private:
  std::unique_ptr<Optimizer> inner_;
  AtUpdate& seen_;
};

AdamWOptions adamw_options(const RunPlan& plan) {
  const StateTypes types = state_types(plan);
  return {.masters = types.has_masters(),
          .exp_avg_type = scalar_type(types.exp_avg),
          .exp_avg_sq_type = scalar_type(types.exp_avg_sq)};
}

class BookedRuntime : public OptimizerRuntime {
 public:
  explicit BookedRuntime(std::vector<AtUpdate>& seen) : seen_(seen) {}
  std::unique_ptr<RankOptimizer> initialize(CausalLm& model, RankContext& ctx, const RunPlan& plan) const override {
    AtUpdate& mine = seen_[static_cast<size_t>(ctx.global_rank())];
    const auto make = [&mine](const std::vector<Parameter*>& owned, const RunPlan& p) {
      return std::make_unique<BookedOptimizer>(make_adamw(owned, adamw_options(p)), mine);
    };
    return provide_optimizer(make)->initialize(model, ctx, plan);
  }

 private:
  std::vector<AtUpdate>& seen_;
};

// Mixed precision: 2 bytes of parameter, 2 of gradient, 12 of master and moments; 16, 4 + 12/n, 2 + 14/n, 16/n.
TEST(ZeroMemory, BytesAParameterAreThoseOfThePaper) {
  install_booking_allocator();
  const std::vector<double> want = {16, 5.5, 3.75, 2.0};
  for (size_t stage = 0; stage < want.size(); ++stage) {
    TrainConfig config = zero_config(8, static_cast<int>(stage));
    config.bf16 = true;
    config.model.hidden_size = 64;
    config.model.num_layers = 6;
    config.ddp_bucket_bytes = 1 << 17;
    const RunPlan plan = resolve(config);
    std::vector<AtUpdate> seen(8);
    RuntimeComponents parts = default_components(make_thread_world({.size = 8}), plan);
    parts.optimizer_runtime = std::make_shared<BookedRuntime>(seen);
    RuntimeEngine(parts, plan).fit();
    for (const AtUpdate& rank : seen) {
      const auto held = static_cast<double>(rank.parameters + rank.gradients + rank.optimizer);
      EXPECT_NEAR(held / static_cast<double>(plan.config.model.parameter_count()), want[stage], 0.02 * want[stage])
          << "stage " << stage << ": " << rank.parameters << " + " << rank.gradients << " + " << rank.optimizer;
      EXPECT_EQ(rank.gathered, 0);
    }
  }
}

struct Types {
  const char *main_params, *main_grads, *exp_avg, *exp_avg_sq;
  double bytes;  // of a parameter, without ZeRO
};

// The map's bytes of every rank are those that it holds, whatever types are chosen.
TEST(ZeroMemory, BytesAParameterAreThoseOfTheChosenTypes) {
  install_booking_allocator();
  for (const Types& types : {Types{"fp32", "fp32", "fp32", "fp32", 18},
                             {"fp32", "fp32", "bf16", "bf16", 14},
                             {"bf16", "bf16", "bf16", "fp16", 8},
                             {"bf16", "fp32", "fp32", "bf16", 12}}) {
    for (const int stage : {0, 1, 2, 3}) {
      TrainConfig config = zero_config(4, stage);
      config.bf16 = true;
      config.precision.main_params_dtype = types.main_params;
      config.precision.main_grads_dtype = types.main_grads;
      config.precision.exp_avg_dtype = types.exp_avg;
      config.precision.exp_avg_sq_dtype = types.exp_avg_sq;
      const RunPlan plan = resolve(config);
      std::vector<AtUpdate> seen(4);
      RuntimeComponents parts = default_components(make_thread_world({.size = 4}), plan);
      parts.optimizer_runtime = std::make_shared<BookedRuntime>(seen);
      RuntimeEngine(parts, plan).fit();
      const ZeroMap map = zero_map(plan, 0, make_meta_world);
      constexpr int64_t kCounters = 16;                   // AdamW's steps
      constexpr int64_t kLine = 4 * kBucketLineElements;  // a shard that is padding alone is not kept
      for (size_t rank = 0; rank < seen.size(); ++rank) {
        const auto where = [&] { return std::string(types.main_grads) + ", stage " + std::to_string(stage); };
        EXPECT_EQ(seen[rank].parameters, map.ranks[rank].parameter_bytes) << where();
        EXPECT_NEAR(static_cast<double>(seen[rank].gradients), static_cast<double>(map.ranks[rank].gradient_bytes),
                    kLine)
            << where();
        EXPECT_NEAR(static_cast<double>(seen[rank].optimizer), static_cast<double>(map.ranks[rank].optimizer_bytes),
                    kCounters)
            << where();
        if (stage > 0) continue;
        const double all = static_cast<double>(seen[rank].parameters + seen[rank].gradients + seen[rank].optimizer);
        EXPECT_NEAR(all / static_cast<double>(plan.config.model.parameter_count()), types.bytes, 0.02 * types.bytes);
      }
    }
  }
}

int64_t largest_unit_bytes(const ZeroMap& map) {
  std::map<std::string, int64_t> units;
  int64_t largest = 0;
  for (const ZeroMapBucket& bucket : map.buckets)
    largest = std::max(largest, units[bucket.unit] += bucket.elements * int64_t{4});
  return largest;
}

// Between uses a parameter has no memory.
TEST(ZeroMemory, StageThreeFreesWhatItGathered) {
  TrainConfig config = zero_config(4, 3);
  const RunPlan plan = resolve(config);
  RuntimeComponents parts = default_components(make_thread_world({.size = 4}), plan);
  RuntimeEngine engine(parts, plan);
  engine.set_finale([](StepContext& context) {
    for (const Parameter* parameter : context.model.registry().parameters()) {
      EXPECT_EQ(parameter->data.storage().nbytes(), 0u) << parameter->name;
      EXPECT_GT(parameter->data.numel(), 0);
      EXPECT_TRUE(is_freed(parameter->data)) << parameter->name;
    }
    EXPECT_EQ(thread_memory_book()->bytes(MemoryCategory::kGathered), 0);
    // Never more than two units at once.
    const int64_t peak = thread_memory_book()->peak_bytes(MemoryCategory::kGathered);
    EXPECT_LE(peak, 2 * largest_unit_bytes(zero_map(context.plan, 0, make_meta_world)));
    EXPECT_GT(peak, largest_unit_bytes(zero_map(context.plan, 0, make_meta_world)));
  });
  install_booking_allocator();
  engine.fit();
}

// 2 (n-1)/n of the parameters, whatever is sharded: a reduce_scatter and an all_gather are an all_reduce. In stage 3
// parameters are gathered for forward and for backward, the embedding, whose backward does not look at it, once.
TEST(ZeroTraffic, IsTheSameUntilParametersAreSharded) {
  for (const int stage : {0, 1, 2, 3}) {
    TrainConfig config = zero_config(8, stage);
    config.train_iters = 1;
    config.ddp_bucket_bytes = 1 << 20;  // little padding
    RuntimeEngine engine = tiny_engine(config);
    const TrainResult result = engine.fit();
    const auto bytes = static_cast<double>(config.model.parameter_count() * config.element_bytes());
    const auto ranks = summarize(TraceFile{.ranks = result.traces, .clock = TraceClock::kVirtual, .world_size = 8});
    for (const RankSummary& rank : ranks) {
      double sent = 0;
      for (const auto& [key, traffic] : rank.traffic) {
        if (key.first != Axis::kDp) continue;
        sent += static_cast<double>(traffic.algorithm_bytes);
        if (key.second == Verb::kAllReduce && stage > 0) {
          EXPECT_EQ(traffic.logical_bytes, 8) << "the norm's, and no gradient";
        }
      }
      const auto& model = config.model;
      const auto embedding = static_cast<double>(model.vocab_size * model.hidden_size * 4);
      if (stage == 3) sent += 0.875 * embedding;
      EXPECT_NEAR(sent / bytes, stage == 3 ? 2.625 : 1.75, 0.02) << "stage " << stage;
    }
  }
}

}  // namespace
}  // namespace ranklab
