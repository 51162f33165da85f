// A run that is stopped and resumed equals the run that was never stopped: every loss and weight, bit for bit.
#include <gmock/gmock.h>

#include <algorithm>
#include <fstream>

#include "core/base/error.h"
#include "tests/runtime/checkpoint_run.h"

namespace ranklab::checkpoint_runs {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Case {
  std::string name;
  Settings settings;
  friend void PrintTo(const Case& one, std::ostream* out) { *out << one.name; }
};

std::vector<Case> cases() {
  const auto dense = [](Settings more) { return kTinyRun + kDense + std::move(more); };
  const auto moe = [](Settings more) { return kTinyRun + kMoe + std::move(more); };
  return {
      {"one", dense({{"parallel.world_size", "1"}})},
      {"dp4", dense({{"parallel.dp", "4"}, {"parallel.world_size", "4"}, {"model.dropout", "0.1"}})},
      {"tp2pp2", dense({{"parallel.tp", "2"}, {"parallel.pp", "2"}, {"parallel.world_size", "8"}})},
      {"zero1", dense({{"parallel.dp", "4"}, {"parallel.world_size", "4"}, {"parallel.zero_stage", "1"}})},
      {"zero2tp2", dense({{"parallel.tp", "2"}, {"parallel.world_size", "4"}, {"parallel.zero_stage", "2"}})},
      {"zero3", dense({{"parallel.dp", "4"}, {"parallel.world_size", "4"}, {"parallel.zero_stage", "3"}})},
      {"hsdp", dense({{"parallel.dp", "4"},
                      {"parallel.world_size", "4"},
                      {"parallel.zero_stage", "2"},
                      {"parallel.replicas", "2"}})},
      // Saved while the first fragment's synchronization runs.
      {"diloco", dense({{"parallel.dp", "4"},
                        {"parallel.world_size", "4"},
                        {"parallel.zero_stage", "2"},
                        {"train.bf16", "true"},
                        {"diloco.replicas", "2"},
                        {"diloco.sync_steps", "8"},
                        {"diloco.fragments", "2"},
                        {"diloco.sync_delay", "2"},
                        {"diloco.update_alpha", "0.25"}})},
      {"bf16", dense({{"parallel.tp", "2"}, {"parallel.world_size", "2"}, {"train.bf16", "true"}})},
      {"bf16zero1",
       dense(
           {{"parallel.world_size", "2"}, {"parallel.dp", "2"}, {"train.bf16", "true"}, {"parallel.zero_stage", "1"}})},
      // Overflows at first, and a scale that increases again after the checkpoint.
      {"fp16", dense({{"parallel.tp", "2"},
                      {"parallel.pp", "2"},
                      {"parallel.world_size", "4"},
                      {"precision.fp16", "true"},
                      {"precision.initial_loss_scale", "16777216"},
                      {"precision.loss_scale_window", "2"}})},
      {"bf16moments", dense({{"parallel.world_size", "2"},
                             {"parallel.dp", "2"},
                             {"parallel.zero_stage", "1"},
                             {"train.bf16", "true"},
                             {"precision.exp_avg_dtype", "bf16"},
                             {"precision.exp_avg_sq_dtype", "bf16"},
                             {"precision.main_grads_dtype", "fp32"}})},
      {"nomasters", dense({{"parallel.world_size", "2"},
                           {"parallel.tp", "2"},
                           {"train.bf16", "true"},
                           {"precision.main_params_dtype", "bf16"}})},
      {"fp64sgd", dense({{"parallel.world_size", "2"},
                         {"parallel.dp", "2"},
                         {"train.params_dtype", "fp64"},
                         {"optim.optimizer", "sgd"},
                         {"optim.sgd_momentum", "0.9"}})},
      {"muon", dense({{"parallel.world_size", "8"},
                      {"parallel.tp", "2"},
                      {"parallel.zero_stage", "1"},
                      {"optim.optimizer", "muon"},
                      {"optim.muon_distribution", "distributed"}})},
      // Some heads are clipped on both sides of the checkpoint.
      {"clippedheads", dense({{"parallel.world_size", "4"},
                              {"parallel.tp", "2"},
                              {"parallel.zero_stage", "1"},
                              {"train.bf16", "true"},
                              {"optim.optimizer", "muon"},
                              {"optim.qk_clip", "true"},
                              {"optim.qk_clip_threshold", "0.05"},
                              {"optim.weight_decay_incr_style", "cosine"},
                              {"optim.start_weight_decay", "0"},
                              {"optim.end_weight_decay", "0.3"}})},
      {"lion", dense({{"parallel.world_size", "2"}, {"parallel.dp", "2"}, {"optim.optimizer", "lion"}})},
      // Batches of 4, 6 and 8, stopped while they grow.
      {"growing", dense({{"parallel.world_size", "4"},
                         {"parallel.pp", "2"},
                         {"model.dropout", "0.1"},
                         {"model.attention_dropout", "0.1"},
                         {"train.micro_batch_size", "1"},
                         {"train.rampup_batch_size", "4 2 20"}})},
      {"dualpipe", dense({{"parallel.pp", "2"},
                          {"parallel.world_size", "4"},
                          {"train.num_microbatches", "4"},
                          {"parallel.pipeline_schedule", "dualpipe"}})},
      {"moe", moe({{"parallel.world_size", "4"}, {"parallel.dp", "4"}, {"parallel.ep", "2"}})},
      {"moezero1", moe({{"parallel.world_size", "8"},
                        {"parallel.tp", "2"},
                        {"parallel.pp", "2"},
                        {"parallel.ep", "2"},
                        {"parallel.zero_stage", "1"}})},
  };
}

class Resume : public ::testing::TestWithParam<Case> {};

TEST_P(Resume, EqualsTheRunThatWasNeverStopped) {
  const std::string whole = temporary_path("ranklab_whole_" + GetParam().name);
  const std::string parts = temporary_path("ranklab_parts_" + GetParam().name);
  const Settings& settings = GetParam().settings;
  const auto never = train(settings + saving(whole));
  ASSERT_EQ(never->steps.size(), 6);
  const auto first = train(settings + saving(parts, 2) + loading("auto"), 3);  // a save under way, and one at the end
  EXPECT_EQ(first->first_step, 0);
  EXPECT_THAT(first->loaded, HasSubstr("a fresh start"));
  ASSERT_EQ(first->steps.size(), 3);
  const auto second = train(settings + saving(parts) + loading("auto"));
  EXPECT_EQ(second->first_step, 3);
  EXPECT_THAT(second->loaded, HasSubstr("step_00000003: step 3 (saved by "));
  auto pieced = curve(*first);
  for (const auto& bits : curve(*second)) pieced.push_back(bits);
  EXPECT_EQ(pieced, curve(*never));
  EXPECT_EQ(state_difference(whole, parts), "");
  EXPECT_NE(state_difference(whole, parts + "/step_00000003"), "");
}
INSTANTIATE_TEST_SUITE_P(Layouts, Resume, ::testing::ValuesIn(cases()), [](const auto& one) { return one.param.name; });

std::vector<int64_t> batches(const RunRecord& record) {
  std::vector<int64_t> sequences;
  for (const StepMetrics& step : record.steps) sequences.push_back(step.tokens / 16);
  return sequences;
}

// Megatron-LM's rule: the size of a batch follows from the samples consumed, whatever the batches were before.
TEST(Resume, GoesOnGrowingBatchesFromTheSamplesConsumed) {
  const std::string run = temporary_path("ranklab_other_ramp");
  const Settings settings = kTinyRun + kDense + Settings{{"parallel.world_size", "2"}, {"train.micro_batch_size", "1"}};
  const auto whole = train(settings + saving(run) + loading("auto"), 2);
  EXPECT_THAT(batches(*whole), ElementsAre(8, 8));
  const Settings ramp = settings + Settings{{"train.rampup_batch_size", "2 2 36"}};
  const auto growing = train(ramp + saving(run) + loading("auto"), 4);
  EXPECT_THAT(batches(*growing), ElementsAre(4, 4)) << "16 and 20 of 36 samples: one of three increments";
  EXPECT_EQ(Checkpoint(checkpoint_named(run)).manifest().consumed_samples, 24);
  const auto rest = train(ramp + loading(run));
  EXPECT_THAT(batches(*rest), ElementsAre(6, 6)) << "and resumes again where it was: 24 and 30 samples";
}

Settings of_64_samples(const std::string& batch) {
  Settings settings = kOne + Settings{{"train.train_samples", "64"}, {"train.global_batch_size", batch}};
  std::erase_if(settings, [](const auto& setting) { return setting.first == "train.train_iters"; });
  return settings;
}

// With larger batches the samples that are left make fewer steps, with smaller ones more; the learning rate depends on
// the samples alone.
TEST(Resume, ARunOfSamplesTrainsOnAllOfThemInAnyBatches) {
  const std::string begun = temporary_path("ranklab_samples"), large = begun + "_large", part = begun + "_part";
  const auto whole = train(of_64_samples("8"));
  ASSERT_EQ(whole->steps.size(), 8);
  train(of_64_samples("8") + saving(begun), 4);
  const auto larger = train(of_64_samples("16") + loading(begun) + saving(large));
  EXPECT_THAT(batches(*larger), ElementsAre(16, 16));
  EXPECT_EQ(larger->steps[1].lr, whole->steps[6].lr);
  const auto smaller = train(of_64_samples("4") + loading(begun));
  EXPECT_THAT(batches(*smaller), ElementsAre(4, 4, 4, 4, 4, 4, 4, 4));
  EXPECT_EQ(smaller->steps[6].lr, whole->steps[7].lr);
  const auto growing = train(of_64_samples("8") + loading(begun) +
                             Settings{{"train.rampup_batch_size", "0:8 32:4 40:8"}, {"train.micro_batch_size", "4"}});
  EXPECT_THAT(batches(*growing), ElementsAre(4, 4, 8, 8, 8));

  auto pieced = curve(*train(of_64_samples("16") + loading(begun) + saving(part), 5));
  for (const auto& bits : curve(*train(of_64_samples("16") + loading(part) + saving(part)))) pieced.push_back(bits);
  EXPECT_EQ(pieced, curve(*larger)) << "resumed a second time";
  EXPECT_EQ(state_difference(large, part), "");
  EXPECT_THAT(train(of_64_samples("16") + loading(large))->loaded, HasSubstr("nothing is left of --train-samples 64"));
  EXPECT_EQ(Checkpoint(checkpoint_named(large)).manifest().config.at("train.train_iters"), "4")
      << "what --train-samples gives, so that the saved settings do not contradict each other";
}

const Settings kFp16 = {
    {"precision.fp16", "true"}, {"precision.initial_loss_scale", "16777216"}, {"precision.loss_scale_window", "2"}};

// The scale, the steps since it changed and the skipped steps carry over to another layout, and a run that had none
// starts with its own.
TEST(Checkpoints, KeepTheLossScaleInAnyLayout) {
  const std::string run = temporary_path("ranklab_scale"), other = temporary_path("ranklab_scale_other");
  const Settings dense = kTinyRun + kDense + kFp16;
  const auto never = train(dense + Settings{{"parallel.world_size", "2"}, {"parallel.tp", "2"}});
  ASSERT_GT(never->steps[2].skipped_steps, 0);
  train(dense + saving(run) + Settings{{"parallel.world_size", "2"}, {"parallel.tp", "2"}}, 3);
  const CheckpointManifest kept = Checkpoint(checkpoint_named(run)).manifest();
  EXPECT_EQ(kept.loss_scale.at("skipped_steps"), static_cast<double>(never->steps[2].skipped_steps));
  const auto second = train(dense + loading(run) + saving(other) +
                            Settings{{"parallel.world_size", "4"}, {"parallel.pp", "2"}, {"parallel.zero_stage", "2"}});
  ASSERT_EQ(second->steps.size(), 3);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(second->steps[i].loss_scale, never->steps[3 + i].loss_scale) << i;
    EXPECT_EQ(second->steps[i].skipped_steps, never->steps[3 + i].skipped_steps) << i;
    EXPECT_EQ(second->steps[i].lr, never->steps[3 + i].lr) << i;
  }
  const std::string old = temporary_path("ranklab_scale_none");
  train(kOne + saving(old), 3);
  EXPECT_TRUE(Checkpoint(checkpoint_named(old)).manifest().loss_scale.empty());
  const auto fresh = train(kOne + kFp16 + loading(old));
  EXPECT_EQ(fresh->first_step, 3);
  EXPECT_EQ(fresh->steps[0].loss_scale, 16777216);
}

