// `ranklab data tokenizer train`. Thread rule: main thread.
#pragma once
#include "cli/common/command.h"

namespace ranklab {

CommandAction setup_train_tokenizer(CommandLine& app);

}  // namespace ranklab
