// A checkpoint of one layout, loaded in another and saved there, is the same checkpoint: every weight, moment and
// buffer, the step and the place in the data, for all ordered pairs of layouts.
#include <gtest/gtest.h>

#include "tests/runtime/checkpoint_run.h"

namespace ranklab::checkpoint_runs {
namespace {

Settings layout(int world, int tp, int pp, Settings more = {}) {
  return Settings{{"parallel.world_size", std::to_string(world)},
                  {"parallel.tp", std::to_string(tp)},
                  {"parallel.pp", std::to_string(pp)},
                  {"train.train_iters", "3"}} +
         more;
}

Settings zero(int stage) { return {{"parallel.zero_stage", std::to_string(stage)}}; }

// Each pair's second layout writes what it read; a run that has no step left saves at once.
void check_pairs(const Settings& model, const std::vector<Settings>& layouts, const std::string& name) {
  std::vector<std::string> saved;
  for (size_t a = 0; a < layouts.size(); ++a) {
    saved.push_back(temporary_path("ranklab_" + name + std::to_string(a)));
    train(kTinyRun + model + layouts[a] + saving(saved[a]));
  }
  for (size_t a = 0; a < layouts.size(); ++a) {
    for (size_t b = 0; b < layouts.size(); ++b) {
      if (a == b) continue;
      const std::string again = temporary_path("ranklab_" + name + std::to_string(a) + "_" + std::to_string(b));
      const auto record = train(kTinyRun + model + layouts[b] + saving(again) + loading(saved[a]));
      EXPECT_TRUE(record->steps.empty());
      EXPECT_EQ(state_difference(saved[a], again), "") << "from " << a << " to " << b;
      std::filesystem::remove_all(again);
    }
  }
}

TEST(Reshard, AllPairsOfDenseLayouts) {
  const std::vector<Settings> layouts = {
      layout(1, 1, 1),
      layout(8, 1, 1),
      layout(4, 4, 1),
      layout(4, 1, 4),
      layout(8, 2, 2),
      layout(4, 1, 1, zero(1)),
      layout(4, 2, 1, zero(2)),
      layout(4, 1, 2, zero(1)),
      layout(8, 2, 1, zero(3)),
      layout(4, 1, 1, zero(2) + Settings{{"parallel.replicas", "2"}}),
      layout(4, 1, 1, zero(2) + Settings{{"parallel.cp", "4"}}),
      layout(8, 2, 2, {{"parallel.cp", "2"}, {"parallel.cp_comm_type", "all_gather"}}),
      layout(2, 2, 1, {{"parallel.sequence_parallel", "false"}, {"train.bf16", "true"}}),
      layout(4, 1, 2, {{"parallel.pipeline_schedule", "dualpipe"}, {"train.num_microbatches", "4"}}),
      layout(2, 1, 2, {{"parallel.pipeline_schedule", "interleaved-1f1b"}, {"parallel.vpp", "2"}})};
  check_pairs(kDense, layouts, "dense");
}

TEST(Reshard, AllPairsOfLayoutsWithMuon) {
  const auto muon = [](const char* form, Settings more) {
    return Settings{{"optim.optimizer", "muon"}, {"optim.muon_distribution", form}} + std::move(more);
  };
  const std::vector<Settings> layouts = {
      layout(1, 1, 1, muon("duplicated", {})), layout(8, 2, 2, muon("duplicated", {})),
      layout(8, 2, 1, muon("distributed", zero(1))), layout(4, 1, 1, muon("layer-sharded", zero(2))),
      layout(4, 1, 2, muon("distributed", zero(3)))};
  check_pairs(kDense, layouts, "muon");
}

const Settings kTwoReplicas = {
    {"diloco.replicas", "2"}, {"diloco.sync_steps", "4"}, {"diloco.fragments", "2"}, {"diloco.sync_delay", "1"}};

TEST(Reshard, AllPairsOfLayoutsWithDiloco) {
  const std::vector<Settings> layouts = {layout(2, 1, 1, kTwoReplicas), layout(4, 2, 1, kTwoReplicas),
                                         layout(4, 1, 2, kTwoReplicas), layout(4, 1, 1, zero(1) + kTwoReplicas),
                                         layout(8, 2, 1, zero(3) + kTwoReplicas)};
  check_pairs(kDense, layouts, "diloco");
}

// A replica that the checkpoint does not have continues like the first one, and without DiLoCo there was one state.
TEST(Reshard, OtherNumbersOfReplicasContinue) {
  const Settings all = kTinyRun + kDense;
  const auto path = [](const std::string& name) { return temporary_path("ranklab_replicas_" + name); };
  const auto trained = [&](Settings more, const std::string& to) { return train(all + std::move(more) + saving(to)); };
  const auto tensor = [](const std::string& run, const std::string& name) {
    const Checkpoint checkpoint(checkpoint_named(run));
    const TensorSlice whole = whole_slice(checkpoint.tensor(name).shape);
    std::vector<float> values(static_cast<size_t>(whole.elements()));
    checkpoint.read(name, whole, std::as_writable_bytes(std::span(values)));
    return values;
  };
  const std::string two = path("two"), four = path("four"), plain = path("plain"), plain_two = path("plain_two");
  trained(layout(2, 1, 1, kTwoReplicas), two);
  Settings of_four = kTwoReplicas;
  of_four[0].second = "4";
  const std::string loaded = trained(layout(4, 1, 1, of_four) + loading(two), four)->loaded;
  EXPECT_EQ(loaded.find("no optimizer states"), std::string::npos) << loaded;
  EXPECT_NE(loaded.find("--diloco-replicas 4 (2)"), std::string::npos) << loaded;
  const std::string name = "/layers.1.mlp.down.weight";
  for (const std::string kind : {"exp_avg", kReplicaWeight}) {
    EXPECT_NE(tensor(two, kind + ".0" + name), tensor(two, kind + ".1" + name));
    EXPECT_EQ(tensor(four, kind + ".1" + name), tensor(two, kind + ".1" + name));
    EXPECT_EQ(tensor(four, kind + ".3" + name), tensor(two, kind + ".0" + name));
  }
  trained(layout(2, 1, 1), plain);
  trained(layout(2, 1, 1, kTwoReplicas) + loading(plain), plain_two);
  EXPECT_EQ(tensor(plain_two, "exp_avg.1" + name), tensor(plain, "exp_avg" + name));
  EXPECT_EQ(tensor(plain_two, kReplicaWeight + (".1" + name)), tensor(plain, "weight" + name));
  EXPECT_EQ(tensor(plain_two, "weight" + name), tensor(plain, "weight" + name));
}

TEST(Reshard, AllPairsOfLayoutsWithExperts) {
  const auto experts = [](int ep, int etp, Settings more = {}) {
    return Settings{{"parallel.ep", std::to_string(ep)}, {"parallel.etp", std::to_string(etp)}} + std::move(more);
  };
  const std::vector<Settings> layouts = {layout(1, 1, 1),
                                         layout(4, 1, 1, experts(2, 1)),
                                         layout(4, 1, 1, experts(4, 1, zero(1))),
                                         layout(4, 2, 1, experts(2, 2)),
                                         layout(4, 1, 2, experts(2, 1, zero(2))),
                                         layout(4, 1, 1, {{"parallel.sep", "4"}}),
                                         layout(8, 2, 2, experts(4, 1))};
  check_pairs(kMoe, layouts, "moe");
}

}  // namespace
}  // namespace ranklab::checkpoint_runs
