// Writes run.json in a run's folder: the command, every setting with its origin, the machine, and in the end the
// outcome, for `ranklab report` (viz/model/run/run_record.h reads it). The file is written when the first step begins
// and again when the run ends, completely each time. Thread rule: hooks on rank 0's thread.
#pragma once
#include <map>
#include <memory>
#include <string>

#include "core/runtime/hooks.h"

namespace ranklab {

class RunRecordHook : public Hook {
 public:
  // Call after an error, when no rank runs any more. Writes nothing for a run that has not begun a step. Throws kIo.
  virtual void on_error(const std::string& error) = 0;
};

// `origins`: as in MergedConfig. Creates the folder. Throws kIo naming it.
std::shared_ptr<RunRecordHook> make_run_record_hook(const std::string& directory,
                                                    std::map<std::string, std::string> origins);

// This process's command line, quoted for a shell.
std::string typed_command();
// `ranklab train` with a flag for every setting that neither a default nor the preset gave, whatever its source was.
std::string flags_command(const TrainConfig& config, const std::map<std::string, std::string>& origins);

}  // namespace ranklab
