// The parts of a byte-level BPE tokenizer, as described in Hugging Face's tokenizer.json: text is split at added
// tokens, normalized, and split into words by the pre-tokenizer's patterns; then each word's bytes are merged (Sennrich
// et al. 2016, arXiv 1508.07909; on bytes Radford et al. 2019) in the order in which training found the merges. Tokens
// are spelled as in the file (core/base/byte_alphabet.h). Thread rule: plain data.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace ranklab {

enum class NormalForm { kNfc, kNfd, kNfkc, kNfkd };

// What happens to the matches of a pattern.
enum class SplitBehavior { kRemoved, kIsolated, kMergedWithPrevious, kMergedWithNext, kContiguous };

struct SplitStep {
  std::string pattern = {};
  bool is_regex = true;  // false: `pattern` is a literal text
  SplitBehavior behavior = SplitBehavior::kIsolated;
  bool invert = false;  // the parts between matches are treated as matches
  bool operator==(const SplitStep&) const = default;
};

// `splits` are applied one after another; then the rest gets a space in front (add_prefix_space, if it has none) and is
// split by GPT-2's pattern (gpt2_pattern).
struct PreTokenizerSpec {
  std::vector<SplitStep> splits = {};
  bool add_prefix_space = false;
  bool gpt2_pattern = true;
  bool operator==(const PreTokenizerSpec&) const = default;
};

struct AddedToken {
  uint32_t id = 0;
  std::string content = {};
  bool single_word = false;  // only if it is not inside a word
  bool lstrip = false;       // includes the spaces before it
  bool rstrip = false;       // includes the spaces after it
  bool normalized = false;   // matched after normalization
  bool special = false;      // not text: omitted where text is shown
  bool operator==(const AddedToken&) const = default;
};

struct MergeRule {
  uint32_t left = 0, right = 0, merged = 0;
  bool operator==(const MergeRule&) const = default;
};

struct TokenizerSpec {
  std::vector<NormalForm> normal_forms = {};  // applied one after another
  PreTokenizerSpec pre_tokenizer = {};
  std::vector<AddedToken> added = {};
  std::vector<std::pair<std::string, uint32_t>> vocab = {};  // sorted by id
  std::vector<MergeRule> merges = {};                        // earlier merges are applied first
  bool ignore_merges = false;                                // a word that is itself a token is not split
  std::optional<uint32_t> unk = {};                          // the token for bytes that are no token
  bool fuse_unk = false;                                     // a single one for several such bytes
  std::vector<uint32_t> before = {}, after = {};             // tokens that the post-processor puts around a text
  bool operator==(const TokenizerSpec&) const = default;
};

}  // namespace ranklab
