// Walks the commands that completion knows: each that prints data has --json, which gives one object in the common
// form; --help-all shows every flag; an option that takes one of a few words has them completed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "tests/cli/ranklab_program.h"

namespace ranklab {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

struct CommandFlags {
  std::set<std::string> flags;
  std::map<std::string, std::string> values;  // of an option that takes one: "direct gloo"
};

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream in(text);
  return {std::istream_iterator<std::string>(in), {}};
}

// By path, "train", "trace info": as the completion script of bash has them.
const std::map<std::string, CommandFlags>& all_commands() {
  static const auto kCommands = [] {
    std::map<std::string, CommandFlags> commands;
    std::istringstream lines(run_command("'" RANKLAB_PROGRAM "' completion bash").output);
    const std::regex flags("^ +'ranklab ([a-z- ]+)'\\) flags='([^']*)'.*"),
        value("^ +(.*)\\) takes_value=1; list='(.*)' ;;$");
    const std::regex pattern("'ranklab ([a-z- ]+) (--?[a-z-]+)'");
    std::smatch found;
    for (std::string line; std::getline(lines, line);) {
      if (std::regex_match(line, found, flags)) {
        for (const std::string& flag : words_of(found[2])) commands[found[1]].flags.insert(flag);
      } else if (std::regex_match(line, found, value)) {
        const std::string names = found[1], list = found[2];
        for (std::sregex_iterator it(names.begin(), names.end(), pattern), end; it != end; ++it)
          commands[it->str(1)].values[it->str(2)] = list;
      }
    }
    return commands;
  }();
  return kCommands;
}

bool is_leaf(const std::string& path) {
  const auto next = all_commands().upper_bound(path);
  return next == all_commands().end() || !next->first.starts_with(path + " ");
}

// Commands that print no data, and why.
const std::map<std::string, const char*> kWithoutJson = {
    {"debug", "a conversation"},
    {"launch", "its ranks print, as train does"},
    {"viz", "a window or a picture"},
    {"completion bash", "a script"},
    {"completion zsh", "a script"},
    {"completion fish", "a script"},
    {"config schema", "is JSON already: a JSON Schema"},
    {"schedule export", "writes a CSV"},
    {"schedule import", "writes a CSV"},
    {"lesson start", "text to read"},
    {"lesson run", "pictures to look at"},
    {"lesson hint", "text to read"},
    {"lesson solution", "a C++ file"},
    {"lesson reset", "puts a file back"},
    {"lesson watch", "goes on until it is ended"},
};

struct Example {
  const char* command;  // its path, then "|" and arguments; FOLDER is a folder of the test's own
  int exit_code = 0;
};

constexpr const char* kSmallRun =
    "--num-layers 1 --hidden-size 32 --ffn-hidden-size 32 --seq-length 32 --gbs 8 --mock-data";

