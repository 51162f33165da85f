// trace stats, trace diff and bench viz, as a user runs them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>
#include <sstream>

#include "tests/cli/ranklab_program.h"

namespace ranklab {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// Two steps of a small pipeline; once a machine.
const std::string& trained(const std::string& hardware) {
  static std::map<std::string, std::string> traces;
  std::string& trace = traces[hardware];
  if (!trace.empty()) return trace;
  const std::string folder = temporary_path("trace_stats_" + hardware);
  const Outcome run = ranklab_and_errors(
      "train --mock-data --num-layers 4 --hidden-size 32 --ffn-hidden-size 64 --num-attention-heads 4 --seq-length 32 "
      "--pp 4 --tp 2 --num-microbatches 4 --gbs 8 --train-iters 2 --eval-interval 0 --sample-tokens 0 "
      "--check-gradient-types --hardware " +
      hardware + " --log-dir " + folder);
  EXPECT_EQ(run.exit_code, 0) << run.output;
  return trace = folder + "/trace.json.gz";
}

// Wherever a trace is named, its run's folder will do.
TEST(TraceStats, AFolderStandsForItsTrace) {
  const std::string folder = std::filesystem::path(trained("h100-sxm")).parent_path();
  for (const std::string command :
       {"trace info ", "trace validate ", "trace stats ", "schedule simulate 1f1b --pp 4 --trace "}) {
    const Outcome run = ranklab_and_errors(command + folder);
    EXPECT_EQ(run.exit_code, 0) << run.output;
    EXPECT_THAT(run.output, HasSubstr(command.starts_with("schedule") ? folder : folder + "/trace.json.gz"));
  }
}

// A rank leaves out an exchange in the first step: its peers' calls do not match, and the run ends at once.
TEST(TraceStats, TheStepThatFailedIsInTheTrace) {
  const std::string folder = temporary_path("trace_stats_failed");
  const Outcome run = ranklab_and_errors(
      "train --num-layers 2 --hidden-size 32 --ffn-hidden-size 48 --num-attention-heads 4 --mock-data --gbs 8 "
      "--train-iters 40 --eval-interval 0 --dp 8 --ep 8 --num-experts 8 --moe-router-topk 1 --seq-length 2 --inject "
      "empty-expert-skips --log-dir " +
      folder);
  ASSERT_EQ(run.exit_code, 5) << run.output;
  const Outcome stats = ranklab_and_errors("trace stats " + folder);
  EXPECT_EQ(stats.exit_code, 0) << stats.output;
  EXPECT_THAT(stats.output, AllOf(HasSubstr("8 ranks, 1 step"), HasSubstr("all_to_all ep dispatch"),
                                  HasSubstr("the run failed in step 0, which ends here where it broke off; rank "),
                                  testing::ContainsRegex("rank [0-7 ]+ in [a-z_]+ on ep, ")));
  std::filesystem::remove_all(folder);
}

TEST(TraceStats, GoldenFiguresOfASchedule) {
  const std::string path = temporary_path("stats") + ".csv";
  ASSERT_EQ(
      ranklab_and_errors("schedule export 1f1b --pp 8 --num-microbatches 32 --dialect torch --out " + path).exit_code,
      0);
  const Outcome run = ranklab_and_errors("trace stats " + path);
  EXPECT_EQ(run.exit_code, 0) << run.output;
  const std::string mean = run.output.substr(run.output.find("\nmean"));
  EXPECT_THAT(mean.substr(0, mean.find('\n', 1)),
              AllOf(HasSubstr("117 units"), HasSubstr("17.95 %"), HasSubstr("21.88 %")));
  EXPECT_THAT(run.output, AllOf(HasSubstr("critical path: 117 units of 117 units"), HasSubstr("warm-up"),
                                HasSubstr("waits for r1 BW0 (dependency)")));
  std::filesystem::remove(path);
}

// The first step alone was followed. A row-parallel product is partial, a pipeline's message stays what it
// is.
TEST(TraceStats, TellsWhatCollectivesMakeOfTypes) {
  const auto rows_of = [](int step) {
    return data_of("trace stats " + trained("h100-sxm") + " --step " + std::to_string(step)).at("types");
  };
  EXPECT_TRUE(rows_of(1).empty());
  std::map<std::string, std::set<std::string>> types;
  for (const auto& row : rows_of(0)) types[row.at("name")].insert(row.at("types").get<std::string>());
  EXPECT_THAT(types["reduce_scatter tp"], testing::Contains("partial -> varying over tp"));
  EXPECT_THAT(types["all_gather tp"], testing::Contains("varying -> replicated over tp"));
  EXPECT_THAT(types["send pp"], testing::ElementsAre("varying over tp"));
  EXPECT_THAT(ranklab_and_errors("trace stats " + trained("h100-sxm")).output,
              testing::ContainsRegex("  all_gather tp +[0-9]+ .*  varying -> replicated over tp\n"));
  EXPECT_THAT(ranklab_and_errors("trace stats " + trained("h100-sxm")).output,
              AllOf(HasSubstr("\n  tp  "), HasSubstr("\n  pp  "), Not(HasSubstr("\n  other  "))));
}

TEST(TraceStats, OfARunAddsUp) {
  const auto data = data_of("trace stats " + trained("h100-sxm") + " --step 1");
  EXPECT_EQ(data.at("clock"), "virtual");
  EXPECT_EQ(data.at("step"), 1);
  const auto length = data.at("length_ns").get<int64_t>();
  EXPECT_EQ(data.at("critical_path").at("length_ns"), length);
  for (const char* key : {"sends", "logical_bytes", "wire_bytes"}) {
    int64_t of_axes = 0;
    for (const auto& row : data.at("traffic").at("by_axis")) of_axes += row.at(key).get<int64_t>();
    EXPECT_EQ(of_axes, data.at("traffic").at(key)) << key;
  }
  int64_t on_path = 0;
  for (const auto& [name, time] : data.at("critical_path").at("by_operation_ns").items())
    on_path += time.get<int64_t>();
  EXPECT_EQ(on_path, length);
  ASSERT_EQ(data.at("ranks").size(), 8U);
  for (const auto& rank : data.at("ranks")) {
    EXPECT_EQ(rank.at("total_ns"), length);
    EXPECT_EQ(
        rank.at("busy_ns").get<int64_t>() + rank.at("bubble_ns").get<int64_t>() + rank.at("exposed_ns").get<int64_t>(),
        length);
  }
  EXPECT_GT(data.at("all").at("by_cause_ns").at("dependency"), 0);
  EXPECT_GT(data.at("traffic").at("algorithm_bytes"), 0);
}

// What the engine says of a step is what the tables find in its events.
TEST(TraceStats, AgreesWithTheMetricsOfTheRun) {
  const std::string trace = trained("h100-sxm");
  std::ifstream file(std::filesystem::path(trace).parent_path() / "metrics.jsonl");
  std::string line;
  for (int step = 0; std::getline(file, line); ++step) {
    const auto metrics = nlohmann::json::parse(line);
    const auto all = data_of("trace stats " + trace + " --step " + std::to_string(step)).at("all");
    const auto total = all.at("total_ns").get<double>();
    EXPECT_NEAR(all.at("exposed_ns").get<double>() / total, metrics.at("exposed_comm_fraction").get<double>(), 0.01);
    EXPECT_NEAR(total / 8e6, metrics.at("virtual_step_ms").get<double>(), 0.01 * total / 8e6);
  }
}

// No rank is there to wait for: work that is neither F nor BW belongs to its optimizer.
TEST(TraceStats, OneRankIsNeverIdle) {
  const std::string folder = temporary_path("trace_stats_alone");
  ASSERT_EQ(ranklab_and_errors("train --mock-data --world-size 1 --tp 1 --pp 1 --num-layers 1 --train-iters 2 --gbs 4 "
                               "--eval-interval 0 --sample-tokens 0 --log-dir " +
                               folder)
                .exit_code,
            0);
  const Outcome stats = ranklab_and_errors("trace stats " + folder);
  EXPECT_THAT(stats.output, AllOf(HasSubstr("no rank is idle\n\ncritical path"), HasSubstr("100.00 %     0.00 %"),
                                  Not(HasSubstr("longest idle"))));
}

TEST(TraceStats, RefusesAStepThatIsNotThere) {
  const Outcome run = ranklab_and_errors("trace stats " + trained("h100-sxm") + " --step 7");
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.output, HasSubstr("no such step; got --step 7; want 0 to 1"));
  EXPECT_EQ(ranklab_and_errors("trace stats /no/such/file").exit_code, 1);
}

