// The tokenizer that belongs to a saved model: tokenizer.json in a checkpoint's folder, or the files of a Hugging Face
// folder. Thread rule: one thread.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "core/checkpoint/checkpoint.h"
#include "core/data/tokenizer/tokenizer.h"

namespace ranklab {

// `folder`: as open_saved_model() takes it. RETURNS: nothing if there is no tokenizer, or one of a kind that ranklab
// does not read, which is then reported in `notes`. Throws kBadFile, kIo.
std::optional<Tokenizer> saved_tokenizer(const std::string& folder, std::vector<std::string>& notes);
std::optional<Tokenizer> tokenizer_of(const Checkpoint& checkpoint);
// The text of the token that ends its documents, for tokenizer_config.json; "" for none.
std::string end_token_text(const Tokenizer& tokenizer);

}  // namespace ranklab