// Every command with --json that is cheap to run. The others are covered by their own tests.
const Example kExamples[] = {
    {"train| TINY --print-config"},
    {"train| TINY --dry-run"},
    {"train| TINY --world-size 2 --tp 1 --train-iters 2 --eval-interval 0 --sample-tokens 2 --log-dir FOLDER/run "
     "--save FOLDER/ck"},
    {"trace info|FOLDER/run/trace.json.gz"},
    {"trace stats|FOLDER/run/trace.json.gz"},
    {"trace validate|FOLDER/run/trace.json.gz"},
    {"report|FOLDER/run"},
    {"eval|TINY --text FOLDER/text.txt"},
    {"trace validate|FOLDER/not-sound.json", 4},
    {"trace diff|FOLDER/run/trace.json.gz FOLDER/run/trace.json.gz"},
    {"topo|--world-size 4 --tp 2"},
    {"plan memory|TINY"},
    {"plan run|TINY"},
    {"zero map|TINY --world-size 2 --tp 1 --zero-stage 1"},
    {"model info|gpt_tiny --histograms"},
    {"precision table|e4m3"},
    {"precision quantize|'normal(0,1)'"},
    {"precision recipes|nvfp4"},
    {"precision explain|TINY --fp8"},
    {"schedule list|"},
    {"schedule show|1f1b --pp 2 --num-microbatches 4"},
    {"schedule simulate|1f1b --pp 2 --num-microbatches 4"},
    {"schedule compare|1f1b gpipe --pp 2 --num-microbatches 4"},
    {"schedule check|FOLDER/order.csv"},
    {"list presets|"},
    {"list hardware|"},
    {"list software|"},
    {"list sentinels|"},
    {"list dispatchers|"},
    {"list recipes|"},
    {"list backends|"},
    {"list combinations|"},
    {"list commands|"},
    {"museum list|"},
    {"museum show|norm-unreduced"},
    {"museum run|init-per-shard"},
    {"parity|TINY --world-size 2 --tp 2 --train-iters 1 --audit"},
    {"parity|TINY --world-size 2 --cp 2 --cp-comm-type p2p --train-iters 1 --bf16 --inject rope-local-positions "
     "--no-narrow",
     4},
    {"parity|TINY --world-size 2 --tp 2 --types"},
    {"parity|TINY --world-size 2 --types --all"},
    {"parity|TINY --world-size 2 --mbs 8 --types --all"},  // not the batch of the default layout, but of others
    {"parity|TINY --world-size 2 --tp 2 --types --inject norm-unreduced", 4},
    {"parity|TINY --world-size 2 --tp 2 --train-iters 1 --out FOLDER/parity.svg"},
    {"parity|TINY --world-size 2 --tp 2 --train-iters 1 --inject init-per-shard --out FOLDER/parity.html", 4},
    {"lesson hunt|"},
    {"lesson hunt|3"},
    {"lesson list|"},
    {"lesson progress|"},
    {"lesson check|0 --file LESSONS/00_what_is_a_rank/solution.cpp"},
    {"lesson check|0 --file LESSONS/00_what_is_a_rank/exercise.cpp", 4},
    {"config show|"},
    {"config validate|FOLDER/a.toml"},
    {"config diff|FOLDER/a.toml FOLDER/b.toml"},
    {"config from-torchtitan|NGPU=8 --model.flavor debugmodel"},
    {"config from-megatron|-- --num-layers 2 --hidden-size 64 --num-attention-heads 4 --seq-length 64 "
     "--micro-batch-size 2"},
    {"data prepare|FOLDER/text.txt --out FOLDER/shards"},
    {"data info|FOLDER/shards"},
    {"data export|FOLDER/shards -o FOLDER/exported"},
    {"data tokenizer train|FOLDER/text.txt --vocab-size 257 -o FOLDER/tok"},
    {"data tokenizer encode|--tokenizer FOLDER/tok --text hello"},
    {"data tokenizer decode|--tokenizer FOLDER/tok --ids '1 2'"},
    {"data tokenizer info|--tokenizer FOLDER/tok --bench FOLDER/text.txt"},
    {"data batch|TINY --step 0 --world-size 2 --tp 1"},
    {"ckpt inspect|FOLDER/ck"},
    {"ckpt verify|FOLDER/ck"},
    {"ckpt diff|FOLDER/ck FOLDER/ck"},
    {"ckpt convert|FOLDER/ck FOLDER/one.safetensors"},
    {"ckpt reshard|FOLDER/ck FOLDER/ck2 --world-size 1 --tp 1"},
    {"ckpt export-hf|FOLDER/ck FOLDER/hf"},
    {"ckpt import-hf|FOLDER/hf FOLDER/from-hf"},
    {"generate|TINY --prompt a --sample-tokens 2"},
    {"bench step|TINY --world-size 1 --tp 1 --warmup 1 --timed-steps 1"},
    {"bench collectives|--ranks 2 --sizes 4096 --iterations 2"},
    {"bench hardware|--quick --device cpu"},
    {"bench viz|--events 2000 --frames 0"},
    {"bench quantize|--rows 64 --cols 128 --repetitions 1"},
    {"bench dispatchers|--ranks 4 --gpus-per-node 2 --tokens 16 --hidden 16 --experts 4 --topk 1 --iterations 1"},
    {"bench cp|--ranks 2 --positions 32 --heads 2 --kv-heads 2 --head-dim 8"},
};
// Commands with --json that take too long here, or need what a machine may lack; and the test that runs them.
const std::map<std::string, const char*> kElsewhere = {
    {"doctor", "doctor_test"},
    {"plan search", "planner_test"},
    {"plan validate", "planner_test"},
    {"bench train", "bench_rows_test"},
    {"bench kernels", "bench_rows_test"},
    {"bench precision", "bench_precision_test"},
    {"bench memory", "minutes"},
    {"bench overhead", "minutes"},
};

