// `ranklab data tokenizer train | encode | decode | info`: byte-level BPE tokenizers in Hugging Face's file format.
// Thread rule: main thread.
#pragma once
#include "cli/common/command.h"

namespace ranklab {

CommandAction setup_data_tokenizer(CommandLine& app);

}  // namespace ranklab