// Megatron-LM's rule: the schedule advances by the sequences of each step that had an update, whatever precision
// follows.
TEST(Checkpoints, SkippedStepsOfGrowingBatchesDoNotAdvanceTheLearningRate) {
  const std::string run = temporary_path("ranklab_skipped_ramp");
  const Settings settings = kTinyRun + kDense +
                            Settings{{"train.rampup_batch_size", "2 2 20"},
                                     {"train.micro_batch_size", "1"},
                                     {"optim.lr_warmup_iters", "0"},
                                     {"optim.lr_decay_style", "linear"},
                                     {"optim.min_lr", "0"}};
  const RunPlan plan = plan_of(settings + Settings{{"parallel.world_size", "1"}});
  const Settings two_stages = {{"parallel.world_size", "2"}, {"parallel.pp", "2"}};
  const Settings scale = {{"precision.fp16", "true"}, {"precision.initial_loss_scale", "1048576"}};
  auto all = train(settings + scale + two_stages + saving(run), 4)->steps;
  ASSERT_THAT(all.back().skipped_steps, AllOf(::testing::Gt(0), ::testing::Lt(4)));
  const auto rest = train(settings + loading(run) + Settings{{"train.bf16", "true"}, {"parallel.world_size", "2"}});
  all.insert(all.end(), rest->steps.begin(), rest->steps.end());
  int64_t moved = 0;
  const auto end = static_cast<double>(plan.ramp.samples_before(6));
  for (const StepMetrics& step : all) {
    EXPECT_NEAR(step.lr, plan.config.lr * (1 - static_cast<double>(moved) / end), 1e-15) << step.step;
    if (!step.skipped) moved += step.tokens / 16;
  }
}