TEST(TraceStats, ACutFileIsReportedOnWithAWarning) {
  const std::string path = temporary_path("stats_cut") + ".json.gz";
  std::ifstream whole(trained("h100-sxm"), std::ios::binary);
  std::stringstream bytes;
  bytes << whole.rdbuf();
  std::ofstream(path, std::ios::binary) << bytes.str().substr(0, bytes.str().size() / 2);
  const Outcome run = ranklab_and_errors("trace stats " + path);
  EXPECT_EQ(run.exit_code, 0) << run.output;
  EXPECT_THAT(run.output, HasSubstr("broken after"));
  std::filesystem::remove(path);
}

// Eight ranks, an expert each, two steps of 8 sequences of 32 tokens.
constexpr int kMoeTokensOfRank = 32, kMoeHidden = 128, kMoeTopk = 2;
const std::string& trained_mixture() {
  static std::string trace;
  if (!trace.empty()) return trace;
  const std::string folder = temporary_path("trace_stats_moe");
  const Outcome run = ranklab_and_errors(
      "train --mock-data --preset deepseek_v3_tiny --ep 8 --num-layers 3 --seq-length 32 --gbs 8 --train-iters 2 "
      "--eval-interval 0 --sample-tokens 0 --log-dir " +
      folder);
  EXPECT_EQ(run.exit_code, 0) << run.output;
  return trace = folder + "/trace.json.gz";
}

