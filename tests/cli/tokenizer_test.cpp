// A tokenizer from its training to the text of a model that was trained with it, as a user goes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/cli/ranklab_program.h"

namespace ranklab {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::StartsWith;

// One tokenizer, its shards and a checkpoint of a run on them, for all cases.
class TokenizerCommands : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder() = temporary_path("ranklab_tokenizer");
    fs::create_directories(folder());
    std::ofstream text(at("text.txt"));
    for (int i = 0; i < 400; ++i) text << "The rank " << i * i << " sends its gradients; they're summed, naïvely.\n";
    text.close();
    const auto run = [](const std::string& words) {
      const Outcome outcome = ranklab_and_errors(words);
      EXPECT_EQ(outcome.exit_code, 0) << words << "\n" << outcome.output;
    };
    run("data tokenizer train " + at("text.txt") + " --vocab-size 400 -o " + at("tok"));
    run("data prepare " + at("text.txt") + " --tokenizer " + at("tok") + " --append-eod --out " + at("shards"));
    run("train " + kRun + " --data-path " + at("shards") + " --train-iters 2 --log-interval 1 --log-dir " + at("log") +
        " --save " + at("ckpt"));
  }
  static void TearDownTestSuite() { fs::remove_all(folder()); }
  static fs::path& folder() {
    static fs::path kFolder;
    return kFolder;
  }
  static std::string at(const std::string& name) { return (folder() / name).string(); }
  static inline const std::string kRun =
      "--gemm mkl --num-layers 1 --hidden-size 32 --seq-length 32 --gbs 8 --world-size 2 --tp 2 --vocab-size 408";
};

TEST_F(TokenizerCommands, EncodeAndDecodeAreEachOthersReverse) {
  const auto encoded = data_of("data tokenizer encode --tokenizer " + at("tok") + " --text 'The rank 4 sends'");
  std::string ids;
  for (const auto& id : encoded.at("tokens")) ids += id.dump() + " ";
  EXPECT_LT(encoded.at("count"), 10) << "merges are used";
  const std::string decode = "data tokenizer decode --tokenizer " + at("tok/tokenizer.json");
  EXPECT_EQ(data_of(decode + " --ids '" + ids + "'").at("text"), "The rank 4 sends");
  EXPECT_EQ(data_of(decode + " --ids " + ids).at("text"), "The rank 4 sends") << "words apart, as encode prints them";
  EXPECT_EQ(ranklab(decode + " --ids '0 " + ids + "' --skip-special-tokens").output, "The rank 4 sends");
  const Outcome plain = ranklab("data tokenizer encode --tokenizer " + at("tok") + " --text 'The rank 4 sends'");
  EXPECT_EQ(plain.output, ids.substr(0, ids.size() - 1) + "\n");
}

TEST_F(TokenizerCommands, AFailedTrainingLeavesNoFolderBehindButTheUsers) {
  fs::create_directories(at("mine"));
  for (const char* out : {"mine", "new"})
    EXPECT_EQ(ranklab_and_errors("data tokenizer train " + at("absent.txt") + " -o " + at(out)).exit_code, 1);
  EXPECT_TRUE(fs::exists(at("mine")));
  EXPECT_FALSE(fs::exists(at("new")));
}

TEST_F(TokenizerCommands, InfoSaysWhatItIsMadeOfAndHowFast) {
  const auto info = data_of("data tokenizer info --tokenizer " + at("tok") + " --bench " + at("text.txt"));
  EXPECT_EQ(info.at("vocab_size"), 400);
  EXPECT_EQ(info.at("end_token"), 0);
  EXPECT_EQ(info.at("bench").at("bytes"), fs::file_size(at("text.txt")));
  EXPECT_GT(info.at("bench").at("mb_per_s"), 0);
  EXPECT_EQ(data_of("data info " + at("shards")).at("tokenizer"), info.at("hash"));
}

TEST_F(TokenizerCommands, ABatchIsShownAsItsText) {
  const auto batch = data_of("data batch --step 0 " + kRun + " --data-path " + at("shards"));
  const auto& sequence = batch.at("batch")[0].at("microbatches")[0].at("sequences")[0];
  EXPECT_THAT(sequence.at("text").get<std::string>(), HasSubstr(" gradients; they're summed, naïvely.\nThe rank"));
}