std::map<std::string, TensorType> stored_types(const std::string& run) {
  std::map<std::string, TensorType> types;
  const Checkpoint checkpoint(checkpoint_named(run));
  for (const auto& [name, tensor] : checkpoint.manifest().tensors) types[name.substr(0, name.find('/'))] = tensor.type;
  return types;
}

// States are stored in the types that were kept; a run that keeps other types widens or rounds them and says so.
TEST(Checkpoints, AreReadIntoOtherTypes) {
  const std::string run = temporary_path("ranklab_types"), wide = temporary_path("ranklab_types_wide"),
                    back = temporary_path("ranklab_types_back");
  const Settings bf16 = kOne + Settings{{"train.bf16", "true"}};
  const Settings narrow = bf16 + Settings{{"precision.exp_avg_dtype", "bf16"},
                                          {"precision.exp_avg_sq_dtype", "fp16"},
                                          {"precision.main_params_dtype", "bf16"}};
  train(narrow + saving(run), 3);
  EXPECT_EQ(stored_types(run),
            (std::map<std::string, TensorType>{
                {"weight", TensorType::kBF16}, {"exp_avg", TensorType::kBF16}, {"exp_avg_sq", TensorType::kF16}}));
  const Settings no_steps = {{"train.train_iters", "3"}};
  const auto widened = train(bf16 + no_steps + loading(run) + saving(wide));
  EXPECT_THAT(widened->loaded, AllOf(HasSubstr("exp_avg BF16 to F32"), HasSubstr("exp_avg_sq F16 to F32"),
                                     HasSubstr("weight BF16 to F32")));
  EXPECT_EQ(stored_types(wide).at("weight"), TensorType::kF32);
  const auto rounded = train(narrow + no_steps + loading(wide) + saving(back));
  EXPECT_THAT(rounded->loaded, HasSubstr("exp_avg F32 to BF16"));
  EXPECT_EQ(state_difference(run, back), "") << "nothing was lost on the way";
}

