// ranklab trace info | validate
#include <CLI/CLI.hpp>
#include <memory>

#include "cli/command.h"
#include "cli/trace_command.h"

namespace ranklab {

CommandAction setup_trace(CLI::App& app) {
  struct Options {
    std::string path;
    bool json = false;
  };
  auto options = std::make_shared<Options>();
  app.require_subcommand(0, 1);
  app.footer(
      "Examples:\n  ranklab trace info runs/last/trace.json.gz\n  ranklab trace validate runs/last/trace.json.gz");
  CLI::App* info = app.add_subcommand("info", "per rank: compute, exposed communication, waiting, bytes by axis");
  info->add_option("file", options->path, "a trace written by ranklab (.json or .json.gz)")->required();
  info->add_flag("--json", options->json, "print one JSON object");
  CLI::App* validate = app.add_subcommand("validate", "check that a trace is complete and consistent");
  validate->add_option("file", options->path, "a trace written by ranklab (.json or .json.gz)")->required();
  return [&app, options, info, validate] {
    if (info->parsed()) return trace_info(options->path, options->json);
    if (validate->parsed()) return trace_validate(options->path);
    std::printf("%s", app.help().c_str());
    return 0;
  };
}

}  // namespace ranklab