class JsonExamples : public ::testing::Test {
 protected:
  JsonExamples() : folder_(temporary_path("ranklab_every_command")) {
    fs::create_directories(folder_);
    std::ofstream(folder_ / "a.toml") << "[parallel]\ntp = 2\n";
    std::ofstream(folder_ / "b.toml") << "[parallel]\ntp = 4\n";
    std::ofstream(folder_ / "text.txt") << std::string(3000, 'x');
    std::ofstream(folder_ / "not-sound.json") << R"({"traceEvents":[{"ph":"X","name":"F","pid":0,"tid":0,"ts":5}]})";
    run_command("'" RANKLAB_PROGRAM "' schedule export 1f1b --pp 2 --num-microbatches 2 --out '" +
                (folder_ / "order.csv").string() + "'");
  }
  std::string line(const Example& example) const {
    std::string text = example.command;
    text.replace(text.find('|'), 1, " --json ");
    for (const auto& [from, to] : {std::pair<std::string, std::string>{"FOLDER", folder_.string()},
                                   {"LESSONS", RANKLAB_LESSONS},
                                   {"TINY", kSmallRun}}) {
      for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
        text.replace(at, from.size(), to);
    }
    return "cd '" + folder_.string() + "' && RANKLAB_STATE_DIR=state '" RANKLAB_PROGRAM "' " + text + " 2>err.txt";
  }
  const fs::path folder_;
};

TEST_F(JsonExamples, AnswerInTheCommonForm) {
  for (const Example& example : kExamples) {
    const Outcome run = run_command(line(example));
    EXPECT_EQ(run.exit_code, example.exit_code) << line(example) << "\n" << text_of_file(folder_ / "err.txt");
    if (run.exit_code != example.exit_code) continue;
    // One object, or, of train, one a line whose last is the result.
    std::string text = run.output;
    if (nlohmann::json::parse(text, nullptr, false).is_discarded()) {
      text.erase(text.find_last_not_of('\n') + 1);
      text = text.substr(text.rfind('\n') + 1);
    }
    const nlohmann::json answer = nlohmann::json::parse(text, nullptr, false);
    ASSERT_TRUE(answer.is_object()) << line(example) << "\n" << run.output;
    EXPECT_EQ(answer.value("schema", 0), 1) << line(example);
    EXPECT_EQ(answer.value("ok", false), example.exit_code == 0) << line(example);
    EXPECT_TRUE(answer.contains("data") && answer.contains("warnings")) << line(example);
    EXPECT_FALSE(answer["data"].empty()) << line(example);
    if (example.exit_code != 0) {
      EXPECT_EQ(answer["error"]["code"], example.exit_code) << line(example);
    }
  }
}