TEST_F(TokenizerCommands, ACheckpointSpeaksItsTextWhereverItGoes) {
  EXPECT_EQ(text_of_file(at("ckpt/step_00000002/tokenizer.json")), text_of_file(at("tok/tokenizer.json")));
  const std::string generate = "generate --gemm mkl --tokens 8 --top-k 1 --prompt 'The rank' --load ";
  const auto first = data_of(generate + at("ckpt"));
  EXPECT_THAT(first.at("text").get<std::string>(), StartsWith("The rank"));
  EXPECT_EQ(first.at("prompt_tokens"), 2);
  const std::vector<std::string> steps = {"ckpt reshard " + at("ckpt") + " " + at("resharded") + " --tp 2",
                                          "ckpt convert " + at("ckpt") + " " + at("one.safetensors"),
                                          "ckpt convert " + at("one.safetensors") + " " + at("converted"),
                                          "ckpt export-hf " + at("ckpt") + " " + at("hf"),
                                          "ckpt import-hf " + at("hf") + " " + at("back")};
  for (const std::string& step : steps) EXPECT_EQ(ranklab_and_errors(step).exit_code, 0) << step;
  EXPECT_EQ(text_of_file(at("hf/tokenizer.json")), text_of_file(at("tok/tokenizer.json")));
  EXPECT_THAT(text_of_file(at("hf/tokenizer_config.json")), HasSubstr(R"("eos_token": "<|endoftext|>")"));
  for (const char* copy : {"resharded", "converted", "back"})
    EXPECT_EQ(data_of(generate + at(copy)).at("text"), first.at("text"));
}

// A run that starts from a checkpoint and has data without a tokenizer keeps the checkpoint's.
TEST_F(TokenizerCommands, ARunThatGoesOnKeepsIt) {
  const Outcome more = ranklab_and_errors("train " + kRun + " --mock-data --finetune --train-iters 1 --load " +
                                          at("ckpt") + " --save " + at("more") + " --log-dir " + at("log2"));
  EXPECT_EQ(more.exit_code, 0) << more.output;
  EXPECT_EQ(text_of_file(at("more/step_00000001/tokenizer.json")), text_of_file(at("tok/tokenizer.json")));
}

// It is possible, but rarely meant.
TEST_F(TokenizerCommands, FinetuningOnOtherTokensIsWarnedOf) {
  ASSERT_EQ(ranklab_and_errors("data prepare " + at("text.txt") + " --out " + at("bytes")).exit_code, 0);
  const auto tuned = [&](const std::string& data) {
    return ranklab_and_errors("train " + kRun + " --data-path " + at(data) + " --finetune --train-iters 1 --load " +
                              at("ckpt") + " --log-dir " + at("log_" + data));
  };
  const std::string warning = "warning: --finetune with other tokens than the checkpoint's";
  const Outcome other = tuned("bytes"), own = tuned("shards");
  EXPECT_EQ(other.exit_code, 0) << other.output;
  EXPECT_THAT(other.output, HasSubstr(warning));
  EXPECT_THAT(other.output, HasSubstr("the data's tokenizer is none, and the checkpoint's is the one with hash "));
  EXPECT_EQ(own.exit_code, 0) << own.output;
  EXPECT_THAT(own.output, testing::Not(HasSubstr(warning)));
}

TEST_F(TokenizerCommands, TrainingEndsWithASampleOfTheText) {
  const Outcome run =
      ranklab_and_errors("train " + kRun + " --data-path " + at("shards") +
                         " --train-iters 1 --sample-tokens 8 --sample-prompt 'The rank' --log-dir " + at("log3"));
  EXPECT_THAT(run.output, HasSubstr("sample:\nThe rank"));
  EXPECT_THAT(run.output, HasSubstr(" tokens, "));
  EXPECT_THAT(run.output, testing::Not(HasSubstr("byte tokens")));
}

// A tokenizer of another kind does not keep weights from being read.
TEST_F(TokenizerCommands, AnImportedFolderMayHaveATokenizerThatRanklabDoesNotRead) {
  ASSERT_EQ(ranklab_and_errors("ckpt export-hf " + at("ckpt") + " " + at("other") + " --tokenizer none").exit_code, 0);
  std::ofstream(at("other/tokenizer.json")) << R"({"model": {"type": "Unigram", "vocab": []}})";
  const Outcome import = ranklab_and_errors("ckpt import-hf " + at("other") + " " + at("imported"));
  EXPECT_EQ(import.exit_code, 0) << import.output;
  EXPECT_THAT(import.output, HasSubstr("its tokenizer is left out"));
  EXPECT_FALSE(fs::exists(at("imported/step_00000000/tokenizer.json")));
}

}  // namespace
}  // namespace ranklab
