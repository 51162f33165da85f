// Where text comes from: any file, Debian's public-domain `bible-kjv` (4.4 MB of English, printed by its `bible`
// program), or a small generator of English-like sentences when neither is there. Thread rule: call before ranks start.
#pragma once
#include <cstdint>
#include <string>

namespace ranklab {

struct Corpus {
  std::string text;
  std::string source;  // for the start banner: a path, "bible-kjv (Debian)", or "generated sentences"
};

// An empty path means the Debian corpus if its program is installed (the text is kept in the user's cache directory
// after the first use), else generated sentences. Throws kBadFile (empty file), kIo (cannot be read), or
// kInvalidArgument (lines of JSON, or a dataset of Megatron-LM), which says what to pass to `option` instead.
Corpus load_corpus(const std::string& path, const std::string& option = "--data-path");

// The bytes of the text that a path names; only its beginning is read. Throws as load_corpus() does.
int64_t measure_corpus(const std::string& path, const std::string& option);

// Throws kInvalidArgument for files that are not text according to their names (lines of JSON, a dataset of
// Megatron-LM), and says how to make them a folder of shards. `option`: the option that takes either.
void require_text(const std::string& path, const std::string& option);

// English-like sentences from a fixed grammar; the same seed gives the same text everywhere.
std::string generate_sentences(uint64_t seed, size_t bytes);

// $XDG_CACHE_HOME/ranklab or ~/.cache/ranklab, created when missing; "": the user has no home.
std::string user_cache_directory();

}  // namespace ranklab
