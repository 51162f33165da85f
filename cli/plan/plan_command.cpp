// `ranklab plan run | search | memory | validate`: predicts how long a step takes on machines that the user does not
// have; computes the memory of every rank from the configuration alone, and with --measure compares it with what two
// training steps really use; and compares measured runs with the planner's predictions.
#include <cstdio>
#include <memory>

#include "cli/common/command.h"
#include "cli/common/command_line.h"
#include "cli/common/style.h"
#include "cli/config/config_options.h"
#include "cli/plan/plan_search.h"
#include "cli/plan/plan_validate.h"
#include "cli/train/dry_run.h"
#include "cli/training_module.h"
#include "core/base/error.h"
#include "core/base/files/output_file.h"
#include "core/base/shell_quote.h"
#include "core/base/text.h"
#include "core/trace/chrome_writer.h"

namespace ranklab {
namespace {

TrainConfig planner_defaults() {
  TrainConfig c;
  c.efficiency = Efficiency::kMeasured;
  c.mock_data = true;
  return c;
}

// One rank of each stage represents all ranks that behave alike; the trace says how many these are.
void write_step(const std::string& path, const RunPlan& plan, std::vector<RankTrace> traces) {
  const int alike = plan.mesh.world_size() / static_cast<int>(traces.size());
  for (RankTrace& trace : traces)
    if (alike > 1) trace.label += strprintf(" x%d", alike);
  write_chrome_trace(path, traces, {.gpus_per_node = plan.gpus_per_node(), .title = plan.config.preset + ", planned"});
  std::fprintf(stderr, "wrote %s: ranklab viz %s, or Perfetto\n", path.c_str(), shell_path(path).c_str());
}

CommandAction add_plan_run(CommandLine& app) {
  auto options = std::make_shared<ConfigOptions>(app, planner_defaults());
  auto json = std::make_shared<bool>(false), force = std::make_shared<bool>(false);
  auto out = std::make_shared<std::string>();
  app.add_flag("--json", *json, "print one JSON object");
  app.add_option("--out", *out,
                 "write the step as a trace for ranklab viz, with one rank for each group of equal ranks")
      ->type_name("FILE");
  app.add_flag("--force", *force, "let --out overwrite an existing file");
  app.footer(
      "Examples:\n  ranklab plan run --preset llama_8b --bf16 --world-size 64 --zero-stage 3 --gbs 128 --mbs 2\n"
      "  ranklab plan run --preset llama_1b --bf16 --hardware a100-80 --world-size 8 --gbs 64 --mbs 8");
  return [options, json, out, force] {
    if (!out->empty()) check_output({.path = *out, .option = "--out", .force = *force});
    const RunPlan plan = options->resolve(planned_config(*options));
    options->report_idle(plan);
    if (plan.config.check_gradient_types) training_functions().check_types(plan);
    const TrainingFunctions& functions = training_functions();
    const StepRecord step = out->empty() ? functions.record_step(plan) : functions.record_traced_step(plan);
    if (!out->empty()) write_step(*out, plan, step.traces);
    std::fputs((*json ? dry_run_json(plan, step) : dry_run_text(plan, step, style_for(stdout))).c_str(), stdout);
    return 0;
  };
}

CommandAction add_plan_search(CommandLine& app) {
  auto options = std::make_shared<ConfigOptions>(app, planner_defaults());
  auto request = std::make_shared<SearchRequest>();
  app.add_option("--plans", request->plans, "maximum number of layouts to plan")
      ->capture_default_str()
      ->range(2, 10000);
  app.add_option("--memory-share", request->memory_share, "share of a GPU's memory that may be used")
      ->capture_default_str()
      ->range(0.01, 1.0);
  app.add_option("--why", request->why, "explain where a layout loses time, e.g. \"--tp 8 --pp 4\"")
      ->type_name("FLAGS");
  app.add_option("--out", request->out,
                 "write every planned layout as CSV, or as a picture of memory and step time (.svg, .png); repeatable")
      ->one_value_each()
      ->type_name("FILE");
  app.add_option("--measure", request->measure, "run the N best layouts for a few steps on simulated ranks")
      ->range(1, 100);
  app.add_option("--theme", request->theme, "theme of the picture")->one_of({"light", "dark"});
  app.add_flag("--force", request->force, "overwrite a file that this command did not write");
  app.add_flag("--json", request->json, "print one JSON object");
  app.footer(
      "Example:\n  ranklab plan search --preset llama_8b --bf16 --world-size 64 --gbs 128 --why \"--tp 8 --pp 2\"");
  return [options, request] { return run_plan_search(*options, *request); };
}

CommandAction add_plan_validate(CommandLine& app) {
  auto request = std::make_shared<ValidateRequest>();
  app.add_option("FILE", request->file, "rows of measured runs, JSON (docs/planner.md)")->required();
  app.add_option("--only", request->only,
                 "only rows whose id or source contains this text, or of this hardware profile")
      ->type_name("TEXT");
  app.add_flag("--flags", request->flags, "print each row as a command line");
  app.add_flag("--json", request->json, "print one JSON object");
  return [request] { return run_plan_validate(*request); };
}

}  // namespace

CommandAction setup_plan(CommandLine& app) {
  CommandLine* run = app.add_subcommand("run", "predict a step's time, memory and traffic on real kernels and links");
  const CommandAction run_action = add_plan_run(*run);
  CommandLine* search = app.add_subcommand("search", "find the layouts with the shortest steps that fit");
  const CommandAction search_action = add_plan_search(*search);
  CommandLine* validate = app.add_subcommand("validate", "compare measured runs with the planner's predictions");
  const CommandAction validate_action = add_plan_validate(*validate);
  CommandLine* memory = app.add_subcommand("memory", "predict every rank's memory by category, at its peak");
  auto options = std::make_shared<ConfigOptions>(*memory);
  auto show = std::make_shared<PlanMemoryRequest>();
  memory->add_flag("--measure", show->measure, "run two steps on simulated ranks and compare the measured memory");
  memory->add_flag("--json", show->json, "print one JSON object");
  app.require_subcommand(0, 1);
  app.footer(
      "Examples:\n  ranklab plan memory --dp 4 --bf16 --zero-stage 2 --measure\n"
      "  ranklab plan memory --tp 2 --pp 2 --recompute-granularity full --json");
  return [&app, memory, options, show, run, run_action, search, search_action, validate, validate_action] {
    if (run->parsed()) return run_action();
    if (search->parsed()) return search_action();
    if (validate->parsed()) return validate_action();
    if (!memory->parsed()) {
      std::printf("%s", app.help().c_str());
      return 0;
    }
    const RunPlan plan = options->resolve(options->config());
    options->report_idle(plan);
    return training_functions().plan_memory(plan, *show);
  };
}

}  // namespace ranklab
