// A run's folder for tests of the report: all files, or those that are asked for.
#pragma once
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "core/trace/chrome_writer.h"
#include "tests/cli/run_program.h"
#include "tests/viz/model/stage_sample.h"
#include "viz/model/run/run_facts.h"

namespace ranklab::viz::samples {

struct ReportSample {
  int steps = 3;
  std::string title = "gpt_tiny on two ranks";
  std::string setting = "flag --pp";  // an origin
  bool record = true, metrics = true, trace = true, sentinels = true, finite = true;
};

inline std::string report_folder(const std::string& name, const ReportSample& sample = {}) {
  const std::string folder = temporary_path(name);
  std::filesystem::create_directories(folder);
  if (sample.record)
    std::ofstream(folder + "/run.json") << nlohmann::json{
        {"command", "ranklab train --pp 2 # " + sample.title},
        {"title", sample.title},
        {"layout", "pp 2 (1f1b)"},
        {"settings", {{"parallel.pp", "2", sample.setting}, {"optim.lr", "0.001", "default"}}},
        {"machine", nlohmann::json::array({nlohmann::json::array({"processor", "a processor"})})},
        {"outcome",
         {{"steps_done", sample.steps},
          {"seconds", 1.5},
          {"interrupted", false}}}}.dump();
  if (sample.metrics) {
    std::ofstream out(folder + "/metrics.jsonl");
    for (int step = 0; step < sample.steps; ++step)
      out << nlohmann::json{{"step", step},
                            {"loss", sample.finite || step != 1 ? nlohmann::json(5.0 / (step + 1)) : nlohmann::json()},
                            {"grad_norm", 1.0},
                            {"lr", 0.001 * step},
                            {"tokens_per_s", 1000},
                            {"virtual_step_ms", 0.4}}
                 .dump()
          << "\n";
    out << nlohmann::json{{"step", 1}, {"validation_loss", 3.5}}.dump() << "\n";
  }
  if (sample.sentinels)
    std::ofstream(folder + "/sentinels.jsonl")
        << R"({"step":1,"values":{},"fired":[{"sentinel":"loss_spike","tag":"Health/ratio","value":12,)"
        << R"("level":"warn","bounds":"above 3","action":"warn"}]})"
        << "\n";
  if (sample.trace) {
    TraceFile file = one_microbatch();
    for (RankTrace& rank : file.ranks) rank.label += " " + sample.title;
    write_chrome_trace(folder + "/trace.json.gz", file.ranks, {.gpus_per_node = 8, .title = sample.title});
  }
  return folder;
}

inline std::vector<RunFacts> report_runs(const std::vector<std::string>& folders) {
  std::vector<RunFacts> runs;
  for (const std::string& folder : folders) runs.push_back(run_facts(folder));
  return runs;
}

}  // namespace ranklab::viz::samples
