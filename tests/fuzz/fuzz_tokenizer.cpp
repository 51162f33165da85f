// Any bytes as a tokenizer.json, and what follows a zero byte as a text for it. The reader refuses with ranklab's own
// error; or what it read is a tokenizer that is written as it was read, and gives every text the same tokens again,
// each of its vocabulary.
#include <cstdlib>
#include <string>
#include <string_view>

#include "core/base/error.h"
#include "core/data/tokenizer/tokenizer.h"
#include "core/data/tokenizer/tokenizer_file.h"
#include "core/data/tokenizer/tokenizer_spec.h"

using namespace ranklab;

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

// A damaged file, a valid one with a feature that ranklab lacks, or a text that is not UTF-8.
void require_refusal(const Error& error) {
  require(error.kind() == ErrorKind::kBadFile || error.kind() == ErrorKind::kInvalidArgument);
}

void use(Tokenizer& tokenizer, std::string_view text) {
  const std::vector<uint32_t> ids = tokenizer.encode(text, false);
  require(tokenizer.encode(text, false) == ids);
  for (const uint32_t id : ids) require(id < tokenizer.vocab_size());
  tokenizer.decode(std::vector<int64_t>(ids.begin(), ids.end()));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view all(reinterpret_cast<const char*>(data), size);
  const size_t end = std::min(all.find('\0'), size);
  try {
    Tokenizer tokenizer(std::string(all.substr(0, end)), "tokenizer.json");
    const std::string written = tokenizer_json(tokenizer.spec());
    require(read_tokenizer_json(written, "again") == tokenizer.spec());
    use(tokenizer, "a b  c\n12 <x>é");
    if (end < size) use(tokenizer, all.substr(end + 1));
  } catch (const Error& error) {
    require_refusal(error);
  }
  return 0;
}
