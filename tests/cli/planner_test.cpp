// ranklab plan run and validate as a user runs them. The rows are of papers and manuals that
// tests/plan/published_runs.json cites.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <map>
#include <numeric>
#include <set>
#include <vector>

#include "tests/all_cases.h"
#include "tests/cli/ranklab_program.h"

namespace ranklab {
namespace {

using testing::HasSubstr;

const std::string kRows = RANKLAB_TEST_DIR "/../plan/published_runs.json";

// Runs that took so many times as long as their plans: what fits constants of software says so.
void expect_fit_finds(nlohmann::json rows, double longer) {
  std::erase_if(rows.get_ref<nlohmann::json::array_t&>(), [](const auto& row) {
    const std::string software = row.value("software", "");
    return software != "megatron" && software != "megatron_2023";
  });
  for (auto& row : rows) {
    row["software"] = "megatron";
    if (row.contains("time_ratio")) row["time_ratio"] = 1 / longer;
    if (row.contains("memory_ratio")) row["memory_ratio"] = 0.8;
  }
  const std::string path = temporary_path("rows.json");
  std::ofstream(path) << nlohmann::json{{"data", {{"rows", rows}}}};
  const Outcome fit =
      run_command("python3 " RANKLAB_TEST_DIR "/../../core/sim/profiles/fit_software.py " + path + " 2>&1");
  ASSERT_EQ(fit.exit_code, 0) << fit.output;
  EXPECT_THAT(fit.output,
              testing::ContainsRegex("megatron +ampere .* 33.3% +[0-5]\\.[0-9]% +[0-9]\\.[0-9]% +products 1\\.[3-6]"))
      << fit.output;
  EXPECT_THAT(fit.output, testing::ContainsRegex("megatron +[0-9]+ peaks of memory, 20\\.0 % off")) << fit.output;
  EXPECT_THAT(fit.output, HasSubstr("of nine of ten of a half held 100 % of the other")) << fit.output;
}

TEST(Planner, IsNearPublishedRuns) {
  const auto rows = data_of("plan validate " + kRows).at("rows");
  EXPECT_GE(rows.size(), 21u);
  // Bounds of a figure: how many rows have it, how far the mean and each of them may be off.
  struct Bound {
    const char* ratio;
    size_t rows;
    double mean, each;
  };
  for (const Bound& bound :
       {Bound{"time_ratio", 18, 0.05, 0.16}, {"memory_ratio", 9, 0.02, 0.06}, {"static_ratio", 3, 0.01, 0.01}}) {
    std::vector<double> errors;
    for (const auto& row : rows) {
      if (!row.contains(bound.ratio)) continue;
      errors.push_back(std::abs(row[bound.ratio].get<double>() - 1));
      EXPECT_LT(errors.back(), bound.each) << bound.ratio << " of " << row["id"];
    }
    ASSERT_EQ(errors.size(), bound.rows) << bound.ratio;
    EXPECT_LT(std::accumulate(errors.begin(), errors.end(), 0.0) / static_cast<double>(errors.size()), bound.mean)
        << bound.ratio;
  }
  expect_fit_finds(rows, 1.5);
}

TEST(Planner, APlanStatesTheRangeOfPublishedRuns) {
  const auto plan = data_of("plan run --preset llama_1b --bf16 --dp 8 --gbs 64 --mbs 8 --software eager");
  const double step = plan.at("estimate").at("virtual_step_ms"), memory = plan.at("gpu_memory_bytes").at("together");
  const auto& range = plan.at("in_90_percent_of_published_runs");
  EXPECT_NEAR(range.at("step_ms").at(0).get<double>(), 0.91 * step, 0.005 * step);
  EXPECT_NEAR(range.at("step_ms").at(1).get<double>(), 1.15 * step, 0.005 * step);
  EXPECT_LT(range.at("gpu_memory_bytes").at(0).get<double>(), memory);
  EXPECT_GT(range.at("gpu_memory_bytes").at(1).get<double>(), memory);
  EXPECT_EQ(range.at("runs"), "published runs");
  const std::string own = "plan run --preset llama_1b --bf16 --dp 8 --gbs 64 --mbs 8";
  EXPECT_EQ(data_of(own).at("in_90_percent_of_published_runs").at("runs"), "other software's published runs");
  const std::string text = ranklab(own).output;
  EXPECT_THAT(text, HasSubstr("; in 90 % of other software's published runs ")) << "of memory";
  EXPECT_THAT(text, HasSubstr("    in 90 % of other software's published runs ")) << "of the step";
  const auto datasheet = data_of("plan run --preset llama_1b --bf16 --dp 8 --gbs 64 --mbs 8 --efficiency datasheet");
  EXPECT_FALSE(datasheet.contains("in_90_percent_of_published_runs")) << "the runs were compared with real kernels";
}

// docs/planner.md shows the table that this prints.
TEST(Planner, ThePageShowsTheseRows) {
  const Outcome table = ranklab("plan validate " + kRows);
  EXPECT_EQ(table.exit_code, 0);
  EXPECT_THAT(text_of_file(RANKLAB_DOCS "/planner.md"), HasSubstr(table.output));
}

// And the one of this project's own runs on GPUs.
TEST(Planner, ThePageShowsItsOwnRuns) {
  const std::string rows = temporary_path("own_runs.json");
  ASSERT_EQ(std::system(("python3 " RANKLAB_TEST_DIR "/../gpu/own_runs.py >" + rows).c_str()), 0);
  const Outcome table = ranklab("plan validate " + rows);
  EXPECT_EQ(table.exit_code, 0);
  EXPECT_THAT(text_of_file(RANKLAB_DOCS "/planner.md"), HasSubstr(table.output));
}

// Rows of one reason are counted together, whatever their own sizes are.
TEST(Planner, SaysHowManyRowsAreLeftOutAndWhy) {
  const auto row = [](const char* sizes) {
    return std::string(R"({"config": {"layers": 2, "hidden": 256, "heads": 4, "seq": 128, "gpu_type": "A100-80GB", )") +
           sizes + R"(}, "measured": {"step_time_s": 1}})";
  };
  const std::string path = testing::TempDir() + "/left_out.json";
  std::ofstream(path) << "[" << row(R"("gpus": 8)") << ", " << row(R"("gpus": 5, "pp": 5, "global_batch": 5)") << ", "
                      << row(R"("gpus": 3, "pp": 3, "global_batch": 3)") << ", " << row(R"("tp": 8)") << "]";
  const Outcome table = ranklab("plan validate " + path);
  EXPECT_EQ(table.exit_code, 0);
  EXPECT_THAT(table.output, HasSubstr("\nleft out: 3 of 4 rows\n"
                                      "     2  there are fewer layers than pipeline stages\n"
                                      "     1  the row has no gpus\n"));
}

TEST(Planner, MeasuredKernelsTakeLongerThanTheDatasheetAllows) {
  const std::string run = "plan run --preset llama_1b --bf16 --world-size 1 --gbs 8 --mbs 1";
  const auto measured = data_of(run), datasheet = data_of(run + " --efficiency datasheet");
  const double mfu = measured.at("estimate").at("mfu"), most = datasheet.at("estimate").at("mfu");
  EXPECT_LT(mfu, 0.8 * most);
  EXPECT_NEAR(mfu, 0.5015, 0.02) << "of an H100 (docs/gpus.md)";
  constexpr double kGiB = 1024.0 * 1024 * 1024;
  EXPECT_NEAR(measured.at("memory_bytes").at("together").get<double>() / kGiB, 28.66, 0.3);
  EXPECT_EQ(measured.at("efficiency"), "measured");
}

TEST(Planner, KernelsByKindAreAllOfCompute) {
  for (const char* batch : {"--dp 8 --mbs 8", "--dp 8 --mbs 1", "--world-size 8 --pp 4 --mbs 1"}) {
    const auto estimate = data_of(std::string("plan run --preset llama_1b --bf16 --gbs 64 ") + batch).at("estimate");
    double sum = 0;
    for (const auto& [kind, ms] : estimate.at("kernels_ms").items()) sum += ms.get<double>();
    sum += estimate.at("launch_wait_ms").get<double>();
    EXPECT_NEAR(sum / estimate.at("compute_ms").get<double>(), 1, 1e-12) << batch;
  }
}

// Their own attention drops probabilities; this project's blocks do not represent it.
TEST(Planner, OtherSoftwareKeepsDroppedScores) {
  const auto plan = [](const std::string& more) {
    return data_of(
        "plan run --preset gpt2_124m --bf16 --world-size 1 --gbs 8 "
        "--software transformer_engine --attention-backend unfused " +
        more);
  };
  const auto without = plan(""), with = plan("--attention-dropout 0.1");
  EXPECT_EQ(without["estimate"]["virtual_step_ms"], with["estimate"]["virtual_step_ms"]);
  // 8 sequences, 12 layers and 12 heads of 1024 x 1024 scores: a mask of a byte and a result of two.
  const auto activations = [](const auto& of) { return of["gpu_memory_bytes"]["activations"].template get<double>(); };
  EXPECT_NEAR((activations(with) - activations(without)) / (3.0 * 8 * 12 * 12 * 1024 * 1024), 1, 0.01);
}

TEST(Planner, ReadsAProfileMeasuredHere) {
  const std::string profile = testing::TempDir() + "/mine.toml";
  const auto rows = data_of("bench hardware --quick --device cpu --force --json --out " + profile).at("rows");
  EXPECT_EQ(rows.size(), 6u);
  for (const auto& row : rows) EXPECT_GT(row.at("points").get<int>(), 1) << row;
  const auto plan = data_of("plan run --world-size 2 --gbs 4 --hardware " + profile);
  EXPECT_EQ(plan.at("hardware"), "mine");
  EXPECT_GT(plan.at("estimate").at("virtual_step_ms").get<double>(), 1) << "a core is no GPU";
}

TEST(Planner, AnotherMachineIsAFewWords) {
  const std::string run = "plan run --preset llama_8b --bf16 --world-size 8 --tp 8 --gbs 8 --mbs 1 ";
  const auto step = [&](const std::string& more) {
    return data_of(run + more).at("estimate").at("virtual_step_ms").get<double>();
  };
  EXPECT_GT(step("--what-if nvlink=0.25x"), 1.2 * step(""));
  EXPECT_GT(step("--software eager"), 1.1 * step(""));
}

// What is switched off is missing from the plan, and the step is shorter by it.
TEST(Planner, WhatSoftwareCostsCanBeSwitchedOff) {
  const std::string run =
      "plan run --preset llama_8b --bf16 --world-size 2048 --zero-stage 3 --gbs 4096 --mbs 1 --software compiled ";
  const auto all = data_of(run).at("estimate"), none = data_of(run + "--what-if slowest=0,beside=0").at("estimate");
  const double slowest = all.at("slowest_gpu_ms"), beside = all.at("beside_collectives_ms");
  EXPECT_GT(slowest, 0);
  EXPECT_GT(beside, 0);
  EXPECT_EQ(none.at("slowest_gpu_ms"), 0);
  EXPECT_EQ(none.at("beside_collectives_ms"), 0);
  EXPECT_NEAR(all.at("virtual_step_ms").get<double>() - none.at("virtual_step_ms").get<double>(), slowest + beside,
              1e-6);
}

// Ranks that shard the optimizer's states pass the pieces of each parameter to each other; without ZeRO there are no
// such transfers.
TEST(Planner, NanotronsRanksHandOutPieces) {
  const auto plan = [](const std::string& more) {
    return data_of("plan run --preset llama_1b --bf16 --dp 64 --gbs 64 --mbs 1 --software nanotron " + more)
        .at("estimate");
  };
  const auto shared = plan("--zero-stage 1"), off = plan("--zero-stage 1 --what-if pieces=0"), whole = plan("");
  EXPECT_GT(shared.at("pieces_ms"), 0);
  EXPECT_EQ(off.at("pieces_ms"), 0);
  EXPECT_EQ(whole.at("pieces_ms"), 0);
  EXPECT_NEAR(shared.at("virtual_step_ms").get<double>() - off.at("virtual_step_ms").get<double>(),
              shared.at("pieces_ms").get<double>(), 1e-6);
}

// A step of many small kernels is as long as its host needs to launch them.
TEST(Planner, AStepOfSmallKernelsWaitsForItsHost) {
  const std::string run =
      "plan run --preset qwen3_30b_a3b --bf16 --world-size 16 --ep 8 --pp 2 --gbs 64 --mbs 1 --software "
      "transformer_engine ";
  const auto waits = data_of(run).at("estimate"), free = data_of(run + "--what-if launches=0").at("estimate");
  const double launches = waits.at("launch_wait_ms");
  EXPECT_GT(launches, 0.03 * waits.at("virtual_step_ms").get<double>());
  EXPECT_EQ(free.at("launch_wait_ms"), 0);
  EXPECT_LT(free.at("virtual_step_ms").get<double>(), waits.at("virtual_step_ms").get<double>() - launches);
}

// Four of 64 ranks are drawn, one for each stage, and their step is the one that the plan states.
TEST(Planner, AStepIsATraceOfARankOfEachStage) {
  const std::string file = testing::TempDir() + "/planned_step.json.gz";
  const auto plan =
      data_of("plan run --preset llama_1b --bf16 --world-size 64 --pp 4 --tp 2 --gbs 128 --force --out " + file);
  EXPECT_THAT(ranklab("trace validate " + file).output, HasSubstr("sound"));
  const auto ranks = data_of("trace stats " + file).at("ranks");
  ASSERT_EQ(ranks.size(), 4u);
  double longest = 0;
  for (const auto& rank : ranks) {
    EXPECT_THAT(rank.dump(), HasSubstr(" x16"));
    longest = std::max(longest, rank.at("total_ns").get<double>());
  }
  const double step_ns = 1e6 * plan.at("estimate").at("virtual_step_ms").get<double>();
  EXPECT_NEAR(longest / step_ns, 1, 0.02);
}

// Weight gradients that a plan repeats take as long in the picture as the one that ran.
TEST(Planner, EveryPassOfASplitBackwardIsDrawnAsLongAsItTakes) {
  const std::string file = temporary_path("planned_zb");
  ASSERT_EQ(ranklab("plan run --preset llama_1b --bf16 --world-size 4 --pp 4 --pipeline-schedule zb-h1 --gbs 32 "
                    "--mbs 1 --out " +
                    file)
                .exit_code,
            0);
  const auto trace = nlohmann::json::parse(text_of_file(file));
  std::map<std::string, std::set<int64_t>> lengths;  // of a stage's passes
  for (const auto& event : trace.at("traceEvents"))
    if (event.value("cat", "") == "compute" && event.at("args").value("stage", -1) == 1)
      lengths[event.at("name")].insert(std::llround(event.at("dur").get<double>()));
  for (const char* pass : {"F", "B", "W"}) {
    ASSERT_FALSE(lengths[pass].empty()) << pass;
    EXPECT_GT(*lengths[pass].begin(), 0) << pass;
    EXPECT_LE(*lengths[pass].rbegin() - *lengths[pass].begin(), *lengths[pass].rbegin() / 10) << pass;
  }
}

// Runs it where one core is allowed.
Outcome on_one_core(const std::string& arguments) {
  cpu_set_t all, one;
  CPU_ZERO(&one);
  EXPECT_EQ(sched_getaffinity(0, sizeof all, &all), 0);
  for (int core = 0; core < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++core)
    if (CPU_ISSET(core, &all)) CPU_SET(core, &one);
  EXPECT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  Outcome run = ranklab(arguments);
  EXPECT_EQ(sched_setaffinity(0, sizeof all, &all), 0);
  return run;
}

// The search and a plan of its best layout agree; and parallel processes give the same result as one.
TEST(Planner, TheSearchPutsTheFastestThatFitsFirst) {
  const std::string model = "--preset llama_1b --bf16 --gbs 32 ";
  const auto rows = data_of("plan search --world-size 8 --plans 8 " + model).at("rows");
  EXPECT_EQ(answer_of(on_one_core("plan search --json --world-size 8 --plans 8 " + model)).at("rows"), rows);
  ASSERT_LE(rows.size(), 8u);
  double last = 0;
  for (const auto& row : rows) {
    if (!row.at("fits")) break;
    EXPECT_GE(row.at("step_s").get<double>(), last);
    last = row["step_s"];
  }
  const auto best = rows.at(0);
  ASSERT_TRUE(best.at("fits"));
  const auto plan = data_of("plan run --world-size 8 " + model + best.at("flags").get<std::string>()).at("estimate");
  EXPECT_NEAR(plan.at("virtual_step_ms").get<double>() * 1e-3, best.at("step_s").get<double>(), 1e-6);
  const Outcome why = ranklab("plan search --world-size 8 --plans 4 --why '--tp 8' --what-if launches=1000 " + model);
  EXPECT_THAT(why.output, HasSubstr("exposed tp"));
  EXPECT_THAT(why.output, HasSubstr("waiting for kernel launches"));
}

// Nobody would knowingly train a model of billions of parameters in fp32.
TEST(Planner, SaysWhatIsPlannedAndWhereProductsAreSlow) {
  const std::string search = "plan search --preset llama_8b --world-size 8 --gbs 8 --plans 2 ";
  const Outcome fp32 = ranklab(search), bf16 = ranklab(search + "--bf16");
  EXPECT_THAT(fp32.output, HasSubstr("sequence 8192, fp32; 8 sequences a step on 8 x NVIDIA H100 SXM5 80 GB"));
  EXPECT_THAT(fp32.output, HasSubstr("warning: products run in fp32, at 67 TFLOP/s at most; --bf16 reaches 989"));
  EXPECT_THAT(bf16.output, HasSubstr("sequence 8192, bf16; "));
  EXPECT_THAT(bf16.output, Not(HasSubstr("warning")));
  EXPECT_THAT(ranklab("plan run --preset llama_8b --world-size 8 --tp 8").output, HasSubstr("--bf16 reaches 989"));
  EXPECT_THAT(ranklab("plan run --preset llama_8b --world-size 8 --tp 8 --module-compute-dtype-rule '*=bf16'").output,
              Not(HasSubstr("--bf16")))
      << "products are in bf16";
  EXPECT_THAT(ranklab("train --dry-run").output, Not(HasSubstr("--bf16"))) << "a small model, to be compared exactly";
}

// What lesson 13 grades against.
TEST(Planner, TheSearchFindsTheLessonsBest) {
  struct Best {
    const char *world, *layout;
  };
  constexpr Best kBests[] = {
      {"--world-size 512 --gbs 128", "--tp 4 --pp 1 --zero-stage 3 --mbs 1 --grad-sync microbatch"},
      {"--world-size 64 --gbs 256", "--tp 4 --pp 1 --zero-stage 3 --mbs 1 --grad-sync microbatch"},
      {"--world-size 512 --gbs 1024", "--tp 2 --pp 1 --zero-stage 3 --mbs 1 --grad-sync microbatch"}};
  for (const Best& best : kBests) {
    EXPECT_EQ(data_of(std::string("plan search --preset llama_70b --bf16 ") + best.world).at("rows").at(0).at("flags"),
              best.layout)
        << best.world;
    if (!all_cases()) break;
  }
}

TEST(Planner, TheSearchDrawsTheFrontAndRunsTheBest) {
  const std::string picture = testing::TempDir() + "/front.svg", table = testing::TempDir() + "/front.csv";
  const std::string tiny =
      "plan search --world-size 4 --gbs 8 --plans 6 --num-layers 6 --hidden-size 32 --ffn-hidden-size 64 "
      "--num-attention-heads 4 --seq-length 32 --force --measure 2 --json --out " +
      picture + " --out " + table;
  const auto found = data_of(tiny);
  const std::string svg = text_of_file(picture);
  EXPECT_THAT(text_of_file(table), HasSubstr("layout,step_s"));
  EXPECT_THAT(svg, HasSubstr("memory of a rank, GiB"));
  for (const auto& row : found.at("rows")) {
    if (row.value("on_front", false)) {
      EXPECT_THAT(svg, HasSubstr(row.at("flags").get<std::string>() + ": "));
    }
  }
  ASSERT_EQ(found.at("measured").size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    const auto& run = found["measured"][i];
    EXPECT_EQ(run.at("flags"), found["rows"][i].at("flags"));
    EXPECT_NEAR(run.at("virtual_s").get<double>() / run.at("planned_s").get<double>(), 1, 0.01);
    EXPECT_GT(run.at("wall_s").get<double>(), 0);
  }
}

}  // namespace
}  // namespace ranklab
