// `ranklab report`: one run, or two next to each other, as one HTML file.
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "cli/common/command.h"
#include "cli/common/command_line.h"
#include "cli/common/command_module.h"
#include "cli/common/json_output.h"
#include "cli/report/report_json.h"
#include "core/base/error.h"
#include "core/base/files/atomic_file.h"
#include "core/base/files/output_file.h"
#include "core/base/log.h"
#include "core/base/text.h"
#include "viz/html/report/report_page.h"

namespace ranklab {
namespace {

struct ReportOptions {
  std::vector<std::string> runs;
  std::string out;
  bool force = false, json = false;
};

bool is_picture(const ReportOptions& options) { return options.out.ends_with(".svg"); }

std::string written(const ReportOptions& options, const std::vector<viz::RunFacts>& runs) {
  if (!is_picture(options)) return viz::report_page(runs);
  std::string picture = viz::loss_picture(runs);
  RANKLAB_CHECK(!picture.empty(), ErrorKind::kBadFile, .where = "report", .what = "there are no losses to draw",
                .got = quote(join(options.runs, ", ")), .want = "a metrics.jsonl that ranklab train wrote",
                .fix = "train the run, or pass its --log-dir");
  return picture;
}

void check_out(const ReportOptions& options) {
  if (options.out.empty()) return;
  RANKLAB_CHECK(options.out.ends_with(".html") || is_picture(options), ErrorKind::kInvalidArgument, .where = "report",
                .what = "not the name of a page", .got = quote(options.out),
                .want = "a name that ends in .html, or in .svg for the losses alone", .fix = "use -o report.html");
  std::vector<std::string> inputs;
  for (const std::string& run : options.runs)
    for (std::string& file : viz::files_of_run(run)) inputs.push_back(std::move(file));
  check_output({.path = options.out, .option = "-o", .inputs = std::move(inputs), .force = options.force});
}

int run_report(const ReportOptions& options) {
  RANKLAB_CHECK(options.runs.size() <= 2, ErrorKind::kInvalidArgument, .where = "report",
                .what = "a report shows one run, or two side by side",
                .got = std::to_string(options.runs.size()) + " runs", .want = "one or two",
                .fix = "write several reports");
  RANKLAB_CHECK(!options.out.empty() || options.json, ErrorKind::kInvalidArgument, .where = "report",
                .what = "no file to write", .want = "-o FILE.html, or --json", .fix = "add -o report.html");
  check_out(options);
  std::vector<viz::RunFacts> runs;
  for (const std::string& path : options.runs) runs.push_back(viz::run_facts(path));
  if (!options.out.empty()) {
    write_file_atomically(
        options.out, written(options, runs),
        {.where = "report", .what = "cannot write the page", .fix = "check the folder and its space"});
    std::fprintf(stderr, "wrote %s\n", options.out.c_str());
  }
  if (!options.json) {
    for (const viz::RunFacts& run : runs)
      for (const std::string& problem : run.files.problems) log_warning(run.files.folder + ": " + problem);
    return 0;
  }
  nlohmann::ordered_json data = {{"runs", nlohmann::ordered_json::array()}};
  std::vector<std::string> warnings;
  for (const viz::RunFacts& run : runs) {
    data["runs"].push_back(report_json(run));
    for (const nlohmann::ordered_json& problem : data["runs"].back()["problems"])
      warnings.push_back(data["runs"].back()["folder"].get<std::string>() + ": " + problem.get<std::string>());
  }
  if (runs.size() == 2) data["settings_that_differ"] = differences_json(runs[0], runs[1]);
  std::printf("%s", json_result(data, warnings).c_str());
  return 0;
}

}  // namespace

CommandAction setup_report(CommandLine& app) {
  auto options = std::make_shared<ReportOptions>();
  app.add_option("RUN", options->runs,
                 "folder of a run (its --log-dir), last, or a single trace; a second one to compare with")
      ->required()
      ->type_name("FOLDER");
  app.add_option("-o,--out", options->out, "self-contained HTML page to write; NAME.svg: a picture of the losses only")
      ->type_name("FILE");
  app.add_flag("--force", options->force, "let -o overwrite an existing file");
  app.add_flag("--json", options->json, "print the report's numbers as one JSON object");
  app.footer(
      "Examples:\n  ranklab report last -o report.html\n  ranklab report runs/before runs/after -o compare.html\n"
      "  ranklab report last -o loss.svg\n  ranklab report last --json");
  return [options] { return run_report(*options); };
}

}  // namespace ranklab

RANKLAB_MODULE_COMMAND(report)