// Every row of dispatch is tokens x k x hidden x bytes a layer, what stays included; combine is the transpose.
TEST(TraceStatsMoe, TheMatrixIsWhatTheRouterSays) {
  EXPECT_EQ(ranklab_and_errors("trace validate " + trained_mixture()).exit_code, 0);
  const auto data = data_of("trace stats " + trained_mixture() + " --moe --step 1");
  const auto& layers = data.at("layers");
  ASSERT_GE(layers.size(), 2U);
  for (const auto& layer : layers) {
    const auto tokens = layer.at("tokens").get<std::vector<double>>();
    EXPECT_EQ(tokens.size(), 8U);
    EXPECT_EQ(std::accumulate(tokens.begin(), tokens.end(), 0.0), 8 * kMoeTokensOfRank * kMoeTopk);
    EXPECT_EQ(layer.at("dropped"), 0);
    EXPECT_EQ(layer.at("bias").size(), 8U);
    EXPECT_EQ(layer.at("peer_tokens"), layer.at("tokens")) << "an expert a peer";
  }
  const auto &there = data.at("dispatch"), &back = data.at("combine");
  const auto row_bytes = static_cast<int64_t>(layers.size()) * kMoeTokensOfRank * kMoeTopk * kMoeHidden * 4;
  for (size_t i = 0; i < 8; ++i) {
    EXPECT_EQ(there.at("sent_bytes")[i].get<int64_t>() + there.at("kept_bytes")[i].get<int64_t>(), row_bytes);
    for (size_t j = 0; j < 8; ++j) EXPECT_EQ(there.at("bytes")[i][j], back.at("bytes")[j][i]) << i << " " << j;
  }
  // What an expert got is what the ranks sent to it.
  double got = 0;
  for (const auto& layer : layers) got += layer.at("tokens")[3].get<double>() * kMoeHidden * 4;
  EXPECT_EQ(there.at("got_bytes")[3].get<double>() + there.at("kept_bytes")[3].get<double>(), got);
  const auto& purposes = data.at("traffic").at("by_purpose");
  EXPECT_EQ(purposes.at("dispatch").at("logical_bytes"), purposes.at("combine").at("logical_bytes"));
  EXPECT_EQ(purposes.at("dispatch").at("logical_bytes"), purposes.at("dispatch_grad").at("logical_bytes"));
}

