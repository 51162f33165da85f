// The texts on which a tokenizer is trained: lines with their line ends, as Hugging Face's tokenizers train on files,
// or the documents in JSON lines. Cost: one line or document in memory. Thread rule: one thread.
#pragma once
#include <cstdint>
#include <functional>
#include <string>

namespace ranklab {

// RETURNS: the number of bytes of all texts. Throws kBadFile or kIo naming the file; errors that `take` throws are also
// reported with the file.
uint64_t each_training_text(const std::string& path, const std::string& json_key,
                            const std::function<void(const std::string&)>& take);

}  // namespace ranklab
