// ranklab debug
#include <memory>

#include "cli/common/command.h"
#include "cli/common/command_line.h"
#include "cli/config/config_options.h"
#include "cli/debug/debug_prompt.h"
#include "cli/train/background_run.h"

namespace ranklab {
namespace {

int debug(const ConfigOptions& options) {
  TrainRun run(options, {.watched = true, .start_paused = true, .progress = false, .command = "ranklab debug"});
  DebugPrompt prompt(run);
  BackgroundRun background(run);
  prompt.talk();
  return background.join();
}

}  // namespace

CommandAction setup_debug(CommandLine& app) {
  app.footer(
      "Takes the flags of train, pauses every rank before its first event, and reads commands:\n"
      "  step [N], rank R [N], microbatch, next [N], continue, break WHERE, where, tensor rR NAME, help, quit\n"
      "Examples:\n  ranklab debug --pp 2 --tp 2 --dp 2 --mock-data\n"
      "  printf 'break F mb=3 rank=2\\ncontinue\\nwhere\\nquit\\n' | ranklab debug --pp 4 --mock-data");
  auto options = std::make_shared<ConfigOptions>(app);
  return [options] { return debug(*options); };
}

}  // namespace ranklab
