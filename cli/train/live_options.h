// Options for watching a training run: --viz, --viz-listen, --viz-paused. Thread rule: plain data.
#pragma once
#include <string>

namespace ranklab {

class CommandLine;

struct LiveRunOptions {
  bool window = false;
  bool listens = false;
  bool start_paused = false;
  std::string path = {};  // the socket's path; empty: viz.sock in the run's folder

  bool any() const { return window || listens; }
};

void add_live_options(CommandLine& app, LiveRunOptions& options);

}  // namespace ranklab
