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

// path empty: the Debian corpus when its program is installed (kept in the user's cache directory after the first use),
// else generated sentences. Throws kBadFile (empty file), kIo (cannot read), or kInvalidArgument (lines of
// JSON, a dataset of Megatron-LM), which say what to pass to `option`.
Corpus load_corpus(const std::string& path, const std::string& option = "--data-path");

// The bytes of the text that a path names; only its beginning is read. Throws as load_corpus() does.
int64_t measure_corpus(const std::string& path, const std::string& option);

// Throws kInvalidArgument for files whose bytes are no text, as their names say (lines of JSON, a dataset of
// Megatron-LM): the way to their tokens is a folder of shards. `option`: that takes either.
void require_text(const std::string& path, const std::string& option);

// English-like sentences from a fixed grammar: the same text for the same seed everywhere.
std::string generate_sentences(uint64_t seed, size_t bytes);

// $XDG_CACHE_HOME/ranklab or ~/.cache/ranklab, created when missing; "": the user has no home.
std::string user_cache_directory();

}  // namespace ranklab