TEST(EveryCommand, ThatPrintsDataHasJsonAndAnExample) {
  std::set<std::string> shown;
  for (const Example& example : kExamples)
    shown.insert(std::string(example.command).substr(0, std::string(example.command).find('|')));
  for (const auto& [path, command] : all_commands()) {
    if (!is_leaf(path)) continue;
    const bool json = command.flags.contains("--json");
    EXPECT_NE(json, kWithoutJson.contains(path)) << path;
    EXPECT_TRUE(!json || shown.contains(path) || kElsewhere.contains(path)) << path << ": add an example";
  }
  for (const auto& [path, why] : kWithoutJson) EXPECT_TRUE(all_commands().contains(path)) << path;
}

TEST(EveryCommand, HelpIsShortAndHelpAllHasEveryFlag) {
  for (const auto& [path, command] : all_commands()) {
    const std::string all = command.flags.contains("--help-all") ? " --help-all" : " --help";
    const Outcome help = run_command("'" RANKLAB_PROGRAM "' " + path + all);
    EXPECT_EQ(help.exit_code, 0) << path;
    for (const std::string& flag : command.flags) {
      const bool torchruns = flag.find('_') != std::string::npos;  // its second spelling, which is not shown
      EXPECT_TRUE(torchruns || help.output.find(flag) != std::string::npos) << path << " " << flag;
    }
  }
  const std::string brief = run_command("'" RANKLAB_PROGRAM "' train --help").output;
  const auto lines = std::count(brief.begin(), brief.end(), '\n');
  EXPECT_LT(lines, 65);
  for (const char* flag : {"--help-all", "--tp", "--pp", "--preset", "--train-iters", "--zero-stage", "--bf16",
                           "--save", "--json", "--hardware"})
    EXPECT_THAT(brief, HasSubstr(flag));
  EXPECT_THAT(brief, testing::Not(HasSubstr("--rope-low-freq-factor")));
}

// "...: direct | gloo" in the help of an option is what completion offers.
TEST(EveryCommand, AnOptionOfAFewWordsCompletesThem) {
  const std::regex words("[a-zA-Z0-9_.+-]+( \\| [a-zA-Z0-9_.+-]+)+");
  int seen = 0;
  for (const auto& [path, command] : all_commands()) {
    const std::string all = command.flags.contains("--help-all") ? " --help-all" : " --help";
    std::string help = run_command("'" RANKLAB_PROGRAM "' " + path + all).output;
    help = std::regex_replace(help, std::regex("\n {20,}"), " ");  // a help text under its long name
    std::istringstream lines(help);
    for (std::string line; std::getline(lines, line);) {
      std::smatch found;
      const size_t dashes = line.find("--");
      if (dashes == std::string::npos || line.find_first_not_of(' ') + 3 < dashes) continue;
      const std::string flag = line.substr(dashes, line.find_first_of(" ,=[", dashes) - dashes);
      const auto known = command.values.find(flag);
      if (known == command.values.end() || !std::regex_search(line, found, words)) continue;
      std::string offered = std::regex_replace(found.str(), std::regex(" \\| "), " ");
      // "auto (on a terminal that supports it) | always | never" leaves out what comes before the brackets.
      EXPECT_THAT(" " + known->second + " ", HasSubstr(" " + words_of(offered).back() + " ")) << path << " " << flag;
      ++seen;
    }
  }
  EXPECT_GT(seen, 100);
  const CommandFlags& train = all_commands().at("train");
  for (const auto& [flag, value] : {std::pair<const char*, const char*>{"--pipeline-schedule", "zb-h1"},
                                    {"--precision-recipe", "nvfp4"},
                                    {"--color", "never"},
                                    {"--zero-stage", ""}})
    EXPECT_THAT(train.values.at(flag), HasSubstr(value)) << flag;
  EXPECT_THAT(all_commands().at("bench dispatchers").values.at("--hardware"), HasSubstr("h100-sxm"));
  EXPECT_EQ(all_commands().at("data prepare").values.at("--dtype"), "uint16 uint32");
}

}  // namespace
}  // namespace ranklab
