// ranklab report as a user runs it: a run's folder becomes a page; what a run records of itself.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <nlohmann/json.hpp>

#include "tests/cli/ranklab_program.h"

namespace ranklab {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;

class Report : public testing::Test {
 protected:
  void SetUp() override {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  // In the test's folder. A run records the command line that its process was started with, so it is the program
  // itself.
  Outcome run(const std::string& script) const {
    return run_command("cd '" + folder_ + "' && ranklab() { '" RANKLAB_BINARY "' \"$@\"; } && " + script + " 2>&1");
  }
  Outcome train(const std::string& arguments) const {
    return run(
        "ranklab train --gemm mkl --mock-data --num-layers 2 --hidden-size 32 --ffn-hidden-size 32 "
        "--num-attention-heads 4 --seq-length 32 --gbs 8 --sample-tokens 0 " +
        arguments);
  }
  nlohmann::json record(const std::string& name) const { return nlohmann::json::parse(text(name + "/run.json")); }
  std::string text(const std::string& name) const { return text_of_file(folder_ + "/" + name); }
  const std::string folder_ = temporary_path("report_cli");
};

std::string origin_of(const nlohmann::json& record, const std::string& key) {
  for (const auto& row : record["settings"])
    if (row[0] == key) return row[1].get<std::string>() + " from " + row[2].get<std::string>();
  return "";
}

// The record has the error that ended it; reports and the window read it there.
TEST_F(Report, ARunThatDivergedSaysSo) {
  ASSERT_EQ(train("--world-size 2 --tp 2 --train-iters 4 --lr 1e30 --lr-warmup-iters 0 --eval-interval 0 --log-dir bad")
                .exit_code,
            7);
  const nlohmann::json outcome = record("bad")["outcome"];
  EXPECT_THAT(outcome["error"].get<std::string>(), HasSubstr("training diverged; got loss "));
  const int64_t step = outcome["failed_step"].get<int64_t>();
  EXPECT_GE(step, 1);
  EXPECT_EQ(outcome["steps_done"], step);
  ASSERT_EQ(run("ranklab report bad -o bad.html").exit_code, 0);
  EXPECT_NE(text("bad.html").find("The run ended with an error: ["), std::string::npos);
  EXPECT_EQ(answer_of(run("ranklab report bad --json")).at("runs")[0]["run"]["outcome"]["failed_step"], step);
  EXPECT_THAT(run("ranklab viz bad/trace.json.gz --format text").output,
              testing::StartsWith("the run ended with an error: ["));
}

TEST_F(Report, ARunBecomesAPage) {
  ASSERT_EQ(
      train("--world-size 4 --pp 2 --tp 1 --train-iters 3 --eval-interval 2 --eval-iters 1 --sentinel-mode minimal "
            "--log-dir a")
          .exit_code,
      0);
  const Outcome wrote = run("ranklab report a -o a.html");
  EXPECT_EQ(wrote.exit_code, 0) << wrote.output;
  EXPECT_THAT(wrote.output, HasSubstr("wrote a.html"));
  const std::string page = text("a.html");
  EXPECT_LT(page.size(), 1'000'000u);
  for (const char* part : {"--pp 2", "data-name=\"validation\"", "flag --train-iters", ">F0</text>", "3 steps in ",
                           "pp 2 (1f1b) x dp 2 x tp 1", "watched steps", "activations"})
    EXPECT_NE(page.find(part), std::string::npos) << part;
  // Not over a file of that name, nor over what it reads.
  EXPECT_EQ(run("ranklab report a -o a.html").exit_code, 2);
  EXPECT_EQ(run("ranklab report a -o a.html --force").exit_code, 0);
  EXPECT_EQ(run("ln a/metrics.jsonl a/m.html && ranklab report a -o a/m.html --force").exit_code, 2);

  // The losses alone: a file of its own, with what its drawing needs.
  ASSERT_EQ(run("ranklab report a -o loss.svg").exit_code, 0);
  const std::string picture = text("loss.svg");
  for (const char* part : {"<svg xmlns=\"http://www.w3.org/2000/svg\" ", "data-name=\"training\"",
                           "data-name=\"validation\"", "\nsvg .line.a {", "prefers-color-scheme: dark"})
    EXPECT_NE(picture.find(part), std::string::npos) << part;
  for (const char* part : {"\nsection", "\nbody", "@print"}) EXPECT_EQ(picture.find(part), std::string::npos) << part;
  EXPECT_EQ(picture.find("</svg>"), picture.size() - 7);

  const nlohmann::json data = answer_of(run("ranklab report a --json"));
  const nlohmann::json& one = data.at("runs")[0];
  EXPECT_EQ(one["glance"]["steps"]["value"], 3);
  EXPECT_EQ(one["curves"]["loss"]["values"], 3);
  EXPECT_EQ(one["curves"]["validation_loss"]["values"], 2);
  EXPECT_EQ(one["run"]["settings"]["parallel.pp"]["value"], "2");
  EXPECT_EQ(one["traced_step"]["ranks"].size(), 4u);
  EXPECT_GT(one["traced_step"]["traffic"]["logical_bytes"], 0);
  EXPECT_EQ(one["sentinels"]["watched"], true);
  // The loss as metrics.jsonl has it.
  const auto first = nlohmann::json::parse(text("a/metrics.jsonl").substr(0, text("a/metrics.jsonl").find('\n')));
  EXPECT_EQ(one["glance"]["loss of the first step"]["value"], first["loss"]);
}

// The README's curve is drawn from the metrics that are committed beside it.
TEST_F(Report, ThePictureOfTheRecordedRunIsTheCommands) {
  const fs::path recorded = fs::path(RANKLAB_README).parent_path() / "examples/runs/gpt_10m";
  ASSERT_EQ(run("ranklab report '" + recorded.string() + "' -o recorded.svg").exit_code, 0);
  EXPECT_EQ(text("recorded.svg"), text_of_file((recorded / "loss.svg").string()))
      << "draw it anew: ranklab report examples/runs/gpt_10m -o examples/runs/gpt_10m/loss.svg --force";
  EXPECT_THAT(text_of_file(RANKLAB_README), HasSubstr("](examples/runs/gpt_10m/loss.svg)"));
}

TEST_F(Report, ARunRecordsWhereItsSettingsCameFrom) {
  std::ofstream(folder_ + "/mine.toml") << "[optim]\nlr = 0.002\n";
  ASSERT_EQ(
      run("RANKLAB_TRAIN_SEED=7 ranklab train --config mine.toml --set 'optim.clip_grad=0.5' --gemm mkl --mock-data "
          "--num-layers 1 --hidden-size 32 --ffn-hidden-size 32 --seq-length 32 --gbs 8 --world-size 1 --dp 1 "
          "--train-iters 2 --no-trace --sample-tokens 0 --log-dir 'a run'")
          .exit_code,
      0);
  const nlohmann::json made = record("a run");
  EXPECT_EQ(origin_of(made, "optim.lr"), "0.002 from mine.toml:2");
  EXPECT_EQ(origin_of(made, "train.train_iters"), "2 from flag --train-iters");
  EXPECT_EQ(made["outcome"]["steps_done"], 2);
  EXPECT_THAT(made["command"].get<std::string>(), HasSubstr("--log-dir 'a run'"));
  // The same with flags alone trains the same.
  const auto again = made["again"].get<std::string>();
  EXPECT_THAT(again, HasSubstr("--lr 0.002"));
  EXPECT_THAT(again, HasSubstr("--no-trace"));
  const std::string before = text("a run/log.txt");
  ASSERT_EQ(run(again).exit_code, 0) << again;
  EXPECT_EQ(text("a run/log.txt"), before);
  EXPECT_EQ(record("a run")["again"], "");  // all settings are flags now
  const std::string report = run("ranklab report 'a run' -o r.html").output;
  EXPECT_THAT(report, HasSubstr("wrote r.html"));
  EXPECT_THAT(text("r.html"), HasSubstr("No trace: ranklab train records one"));
}

TEST_F(Report, ProcessesOfALauncherRecordHowToLaunchThem) {
  ASSERT_EQ(
      run("ranklab launch --nproc-per-node 2 --gemm mkl --mock-data --num-layers 1 --hidden-size 32 "
          "--ffn-hidden-size 32 --seq-length 32 --gbs 4 --tp 2 --train-iters 1 --sample-tokens 0 --log-dir 'two ranks'")
          .exit_code,
      0);
  const auto command = record("two ranks")["command"].get<std::string>();
  EXPECT_THAT(command, HasSubstr(" launch --nproc-per-node 2 "));
  EXPECT_THAT(command, HasSubstr("two ranks"));
  const std::string before = text("two ranks/log.txt");
  ASSERT_EQ(run(command).exit_code, 0) << command;
  EXPECT_EQ(text("two ranks/log.txt"), before);
}

TEST_F(Report, TwoRunsAreCompared) {
  ASSERT_EQ(train("--world-size 2 --dp 2 --train-iters 2 --log-dir a").exit_code, 0);
  ASSERT_EQ(train("--world-size 2 --tp 2 --train-iters 2 --log-dir b --lr 1e-3").exit_code, 0);
  ASSERT_EQ(run("ranklab report a b -o ab.html").exit_code, 0);
  const std::string page = text("ab.html");
  for (const char* part : {"Two runs side by side", "Settings that differ", ">optim.lr</td>", ">parallel.tp</td>"})
    EXPECT_NE(page.find(part), std::string::npos) << part;
  const nlohmann::json differ = answer_of(run("ranklab report a b --json")).at("settings_that_differ");
  EXPECT_EQ(differ["optim.lr"]["b"], "0.001");
  EXPECT_EQ(differ["parallel.tp"]["a"], "1");
  EXPECT_FALSE(differ.contains("model.num_layers"));
  EXPECT_EQ(page.find(">model.num_layers</td><td class=\"words\">2</td><td class=\"words\">2</td>"), std::string::npos);
}

// What a crash, another tool or an attacker leaves: the rest is shown, and the warning says what is not.
TEST_F(Report, BrokenRunsAreReportedAsFarAsTheyGo) {
  ASSERT_EQ(train("--world-size 2 --dp 2 --train-iters 3 --log-dir a").exit_code, 0);
  ASSERT_EQ(run("printf '{' >> a/metrics.jsonl; head -c 4000 a/trace.json.gz > t && "
                "mv t a/trace.json.gz; rm a/run.json; mkfifo a/run.json; printf '{' > a/sentinels.jsonl")
                .exit_code,
            0);
  const Outcome wrote = run("timeout 60 " RANKLAB_BINARY " report a -o a.html --json");
  EXPECT_EQ(wrote.exit_code, 0) << wrote.output;
  const size_t json = wrote.output.find('{');
  const auto answer = nlohmann::json::parse(wrote.output.substr(json));
  EXPECT_EQ(answer["warnings"].size(), 4u) << answer["warnings"];
  EXPECT_NE(text("a.html").find("Incomplete: run.json: "), std::string::npos);
  const Outcome page = run("timeout 60 " RANKLAB_BINARY " report a -o b.html");
  for (const char* file : {"run.json", "metrics.jsonl", "sentinels.jsonl", "trace.json.gz"})
    EXPECT_THAT(page.output, HasSubstr(std::string("warning: a: ") + file + ": ")) << "also without opening the page";
}

}  // namespace
}  // namespace ranklab
