// What a byte-level BPE tokenizer is made of, as Hugging Face's tokenizer.json says it: text is cut at added tokens,
// normalized, cut into words by the pre-tokenizer's patterns, and each word's bytes are merged (Sennrich et al. 2016,
// arXiv 1508.07909; on bytes Radford et al. 2019) in the order in which training found the merges. Tokens are spelled
// as in the file (core/base/byte_alphabet.h). Thread rule: plain data.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace ranklab {

enum class NormalForm { kNfc, kNfd, kNfkc, kNfkd };

// What becomes of the matches of a pattern.
enum class SplitBehavior { kRemoved, kIsolated, kMergedWithPrevious, kMergedWithNext, kContiguous };

struct SplitStep {
  std::string pattern = {};
  bool is_regex = true;  // false: the text itself
  SplitBehavior behavior = SplitBehavior::kIsolated;
  bool invert = false;  // what lies between the matches counts as match
  bool operator==(const SplitStep&) const = default;
};

// `splits` one after another; then what is left gets a space in front, if it has none, and GPT-2's pattern.
struct PreTokenizerSpec {
  std::vector<SplitStep> splits = {};
  bool add_prefix_space = false;
  bool gpt2_pattern = true;
  bool operator==(const PreTokenizerSpec&) const = default;
};

struct AddedToken {
  uint32_t id = 0;
  std::string content = {};
  bool single_word = false;  // only between characters of no word
  bool lstrip = false;       // takes the spaces before it
  bool rstrip = false;       // takes the spaces after it
  bool normalized = false;   // looked for after normalization
  bool special = false;      // not text: left out where text is shown
  bool operator==(const AddedToken&) const = default;
};

struct MergeRule {
  uint32_t left = 0, right = 0, merged = 0;
  bool operator==(const MergeRule&) const = default;
};

struct TokenizerSpec {
  std::vector<NormalForm> normal_forms = {};  // one after another
  PreTokenizerSpec pre_tokenizer = {};
  std::vector<AddedToken> added = {};
  std::vector<std::pair<std::string, uint32_t>> vocab = {};  // by id
  std::vector<MergeRule> merges = {};                        // the first is merged first
  bool ignore_merges = false;                                // a word that is a token is that token
  std::optional<uint32_t> unk = {};                          // of bytes that are no token
  bool fuse_unk = false;                                     // one for several such bytes
  std::vector<uint32_t> before = {}, after = {};             // what the post-processor puts around a text
  bool operator==(const TokenizerSpec&) const = default;
};

}  // namespace ranklab
