// `ranklab data export`: writes token shards in the formats of other trainers. Thread rule: main thread.
#pragma once
#include "cli/common/command.h"

namespace ranklab {

CommandAction setup_data_export(CommandLine& app);

}  // namespace ranklab
