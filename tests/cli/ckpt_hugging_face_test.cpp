// ranklab ckpt export-hf, import-hf and inspect of a Hugging Face folder: a round trip, and which files come along.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/checkpoint/safetensors.h"
#include "tests/checkpoint/tensor_files.h"
#include "tests/cli/saved_run.h"

namespace ranklab {
namespace {

namespace fs = std::filesystem;
using namespace saved_runs;  // NOLINT: the helpers of saved_run.h
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(CkptHuggingFace, IsInspectedAsItLies) {
  const std::string base = saved(kExperts, "--world-size 2 --ep 2", "hf_inspect"),
                    out = temporary_path("ranklab_hf_inspect");
  shell("ckpt export-hf " + base + " " + out + " --max-shard-size 100KB");
  const nlohmann::json index =
      nlohmann::json::parse(checkpoint_samples::bytes_of(out + "/model.safetensors.index.json"));
  const nlohmann::json data = nlohmann::json::parse(shell("ckpt inspect " + out + " --json")).at("data");
  EXPECT_EQ(data.at("architecture"), "DeepseekV3ForCausalLM");
  EXPECT_EQ(data.at("model").at("moe.num_experts"), "8");
  EXPECT_GT(data.at("files").size(), 1u);
  ASSERT_EQ(data.at("tensors").size(), index.at("weight_map").size());
  uint64_t bytes = 0;
  for (const nlohmann::json& tensor : data.at("tensors")) {
    EXPECT_EQ(tensor.at("file"), index.at("weight_map").at(tensor.at("name").get<std::string>()));
    bytes += tensor.at("bytes").get<uint64_t>();
  }
  EXPECT_EQ(bytes, index.at("metadata").at("total_size"));
  checkpoint_samples::put_bytes(out + "/tokenizer_config.json", "{}");
  const std::string text = shell("ckpt inspect " + out);
  EXPECT_THAT(text, HasSubstr(": a Hugging Face folder of DeepseekV3ForCausalLM, "));
  EXPECT_THAT(text, HasSubstr("other files: tokenizer_config.json\n"));
  EXPECT_THAT(text, HasSubstr("model.embed_tokens.weight "));
  EXPECT_THAT(text, HasSubstr("model-00001-of-000"));
  // For a model of an unknown class the tensors are shown, too, and why import-hf rejects it.
  checkpoint_samples::put_bytes(out + "/config.json", "{\"architectures\": [\"MambaForCausalLM\"]}");
  const std::string other = shell("ckpt inspect " + out);
  EXPECT_THAT(other, HasSubstr("a Hugging Face folder of MambaForCausalLM, "));
  EXPECT_THAT(other, HasSubstr("ckpt import-hf rejects it: "));
  EXPECT_THAT(other, HasSubstr("model.embed_tokens.weight "));
}

// A folder is verified and compared as a file is, however many files its tensors are in.
TEST(CkptHuggingFace, IsVerifiedAndCompared) {
  const std::string base = saved(kExperts, "--world-size 2 --ep 2", "hf_verify"),
                    whole = temporary_path("ranklab_hf_whole"), apart = temporary_path("ranklab_hf_apart");
  shell("ckpt export-hf " + base + " " + whole);
  shell("ckpt export-hf " + base + " " + apart + " --max-shard-size 100KB");
  EXPECT_THAT(shell("ckpt verify " + apart), HasSubstr(apart + ": sound, "));
  const nlohmann::json sound = nlohmann::json::parse(shell("ckpt verify " + apart + " --json")).at("data");
  EXPECT_GT(sound.at("files"), 1);
  EXPECT_THAT(shell("ckpt diff " + whole + " " + apart), HasSubstr("the same: " + sound.at("tensors").dump() + " "));
  EXPECT_THAT(shell("ckpt diff " + whole + "/model.safetensors " + apart), HasSubstr("the same: "));

  std::string config = checkpoint_samples::bytes_of(apart + "/config.json");
  config.replace(config.find("\"vocab_size\""), 12, "\"vocab_tail\"");
  checkpoint_samples::put_bytes(apart + "/config.json", config);
  EXPECT_THAT(shell("ckpt diff " + whole + " " + apart),
              HasSubstr("config.json that differs (ignored): \"vocab_size\", \"vocab_tail\""));

  const nlohmann::json index =
      nlohmann::json::parse(checkpoint_samples::bytes_of(apart + "/model.safetensors.index.json"));
  const std::string damaged = index.at("weight_map").at("model.norm.weight"), file = apart + "/" + damaged;
  std::string bytes = checkpoint_samples::bytes_of(file);
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  checkpoint_samples::put_bytes(file, bytes);
  const Outcome refused = run_command(RANKLAB_PROGRAM " ckpt verify " + apart + " 2>&1");
  EXPECT_EQ(refused.exit_code, 8) << refused.output;
  EXPECT_THAT(refused.output, AllOf(HasSubstr("damaged: tensor "), HasSubstr(damaged)));
}

// The model is exported, imported and trained further; and gives the same output on any number of ranks.
TEST(CkptHuggingFace, OutAndInAndOn) {
  const std::string base = saved(kExperts, "--world-size 2 --ep 2", "hf");
  const std::string out = temporary_path("ranklab_hf"), in = temporary_path("ranklab_from_hf"), again = out + "_2";
  const nlohmann::json exported =
      nlohmann::json::parse(shell("ckpt export-hf " + base + " " + out + " --json")).at("data");
  EXPECT_EQ(exported.at("architecture"), "DeepseekV3ForCausalLM");
  EXPECT_EQ(exported.at("files"), nlohmann::json({"model.safetensors", "config.json"}));
  const std::string generation =
      "{\n  \"_from_model_config\": true,\n  \"eos_token_id\": [\n    1,\n    2\n  ],\n  \"temperature\": 0.6\n}\n";
  checkpoint_samples::put_bytes(out + "/generation_config.json", generation);
  const nlohmann::json imported = nlohmann::json::parse(shell("ckpt import-hf " + out + " " + in + " --json"));
  EXPECT_EQ(imported.at("warnings"), nlohmann::json::array());
  shell("ckpt export-hf " + in + " " + again);
  for (const char* file : {"/model.safetensors", "/config.json", "/generation_config.json"})
    EXPECT_EQ(checkpoint_samples::bytes_of(out + file), checkpoint_samples::bytes_of(again + file)) << file;
  fs::remove_all(again);

  const auto logits = [&](const std::string& checkpoint, const std::string& flags) {
    const std::string path = temporary_path("ranklab_logits") + ".safetensors";
    const nlohmann::json told = nlohmann::json::parse(
        shell("generate --load " + checkpoint + " --prompt Genesis --tokens 8 --top-k 1 --gemm mkl --json " +
              "--print-logits " + path + " " + flags));
    EXPECT_EQ(told.at("data").at("prompt_tokens"), 7);
    const SafetensorsFile file(path);
    EXPECT_EQ(file.tensor("logits").shape, (std::vector<int64_t>{7, 258}));
    const auto bytes = file.read(file.tensor("logits"));
    fs::remove(path);
    return std::pair(bytes, told.at("data").at("tokens"));
  };
  const auto first = logits(base, "");
  EXPECT_EQ(first, logits(in, ""));
  EXPECT_EQ(first.second, logits(base, "--tp 2").second);
  EXPECT_NE(first.second, nlohmann::json::parse(shell(std::string("generate ") + kExperts +
                                                      " --prompt Genesis --tokens 8 --top-k 1 --json"))
                              .at("data")
                              .at("tokens"));

  const std::string log = temporary_path("ranklab_tuned");
  const std::string tuned = shell("train --config " + in + "/model.toml --load " + in +
                                  " --world-size 2 --dp 2 --train-iters 1 --global-batch-size 16 --mock-data "
                                  "--eval-interval 0 --sample-tokens 0 --no-trace --log-dir " +
                                  log + " --save " + log + "/ck");
  EXPECT_THAT(tuned, HasSubstr("imported"));
  shell("ckpt export-hf " + log + "/ck " + again);
  EXPECT_EQ(checkpoint_samples::bytes_of(again + "/generation_config.json"), generation);
}

// The settings that an import writes name them all, those of other kinds of models too.
TEST(CkptHuggingFace, NoLineOfWrittenSettingsIsWithoutEffect) {
  for (const auto& [name, flags, layout] :
       {std::tuple("experts", kExperts, "--ep 2"), std::tuple("dense", kDense, "--tp 2")}) {
    const std::string base = saved(flags, "--world-size 1", name);
    const std::string out = temporary_path("ranklab_quiet_hf"), in = temporary_path("ranklab_quiet");
    shell("ckpt export-hf " + base + " " + out);
    shell("ckpt import-hf " + out + " " + in);
    const std::string told = shell("train --strict --config " + in + "/model.toml --load " + in + " --world-size 2 " +
                                   layout + " --train-iters 1 --mock-data --sample-tokens 0 --no-trace --dry-run");
    EXPECT_THAT(told, Not(HasSubstr("no effect"))) << name;
    fs::remove_all(out);
    fs::remove_all(in);
  }
}

// A model that rotates adjacent elements comes back as one that rotates halves, of the same function.
TEST(CkptHuggingFace, RowsOfPairsAreWrittenInTheFamilysOrder) {
  const std::string text = temporary_path("ranklab_pairs.txt");
  std::ofstream(text) << "In the beginning God created";  // within any context
  const auto loss = [&](const std::string& checkpoint) {
    return nlohmann::json::parse(shell("eval --load " + checkpoint + " --text " + text + " --json"))
        .at("data")
        .at("text")
        .at("nats_per_token")
        .get<double>();
  };
  const std::string sizes =
      "--hidden-size 32 --ffn-hidden-size 48 --num-attention-heads 4 --seq-length 32 --init-method-std 0.5 ";
  for (const auto& [name, flags] :
       {std::pair("dense_pairs", "--num-layers 3 --num-query-groups 2 --qk-layernorm " + sizes),
        std::pair("latent_pairs", "--preset deepseek_v3_tiny --num-layers 4 " + sizes)}) {
    const std::string base = saved(flags + "--rotary-interleaved", "--world-size 1", name);
    const std::string out = temporary_path("ranklab_pairs_hf"), in = temporary_path("ranklab_pairs");
    shell("ckpt export-hf " + base + " " + out);
    shell("ckpt import-hf " + out + " " + in);
    EXPECT_NEAR(loss(in), loss(base), 1e-4) << name;
    const std::string wrong = saved(flags, "--world-size 1", std::string(name) + "_not");
    EXPECT_GT(std::abs(loss(wrong) - loss(base)), 1e-3) << "the order matters to this text";
    for (const std::string& folder : {out, in}) fs::remove_all(folder);
  }
  fs::remove(text);
}

TEST(CkptHuggingFace, OfManyFilesTheFirstAndTheLastAreNamedAndALostTemplateIsTold) {
  const std::string base = saved(kDense, "--world-size 1", "many");
  const std::string out = temporary_path("ranklab_many_hf"), in = temporary_path("ranklab_many_in");
  EXPECT_THAT(shell("ckpt export-hf " + base + " " + out + " --max-shard-size 1"),
              AllOf(HasSubstr("  model-00001-of-000"), HasSubstr(" to model-000"), HasSubstr(", config.json\n"),
                    Not(HasSubstr("model-00002"))));
  checkpoint_samples::put_bytes(out + "/tokenizer_config.json", "{\"chat_template\": \"{{ x }}\"}\n");
  EXPECT_THAT(shell("ckpt import-hf " + out + " " + in),
              HasSubstr("note: its tokenizer_config.json and chat template are left out: no tokenizer"));
  fs::remove_all(out);
  fs::remove_all(in);
}

TEST(CkptHuggingFace, WhatBelongsToTheTokenizerComesBack) {
  const std::string model =
      "--num-layers 1 --hidden-size 32 --ffn-hidden-size 48 --num-attention-heads 4 --seq-length 32 --vocab-size 256";
  const std::string base = saved(model, "--world-size 1", "chat");
  const std::string out = temporary_path("ranklab_chat_hf"), in = temporary_path("ranklab_chat_in"), again = out + "_2";
  shell("ckpt export-hf " + base + " " + out);
  nlohmann::ordered_json config = {{"tokenizer_class", "GPT2Tokenizer"},
                                   {"eos_token", "a"},
                                   {"pad_token", {{"content", "b"}, {"lstrip", false}}},
                                   {"model_max_length", 77},
                                   {"chat_template", "an older one"}};
  nlohmann::ordered_json file = config;
  file["added_tokens_decoder"] = {{"97", {{"content", "a"}}}};  // tokenizer.json says these
  checkpoint_samples::put_bytes(out + "/tokenizer_config.json", file.dump());
  config["chat_template"] = "{% for m in messages %}\xc3\xa4 '{{ m }}'\n{% endfor %}";
  checkpoint_samples::put_bytes(out + "/chat_template.jinja", config["chat_template"].get<std::string>());
  const auto kept = [](const std::string& folder) {
    return nlohmann::ordered_json::parse(checkpoint_samples::bytes_of(folder + "/tokenizer_config.json"));
  };
  const nlohmann::json imported = nlohmann::json::parse(shell("ckpt import-hf " + out + " " + in + " --json"));
  EXPECT_EQ(imported.at("warnings"), nlohmann::json::array());
  // A run that resumes with its tokens keeps it.
  checkpoint_samples::put_bytes(in + "/text.txt", std::string(400, 'x'));
  shell("data prepare " + in + "/text.txt --tokenizer " + out + " --out " + in + "/shards");
  shell("train --config " + in + "/model.toml --load " + in + " --finetune --world-size 1 --train-iters 1 --gbs 1 " +
        "--data-path " + in + "/shards --eval-interval 0 --sample-tokens 0 --no-trace --log-dir " + in +
        "/log --save " + in + "/ck");
  for (const std::string& from : {in, in + "/ck", out}) {
    shell("ckpt export-hf " + from + " " + again);
    EXPECT_EQ(kept(again), config) << from;
    fs::remove_all(again);
  }
  // With tokens outside its vocabulary the tokenizer does not belong to the model.
  config["eos_token"] = "<|im_end|>";
  checkpoint_samples::put_bytes(out + "/tokenizer_config.json", config.dump());
  EXPECT_THAT(shell("ckpt export-hf " + out + " " + again), HasSubstr("the tokenizer has no '<|im_end|>'"));
  EXPECT_FALSE(kept(again).contains("chat_template"));
  for (const std::string& folder : {out, in, again}) fs::remove_all(folder);
}

TEST(CkptHuggingFace, WhatFailsLeavesNothingBehind) {
  const std::string base = saved(kDense, "--world-size 1", "fails");
  const std::string out = temporary_path("ranklab_fails_hf"), in = temporary_path("ranklab_fails_in");
  shell("ckpt export-hf " + base + " " + out);
  std::string weights = checkpoint_samples::bytes_of(out + "/model.safetensors");
  weights[weights.size() - 5] ^= 1;
  checkpoint_samples::put_bytes(out + "/model.safetensors", weights);
  const Outcome damaged = run_command(RANKLAB_PROGRAM " ckpt import-hf " + out + " " + in + " 2>&1");
  EXPECT_EQ(damaged.exit_code, 8);
  EXPECT_THAT(damaged.output, HasSubstr("model.safetensors"));
  EXPECT_FALSE(fs::exists(in));
  // Files of at most 24 KiB, as on a full disk: the embedding's file does not fit, others do.
  const std::string full = temporary_path("ranklab_fails_full");
  const Outcome lost = run_command("bash -c \"trap '' XFSZ; ulimit -f 24; exec " RANKLAB_PROGRAM " ckpt export-hf " +
                                   base + " " + full + " --max-shard-size 20KB\" 2>&1");
  EXPECT_NE(lost.exit_code, 0) << lost.output;
  EXPECT_FALSE(fs::exists(full));
}

}  // namespace
}  // namespace ranklab
