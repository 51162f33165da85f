// `ranklab data export`: token shards as other trainers store tokens. Thread rule: main thread.
#pragma once
#include "cli/common/command.h"

namespace ranklab {

CommandAction setup_data_export(CommandLine& app);

}  // namespace ranklab
