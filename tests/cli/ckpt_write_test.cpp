// ranklab ckpt convert and reshard, model info and generate, on checkpoints that training saved.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/checkpoint/checkpoint.h"
#include "core/checkpoint/run_folder.h"
#include "tests/checkpoint/tensor_files.h"
#include "tests/cli/saved_run.h"

namespace ranklab {
namespace {

namespace fs = std::filesystem;
using namespace saved_runs;  // NOLINT: the helpers of saved_run.h
using ::testing::AllOf;
using ::testing::HasSubstr;

CheckpointManifest manifest_of(const std::string& folder) { return Checkpoint(checkpoint_named(folder)).manifest(); }

// A resharded checkpoint has the same pieces, under the same names, as one that this layout wrote.
void expect_cut_as_runs_do(const std::string& model, const std::vector<std::string>& layouts, const std::string& name) {
  const std::string base = saved(model, "--world-size 2 --dp 2", name + "_base");
  for (size_t i = 0; i < layouts.size(); ++i) {
    const std::string id = name + std::to_string(i);
    const CheckpointManifest want = manifest_of(saved(model, layouts[i], id));
    const std::string folder = temporary_path("ranklab_cut_" + id);
    shell("ckpt reshard " + base + " " + folder + " " + layouts[i]);
    const CheckpointManifest got = manifest_of(folder);
    EXPECT_EQ(got.layout, want.layout) << layouts[i];
    EXPECT_EQ(got.config.at("parallel.pipeline_schedule"), want.config.at("parallel.pipeline_schedule"));
    EXPECT_EQ(got.config.at("train.global_batch_size"), "16");
    ASSERT_EQ(got.files.size(), want.files.size()) << layouts[i];
    ASSERT_EQ(got.tensors.size(), want.tensors.size()) << layouts[i];
    for (const auto& [tensor, stored] : want.tensors) {
      EXPECT_EQ(got.tensors.at(tensor).shape, stored.shape) << tensor;
      EXPECT_THAT(got.tensors.at(tensor).slices, ::testing::UnorderedElementsAreArray(stored.slices))
          << layouts[i] << " " << tensor;
    }
    EXPECT_THAT(shell("ckpt diff " + base + " " + folder), HasSubstr("bit for bit"));
    EXPECT_THAT(shell("ckpt verify " + folder), HasSubstr("sound"));
  }
}

TEST(CkptReshard, DenseLayouts) {
  expect_cut_as_runs_do(kDense,
                        {"--world-size 1", "--world-size 2 --tp 2", "--world-size 3 --pp 3",
                         "--world-size 8 --dp 8 --zero-stage 2 --num-distributed-optimizer-instances 2",
                         "--world-size 8 --tp 2 --pp 2 --zero-stage 1", "--world-size 4 --dp 4 --zero-stage 2",
                         "--world-size 4 --tp 2 --dp 2 --no-sequence-parallel",
                         "--world-size 2 --pp 2 --pipeline-layout 1,2", "--world-size 4 --dp 4 --zero-stage 3"},
                        "dense");
}

TEST(CkptReshard, LayoutsOfExperts) {
  expect_cut_as_runs_do(
      kExperts,
      {"--world-size 4 --ep 4", "--world-size 4 --tp 2 --ep 2 --zero-stage 1", "--world-size 4 --ep 2 --etp 2",
       "--world-size 4 --pp 2 --ep 2 --zero-stage 2", "--world-size 2 --pp 2 --pipeline-schedule dualpipe"},
      "experts");
}

// Its buckets are in 16 bits, what is saved is not.
TEST(CkptReshard, MastersOfBf16) {
  expect_cut_as_runs_do(std::string(kDense) + " --bf16", {"--world-size 4 --tp 2 --zero-stage 2"}, "bf16");
}

TEST(CkptReshard, OneRankIsTheDefaultAndADivisionThatFailsIsNamed) {
  const std::string base = saved(kDense, "--world-size 2 --dp 2", "default");
  const std::string folder = temporary_path("ranklab_cut_default");
  shell("ckpt reshard " + base + " " + folder);
  EXPECT_EQ(manifest_of(folder).layout.at("world"), 1);
  EXPECT_THAT(run_command(RANKLAB_PROGRAM " ckpt verify " + folder).output, HasSubstr(" tensors in 1 file, "));
  const Outcome again = run_command(RANKLAB_PROGRAM " ckpt reshard " + base + " " + folder + " 2>&1");
  EXPECT_EQ(again.exit_code, 2);
  EXPECT_THAT(again.output, HasSubstr("is not empty"));
  const Outcome three = run_command(RANKLAB_PROGRAM " ckpt reshard " + base + " " + folder + "_3 --tp 3 2>&1");
  EXPECT_EQ(three.exit_code, 2);
  EXPECT_THAT(three.output,
              AllOf(HasSubstr("--num-attention-heads is not divisible by --tp"), HasSubstr("want --tp in {1, 2, 4"),
                    HasSubstr("from '" + checkpoint_named(base) + "'"), HasSubstr("do: choose another layout")));
  EXPECT_THAT(run_command(RANKLAB_PROGRAM " ckpt reshard " + base + " " + folder + "_3 --tp 0 2>&1").output,
              HasSubstr("got --tensor-model-parallel-size 0"));
  EXPECT_FALSE(fs::exists(folder + "_3"));
}

// A different model has different tensors; precision does not depend on the layout.
TEST(CkptReshard, TheModelStaysAsItIs) {
  const std::string base = saved(kDense, "--world-size 2 --dp 2", "kept");
  const std::string folder = temporary_path("ranklab_cut_kept"), command = "ckpt reshard " + base + " " + folder + " ";
  const auto refused = [&](const std::string& arguments) {
    const Outcome run = run_command(RANKLAB_PROGRAM " " + command + arguments + " 2>&1");
    EXPECT_EQ(run.exit_code, 2) << arguments << "\n" << run.output;
    EXPECT_FALSE(fs::exists(folder));
    return run.output;
  };
  for (const auto& [given, origin] :
       {std::pair{"--set model.num_layers=1", "[--set]"}, {"--num-layers 1", "[flag --num-layers]"}})
    EXPECT_THAT(refused(given), AllOf(HasSubstr(origin),
                                      HasSubstr("the model of a checkpoint stays as it is; got "
                                                "model.num_layers = 1; want model.num_layers = 3"),
                                      HasSubstr("do: leave model.num_layers out")));
  EXPECT_THAT(refused("--fp8 --fp4"), AllOf(HasSubstr("precision.fp16 from '" + checkpoint_named(base)),
                                            HasSubstr("do: leave the others out")));
  shell(command + "--num-layers 3 --set model.seq_length=16");
}

TEST(SavedModel, ItsSettingsGiveWayToSet) {
  const std::string base = saved(kDense, "--world-size 2 --dp 2", "set");
  EXPECT_THAT(shell("model info " + base), HasSubstr("sequence 32"));
  EXPECT_THAT(shell("model info " + base + " --set model.seq_length=16"), HasSubstr("sequence 16"));
}

// Saved by a program with a layout setting that this one does not have.
TEST(CkptReshard, SettingsOfAnotherVersionAreNoObstacle) {
  const std::string base = saved(kDense, "--world-size 2 --dp 2", "version");
  const std::string step = checkpoint_named(base);
  CheckpointManifest manifest = read_manifest(step + "/manifest.json");
  manifest.config["parallel.of_tomorrow"] = "3";
  std::ofstream(step + "/manifest.json") << manifest_text(manifest);
  const std::string folder = temporary_path("ranklab_cut_version");
  shell("ckpt reshard " + base + " " + folder + " --tp 2");
  EXPECT_FALSE(manifest_of(folder).config.contains("parallel.of_tomorrow"));
  EXPECT_EQ(manifest_of(folder).config.at("parallel.tp"), "2");
  EXPECT_THAT(shell("ckpt diff " + base + " " + folder), HasSubstr("bit for bit"));
}

// With the recipe's own blocks of 32 numbers two ranks could not split an MLP of width 96.
TEST(CkptReshard, BlocksOfNumbersAreThoseOfTheRun) {
  const std::string base = saved(
      "--num-layers 2 --hidden-size 64 --ffn-hidden-size 96 --num-attention-heads 4 --seq-length 32 "
      "--precision-recipe mxfp8 --quantization-block-size 16",
      "--world-size 1", "blocks");
  const std::string folder = temporary_path("ranklab_blocks_tp2");
  shell("ckpt reshard " + base + " " + folder + " --tp 2");
  EXPECT_EQ(manifest_of(folder).config.at("precision.block_size"), "16");
  EXPECT_THAT(shell("ckpt diff " + base + " " + folder), HasSubstr("bit for bit"));
  // Nor are half a sequence's tokens of a rank whole blocks; a batch of the run had more of them.
  shell("ckpt reshard " + base + " " + folder + "_cp --cp 4");
}

// A run's settings file has its batch, too, which no piece depends on.
TEST(CkptReshard, TheBatchOfASettingsFileIsNotAskedAbout) {
  const std::string base = saved(kDense, "--world-size 1", "settings"), folder = temporary_path("ranklab_settings_dp4");
  const std::string batch = " --global-batch-size 24 --micro-batch-size 3 --rampup-batch-size 3 3 60 ";
  shell("train --world-size 1 --print-config " + batch + kDense + " > " + base + "/run.toml");
  shell("ckpt reshard " + base + " " + folder + " -c " + base + "/run.toml --dp 4 --world-size 4");
  EXPECT_EQ(manifest_of(folder).layout.at("dp"), 4);
}

TEST(CkptConvert, ThereAndBackIsTheSameCheckpoint) {
  const std::string base = saved(kExperts, "--world-size 2 --dp 2 --zero-stage 1", "convert");
  const std::string path = temporary_path("ranklab_one") + ".safetensors", back = temporary_path("ranklab_back");
  shell("ckpt convert " + base + " " + path);
  const SafetensorsFile file(path);
  EXPECT_EQ(file.tensor("exp_avg/layers.1.mlp.experts.3.down.weight").shape, (std::vector<int64_t>{32, 128}));
  shell("ckpt convert " + path + " " + back);
  EXPECT_THAT(shell("ckpt diff " + base + " " + back), HasSubstr("bit for bit"));
  const CheckpointManifest a = manifest_of(base), b = manifest_of(back);
  EXPECT_EQ(a.consumed_samples, b.consumed_samples);
  EXPECT_EQ(a.data, b.data);
  EXPECT_EQ(b.step, 1);
  shell("ckpt convert " + base + " " + path + "_half --weights-only --dtype bf16");
  const SafetensorsFile half(path + "_half");
  fs::remove(path);
  fs::remove(path + "_half");
  EXPECT_EQ(half.tensor("weight/head.weight").type, TensorType::kBF16);
  EXPECT_EQ(half.tensor("buffer/layers.1.mlp.router.bias").type, TensorType::kF32);
  EXPECT_EQ(half.find("exp_avg/head.weight"), nullptr);
}

TEST(CkptConvert, MomentsAndWeightsOf16BitsStayOf16Bits) {
  const std::string base =
      saved(kDense, "--world-size 1 --bf16 --main-params-dtype bf16 --exp-avg-dtype bf16", "16bit");
  const std::string path = temporary_path("ranklab_16bit") + ".safetensors",
                    back = temporary_path("ranklab_16bit_back");
  shell("ckpt convert " + base + " " + path);
  shell("ckpt convert " + path + " " + back);
  fs::remove(path);
  EXPECT_EQ(Checkpoint(checkpoint_named(back)).tensor("exp_avg/embedding.weight").type, TensorType::kBF16);
  EXPECT_THAT(shell("ckpt diff " + base + " " + back), HasSubstr("bit for bit"));
}

// A typing error in the second name: nothing is lost.
TEST(CkptConvert, NeverOverItsInputNorOverWhatOthersMade) {
  const std::string base = saved(kDense, "--world-size 1", "over");
  const std::string part = checkpoint_named(base) + "/rank_00000.safetensors";
  const std::string bytes = checkpoint_samples::bytes_of(part);
  const auto refused = [&](const std::string& to, const std::string& why) {
    const Outcome outcome = run_command(RANKLAB_PROGRAM " ckpt convert " + base + " " + to + " 2>&1");
    EXPECT_EQ(outcome.exit_code, 2) << to;
    EXPECT_THAT(outcome.output, HasSubstr(why)) << to;
  };
  for (const std::string& to : {part, checkpoint_named(base) + "/manifest.json", base + "/latest"})
    refused(to + " --force", "an input of the same command");
  EXPECT_EQ(checkpoint_samples::bytes_of(part), bytes);
  shell("ckpt verify " + base);

  const std::string path = temporary_path("ranklab_over");
  checkpoint_samples::put_bytes(path, "a thesis");
  refused(path, "--force");
  EXPECT_EQ(checkpoint_samples::bytes_of(path), "a thesis");
  shell("ckpt convert " + base + " " + path + " --force");
  shell("ckpt convert " + base + " " + path + " --weights-only");  // its own
  const std::string logits = temporary_path("ranklab_over_logits");
  shell("generate --load " + base + " --tokens 1 --print-logits " + logits);
  shell("generate --load " + base + " --tokens 1 --print-logits " + logits);
  refused(logits, "--force");
}

TEST(ModelInfoOfAFolder, OfAFolderIsThatOfItsSettings) {
  const std::string base = saved(kDense, "--world-size 2 --tp 2", "info"), out = temporary_path("ranklab_info_hf");
  shell("ckpt export-hf " + base + " " + out + " --max-shard-size 20KB --dtype bf16");
  const nlohmann::json want = nlohmann::json::parse(shell(std::string("model info --json ") + kDense)).at("data");
  for (const std::string& folder : {base, out}) {
    const nlohmann::json got = nlohmann::json::parse(shell("model info --json --stats " + folder)).at("data");
    EXPECT_EQ(got.at("total_parameters"), want.at("total_parameters")) << folder;
    uint64_t elements = 0;
    for (const nlohmann::json& row : got.at("tensors")) {
      if (row.at("name").get<std::string>().starts_with("weight/")) elements += row.at("elements").get<uint64_t>();
      EXPECT_EQ(row.at("nans"), 0);
    }
    EXPECT_EQ(elements, want.at("total_parameters"));
  }
  EXPECT_THAT(shell("model info --stats " + base),
              AllOf(HasSubstr("exp_avg_sq/final_norm.weight"), HasSubstr("zeros")));
}

// A step with a learning rate of 0 leaves the initial weights, from which a preset's histograms are drawn: the same in
// every bin, whatever layout wrote them.
TEST(ModelInfoOfAFolder, HistogramsOfInitialWeightsAreThoseOfAPreset) {
  const auto weights = [](const std::string& of) {
    return nlohmann::json::parse(shell("model info --json --histograms " + of)).at("data").at("weights");
  };
  const std::string experts = std::string(kExperts) + " --seed 7";
  const nlohmann::json drawn = weights(experts);
  EXPECT_GT(drawn.size(), 20u);
  const std::string folder =
      saved(experts, "--world-size 4 --tp 2 --pp 2 --ep 2 --lr 0 --min-lr 0 --weight-decay 0", "drawn");
  const nlohmann::json stored = weights(folder);
  ASSERT_EQ(stored.size(), drawn.size());
  for (size_t i = 0; i < drawn.size(); ++i) {
    const nlohmann::json &want = drawn[i], &got = stored[i];
    for (const char* exact : {"parameter", "tensors", "elements", "min", "max", "zeros", "outlier_share", "histogram"})
      EXPECT_EQ(got.at(exact), want.at(exact)) << want.at("parameter") << " " << exact;
    for (const char* near : {"mean", "std", "kurtosis"})
      EXPECT_NEAR(got.at(near).get<double>(), want.at(near).get<double>(), 1e-9) << want.at("parameter");
    double counted = 0;
    for (const nlohmann::json& count : want.at("histogram").at("counts")) counted += count.get<double>();
    EXPECT_EQ(counted, want.at("elements").get<double>());
  }
  EXPECT_NE(weights(kExperts), drawn) << "of another seed";
  EXPECT_THAT(shell("model info --histograms " + folder),
              AllOf(HasSubstr("layers.*.mlp.experts.*.gate_up.weight"), HasSubstr("kurtosis"), HasSubstr("outliers")));
}

}  // namespace
}  // namespace ranklab
