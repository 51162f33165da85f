// The texts that a tokenizer is trained on: lines with their ends, as Hugging Face's tokenizers train on files, or of
// JSON lines the documents. Cost: a line or a document in memory. Thread rule: one thread.
#pragma once
#include <cstdint>
#include <functional>
#include <string>

namespace ranklab {

// RETURNS: the bytes of all texts. Throws kBadFile or kIo naming the file; what `take` throws is told with the file,
// too.
uint64_t each_training_text(const std::string& path, const std::string& json_key,
                            const std::function<void(const std::string&)>& take);

}  // namespace ranklab