// What crosses to the process that writes the file.
TEST(TraceStatsMoe, RanksThatAreProcessesSayTheSame) {
  const std::string threads = temporary_path("moe_threads"), processes = temporary_path("moe_processes");
  const std::string flags =
      " --mock-data --preset deepseek_v3_tiny --ep 2 --num-layers 2 --seq-length 32 --gbs 4 --train-iters 1 "
      "--eval-interval 0 --sample-tokens 0 --gemm mkl --log-dir ";
  EXPECT_EQ(ranklab_and_errors("train --world-size 2" + flags + threads).exit_code, 0);
  EXPECT_EQ(ranklab_and_errors("launch --nproc-per-node 2" + flags + processes).exit_code, 0);
  auto one = data_of("trace stats " + threads + " --moe"), other = data_of("trace stats " + processes + " --moe");
  for (const char* key : {"layers", "by_step", "dispatch", "combine"}) {
    EXPECT_FALSE(one.at(key).empty());
    EXPECT_EQ(one.at(key), other.at(key)) << key;
  }
}

TEST(TraceStatsMoe, NodesAreTheTracesOrAsked) {
  const auto inter = [](const std::string& more) {
    const auto purpose = data_of("trace stats " + trained_mixture() + more).at("traffic").at("by_purpose");
    return purpose.at("dispatch").at("inter_node_bytes").get<int64_t>();
  };
  EXPECT_EQ(inter(""), 0) << "the profile's 8 GPUs a node";
  EXPECT_GT(inter(" --gpus-per-node 4"), 0);
}

TEST(TraceStatsMoe, SaysWhichExpertsAreDead) {
  const Outcome run = ranklab_and_errors("trace stats " RANKLAB_TEST_DIR "/../fuzz/corpus/trace/experts.json --moe");
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_THAT(run.output, AllOf(HasSubstr("dead in layer 1: 2"), HasSubstr("2.000   0.791        4      1"),
                                HasSubstr("r0          (4.00 KiB)    4.00 KiB     4.00 KiB")));
  const Outcome text =
      ranklab_and_errors("viz --format text --panel experts " RANKLAB_TEST_DIR "/../fuzz/corpus/trace/experts.json");
  EXPECT_THAT(text.output, HasSubstr("dead in layer 1: 2"));
  const Outcome matrix = ranklab_and_errors("viz --format text --panel traffic " + trained_mixture());
  EXPECT_THAT(matrix.output, AllOf(HasSubstr("from \\ to"), HasSubstr("\n  ep: dispatch_grad")));
}

TEST(TraceStatsMoe, RefusesATraceWithoutExperts) {
  const Outcome run = ranklab_and_errors("trace stats " + trained("h100-sxm") + " --moe");
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.output, HasSubstr("./ranklab train --preset deepseek_v3_tiny --ep 8"));
}

TEST(TraceDiff, TheSameTraceIsTheSame) {
  const Outcome run = ranklab_and_errors("trace diff --fail-over 0 " + trained("h100-sxm") + " " + trained("h100-sxm"));
  EXPECT_EQ(run.exit_code, 0) << run.output;
  EXPECT_THAT(run.output, HasSubstr("the same: every delta is 0"));
}

TEST(TraceDiff, AnotherMachineIsOverTheLimit) {
  const std::string both = trained("h100-sxm") + " " + trained("laptop");
  const Outcome fails = ranklab_and_errors("trace diff --fail-over 5 " + both);
  EXPECT_EQ(fails.exit_code, 4) << fails.output;
  EXPECT_THAT(fails.output,
              AllOf(HasSubstr("2 pairs of steps"), HasSubstr("makespan"), HasSubstr("over the limit of 5 %")));
  const Outcome reports = ranklab_and_errors("trace diff " + both);
  EXPECT_EQ(reports.exit_code, 0);
  EXPECT_THAT(reports.output, Not(HasSubstr("over the limit")));
  const auto data = data_of("trace diff " + both);
  EXPECT_FALSE(data.at("same").get<bool>());
  EXPECT_NE(data.at("makespan_ns").at("delta"), 0);
}

TEST(BenchViz, PrintsLoadTimes) {
  const Outcome run = ranklab_and_errors("bench viz --events 20000 --frames 0");
  EXPECT_EQ(run.exit_code, 0) << run.output;
  EXPECT_THAT(run.output, AllOf(HasSubstr("20000 events"), HasSubstr("load trace.json "),
                                HasSubstr("load trace.json.gz"), HasSubstr("critical path and slack")));
}

}  // namespace
}  // namespace ranklab
