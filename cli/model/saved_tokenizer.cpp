#include "cli/model/saved_tokenizer.h"

#include "core/base/error.h"
#include "core/base/files/path_type.h"
#include "core/checkpoint/hf/folder.h"
#include "core/checkpoint/run_folder.h"

namespace ranklab {

std::optional<Tokenizer> saved_tokenizer(const std::string& folder, std::vector<std::string>& notes) {
  if (!is_hf_folder(folder)) return tokenizer_of(Checkpoint(checkpoint_named(folder)));
  const auto has = [&](const char* name) { return is_there(folder + "/" + name); };
  if (!has(kTokenizerFile) && !(has("vocab.json") && has("merges.txt"))) return {};
  try {
    return open_tokenizer(folder);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kInvalidArgument) throw;
    notes.push_back("its tokenizer is left out: " + error.text().what + " (" + error.text().got + ")");
    return {};
  }
}

std::optional<Tokenizer> tokenizer_of(const Checkpoint& checkpoint) {
  if (checkpoint.tokenizer().empty()) return {};
  return Tokenizer(checkpoint.tokenizer(), checkpoint.folder() + "/" + kTokenizerFile);
}

std::string end_token_text(const Tokenizer& tokenizer) {
  const std::optional<uint32_t> end = tokenizer.end_token();
  return end ? tokenizer.decode(std::vector<int64_t>{*end}) : "";
}

}  // namespace ranklab