void flip_a_bit(const std::string& path) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(-1, std::ios::end);
  const auto byte = static_cast<char>(file.get() ^ 1);
  file.seekp(-1, std::ios::end);
  file.put(byte);
}

std::string refusal(const Settings& settings) {
  try {
    train(settings);
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(Checkpoints, DamagedOnesArePassedOverUnderAutoAndRefusedByName) {
  const std::string run = temporary_path("ranklab_damaged"), whole = temporary_path("ranklab_undamaged");
  const auto never = train(kOne + saving(whole));
  train(kOne + saving(run, 2));
  flip_a_bit(run + "/step_00000006/rank_00000.safetensors");
  EXPECT_THAT(refusal(kOne + loading(run + "/step_00000006")),
              AllOf(HasSubstr("rank_00000.safetensors"), HasSubstr("tensor '")));
  ::testing::internal::CaptureStderr();
  const auto record = train(kOne + saving(run) + loading("auto"));
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              AllOf(HasSubstr("skipping"), HasSubstr("step_00000006/rank_00000.safetensors"), HasSubstr("bytes ")));
  EXPECT_EQ(record->first_step, 4);
  EXPECT_EQ(record->steps.back().loss, never->steps.back().loss);
  EXPECT_EQ(state_difference(run, whole), "");  // the damaged one was replaced
  for (const StepFolder& folder : step_folders(run)) flip_a_bit(folder.path + "/rank_00000.safetensors");
  EXPECT_THAT(refusal(kOne + saving(run) + loading("auto")), HasSubstr("none of its checkpoints is complete"));
}

TEST(Checkpoints, AnotherBatchSizeGoesOnWithTheNextSample) {
  const std::string run = temporary_path("ranklab_batch");
  train(kOne + saving(run), 3);
  train(kOne + saving(run) + loading(run) + Settings{{"train.global_batch_size", "4"}});
  EXPECT_EQ(Checkpoint(checkpoint_named(run)).manifest().consumed_samples, 3 * 8 + 3 * 4);
}

TEST(Checkpoints, FinetuneTakesTheWeightsAlone) {
  const std::string run = temporary_path("ranklab_base"), tuned = temporary_path("ranklab_tuned");
  train(kOne + saving(run));
  const Settings fine = loading(run) + Settings{{"checkpoint.finetune", "true"}, {"train.seed", "5"}};
  const auto record = train(kOne + saving(tuned) + fine, 1);
  EXPECT_EQ(record->first_step, 0);
  EXPECT_THAT(record->loaded, HasSubstr("the weights only, step 0"));
  const Checkpoint after(tuned + "/step_00000001");
  EXPECT_EQ(after.manifest().updates, 1);
  EXPECT_EQ(after.manifest().consumed_samples, 8);
  EXPECT_LT(record->steps[0].loss, 5.5);  // not an untrained model's ln 259 = 5.557
  EXPECT_THAT(refusal(kOne + saving(run) + fine), HasSubstr("would not resume from"));
}

TEST(Checkpoints, MissingMomentsBeginAtZeroInOneLine) {
  const std::string sgd = temporary_path("ranklab_sgd");
  const Settings plain = kOne + Settings{{"optim.optimizer", "sgd"}};
  train(plain + saving(sgd), 2);
  const auto record = train(plain + loading(sgd) + Settings{{"optim.sgd_momentum", "0.9"}});
  EXPECT_THAT(record->loaded, HasSubstr("which begin at zero"));
  EXPECT_EQ(record->steps.size(), 4);
}

// The amax histories of delayed scaling begin as in a new run, and the log says so.
TEST(Checkpoints, ARunGoesOnInAnotherPrecision) {
  const std::string run = temporary_path("ranklab_recipe");
  const Settings delayed = {{"precision.recipe", "fp8_delayed"}};
  train(kOne + saving(run), 2);
  const auto record = train(kOne + saving(run) + loading("auto") + delayed, 4);
  EXPECT_EQ(record->first_step, 2);
  EXPECT_THAT(record->loaded, HasSubstr("no such amax histories for"));
  const auto shorter = train(kOne + loading(run) + delayed + Settings{{"precision.amax_history_len", "4"}}, 5);
  EXPECT_THAT(shorter->loaded, HasSubstr("no such amax histories for")) << "those of another length";
  EXPECT_EQ(shorter->steps.size(), 1);
}

// But a history that a run of the same settings saved may not be missing.
TEST(Checkpoints, ALostAmaxHistoryIsMissed) {
  const std::string run = temporary_path("ranklab_history");
  const Settings delayed = {{"precision.recipe", "fp8_delayed"}};
  train(kOne + saving(run) + delayed, 1);
  EXPECT_THAT(train(kOne + loading(run) + delayed, 2)->loaded, ::testing::Not(HasSubstr("amax histories")));
  const std::string path = step_folders(run).back().path + "/" + kManifestName;
  CheckpointManifest manifest = read_manifest(path);
  const auto history = std::ranges::find_if(manifest.tensors,
                                            [](const auto& tensor) { return tensor.first.ends_with(".amax_history"); });
  ASSERT_NE(history, manifest.tensors.end());
  const std::string lost = history->first;
  manifest.tensors.erase(history);
  std::ofstream(path) << manifest_text(manifest);
  EXPECT_THAT(refusal(kOne + loading(run) + delayed), HasSubstr(lost));
}

TEST(Checkpoints, WhatDoesNotFitIsRefusedBeforeAnyRankStarts) {
  const std::string run = temporary_path("ranklab_fit");
  train(kOne + saving(run), 2);
  const auto with = [&](const std::string& key, const std::string& text) {
    return refusal(kOne + loading(run) + Settings{{key, text}});
  };
  EXPECT_THAT(with("train.seed", "5"), AllOf(HasSubstr("--seed 5"), HasSubstr("--seed 1234, as saved")));
  EXPECT_THAT(with("model.seq_length", "8"),
              AllOf(HasSubstr("--seq-length 8"), HasSubstr("--seq-length 16, as saved")));
  EXPECT_THAT(with("model.hidden_size", "64"), HasSubstr("--hidden-size 32, as saved"));
  EXPECT_THAT(with("optim.optimizer", "sgd"), HasSubstr("--optimizer adamw, as saved"));
  EXPECT_THAT(with("train.params_dtype", "fp64"), HasSubstr("F32, as saved"));
  EXPECT_THAT(with("data.validation_fraction", "0.3"), HasSubstr("the data is not what the run was trained on"));
  EXPECT_EQ(with("train.bf16", "true"), "");  // masters are fp32
  EXPECT_EQ(with("optim.weight_decay", "0"), "");
  EXPECT_THAT(refusal(kOne + loading(run + "/none")), HasSubstr("no folder of that name"));
  EXPECT_THAT(refusal(kOne + saving(run)), HasSubstr("--load auto"));
}

}  // namespace
}  // namespace ranklab::checkpoint_runs
