// `ranklab trace info | stats | diff | validate`
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/common/command.h"
#include "cli/common/command_line.h"
#include "cli/common/command_module.h"
#include "cli/common/json_output.h"
#include "cli/common/trace_input.h"
#include "cli/trace/trace_compare.h"
#include "cli/trace/trace_stats.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/trace/find_trace.h"
#include "core/trace/trace_report.h"
#include "core/trace/trace_validate.h"

namespace ranklab {
namespace {

// Prints each rank's time breakdown, and the traffic by axis and verb.
int trace_info(const std::string& named, bool json) {
  const std::string path = find_trace(named);
  TracePrefix read = read_trace_input(path);
  TraceFile& file = read.file;
  for (RankTrace& trace : file.ranks) trace.label = without_controls(std::move(trace.label));
  const std::vector<RankSummary> summaries = summarize(file);
  if (!json) {
    std::printf("%s: %zu of %d ranks, %s time\n\n", path.c_str(), file.ranks.size(), file.world_size,
                file.clock == TraceClock::kVirtual ? "virtual" : "wall");
  }
  const auto data = [&] { return nlohmann::ordered_json::parse(format_summary_json(summaries)); };
  std::vector<std::string> warnings;
  if (!read.broken.empty()) warnings.push_back(read.broken);
  std::fputs((json ? json_result(data(), warnings) : format_summary(summaries)).c_str(), stdout);
  if (!json && !read.broken.empty()) std::printf("%s\n", read.broken.c_str());
  return 0;
}

// RETURNS: 0 if the file is valid; else prints one line per problem and returns the exit code of a failed check.
int trace_validate(const std::string& named, bool json) {
  const std::string path = find_trace(named);
  const std::vector<std::string> problems = validate_trace_file(path);
  if (json) {
    const int code = problems.empty() ? 0 : exit_code(ErrorKind::kCheckFailed);
    const nlohmann::ordered_json data = {{"file", path}, {"sound", problems.empty()}, {"problems", problems}};
    const Error unsound(ErrorKind::kCheckFailed, {.where = "trace validate",
                                                  .what = "the trace is not sound",
                                                  .got = std::to_string(problems.size()) + " problems"});
    std::fputs((code == 0 ? json_result(data) : json_error(unsound, data, code)).c_str(), stdout);
    return code;
  }
  for (const std::string& problem : problems) std::printf("%s\n", without_controls(problem).c_str());
  if (!problems.empty()) return exit_code(ErrorKind::kCheckFailed);
  std::printf("%s: sound\n", path.c_str());
  return 0;
}

CommandAction setup_stats(CommandLine& app) {
  auto options = std::make_shared<TraceStatsOptions>();
  app.add_option(
         "file", options->paths,
         "a trace (.json, .json.gz, a run's folder, 'last'), a schedule (.csv), or one torch.profiler file per rank")
      ->required();
  app.add_option("--step", options->step, "only this step")->range(0, 1'000'000'000);
  app.add_option("--rows", options->rows, "number of longest intervals and operators to show")
      ->range(1, 100000)
      ->capture_default_str();
  app.add_flag("--moe", options->moe, "mixture of experts: load, dead experts, drops, and tokens sent between ranks");
  app.add_option("--gpus-per-node", options->gpus_per_node, "GPUs per node (default: the trace's)")->range(1, 65536);
  app.add_flag("--json", options->json, "print one JSON object");
  return [options] { return trace_stats(*options); };
}

CommandAction setup_diff(CommandLine& app) {
  auto options = std::make_shared<TraceDiffOptions>();
  app.add_option("a", options->a, "a trace")->required();
  app.add_option("b", options->b, "the trace to compare it with")->required();
  app.add_option("--fail-over", options->fail_over,
                 "exit with 4 if makespan, a step or a memory peak differs by more than this many percent")
      ->range(0.0, 1e6);
  app.add_option("--rows", options->rows, "number of operators to show")->range(1, 100000)->capture_default_str();
  app.add_flag("--json", options->json, "print one JSON object");
  return [options] { return trace_diff(*options); };
}

}  // namespace

CommandAction setup_trace(CommandLine& app) {
  struct Options {
    std::string path;
    bool json = false;
  };
  auto options = std::make_shared<Options>();
  app.require_subcommand(0, 1);
  app.footer(
      "Examples:\n  ranklab trace stats last --step 1\n  ranklab trace stats last --moe\n  ranklab trace diff "
      "before.json.gz after.json.gz --fail-over "
      "5\n"
      "  ranklab trace validate runs/last/trace.json.gz");
  CommandLine* info =
      app.add_subcommand("info", "summary per rank: compute, exposed communication, waiting, bytes by axis");
  info->add_option("file", options->path, "a trace written by ranklab (.json, .json.gz, a run's folder, 'last')")
      ->required();
  info->add_flag("--json", options->json, "print one JSON object");
  CommandLine* stats =
      app.add_subcommand("stats", "what costs most; bubbles and their causes, critical path, operators, traffic");
  const CommandAction stats_action = setup_stats(*stats);
  CommandLine* diff = app.add_subcommand("diff", "compare two traces: what became slower, faster, larger");
  const CommandAction diff_action = setup_diff(*diff);
  CommandLine* validate = app.add_subcommand("validate", "check that a trace is complete and consistent");
  validate->add_option("file", options->path, "a trace written by ranklab (.json, .json.gz, a run's folder, 'last')")
      ->required();
  validate->add_flag("--json", options->json, "print one JSON object");
  return [=, &app] {
    if (info->parsed()) return trace_info(options->path, options->json);
    if (stats->parsed()) return stats_action();
    if (diff->parsed()) return diff_action();
    if (validate->parsed()) return trace_validate(options->path, options->json);
    std::printf("%s", app.help().c_str());
    return 0;
  };
}

}  // namespace ranklab

RANKLAB_MODULE_COMMAND(trace)
