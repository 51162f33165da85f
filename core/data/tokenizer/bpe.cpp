#include "core/data/tokenizer/bpe.h"

#include <algorithm>

#include "core/base/byte_alphabet.h"

namespace ranklab {
namespace {

// Longer words rarely occur again.
constexpr size_t kLongestKnown = 128;
constexpr size_t kMostKnown = 1 << 18;

}  // namespace

Bpe::Bpe(const TokenizerSpec& spec) : merges_(spec.merges), unk_(spec.unk), fuse_unk_(spec.fuse_unk) {
  for (const auto& [spelling, id] : spec.vocab) {
    std::optional<std::string> bytes = bytes_of_spelling(spelling);
    if (!bytes || bytes->empty()) continue;  // no word contains it
    if (bytes->size() == 1) of_byte_[static_cast<unsigned char>((*bytes)[0])] = id;
    if (spec.ignore_merges) words_.emplace(std::move(*bytes), id);
  }
}

void Bpe::encode(std::string_view word, std::vector<uint32_t>& out) {
  if (!words_.empty()) {
    if (const auto whole = words_.find(word); whole != words_.end()) {
      out.push_back(whole->second);
      return;
    }
  }
  if (word.size() > kLongestKnown) {
    merge(word, out);
    return;
  }
  if (const auto known = known_.find(word); known != known_.end()) {
    const auto tokens = known_tokens_.begin() + known->second.begin;
    out.insert(out.end(), tokens, tokens + known->second.size);
    return;
  }
  const size_t begin = out.size();
  merge(word, out);
  if (known_.size() == kMostKnown) {
    known_.clear();
    known_tokens_.clear();
  }
  const Stretch tokens{static_cast<uint32_t>(known_tokens_.size()), static_cast<uint32_t>(out.size() - begin)};
  known_.emplace(word, tokens);
  known_tokens_.insert(known_tokens_.end(), out.begin() + static_cast<std::ptrdiff_t>(begin), out.end());
}

// Bytes that are not tokens are omitted, or replaced by the unknown token if the vocabulary has one.
void Bpe::read_symbols(std::string_view word) {
  symbols_.clear();
  bool after_unknown = false;
  const auto add = [this](uint32_t token) {
    const auto at = static_cast<int32_t>(symbols_.size());
    symbols_.push_back({token, at - 1, at + 1});
  };
  for (const char c : word) {
    const std::optional<uint32_t>& token = of_byte_[static_cast<unsigned char>(c)];
    if (token)
      add(*token);
    else if (unk_ && !(fuse_unk_ && after_unknown))
      add(*unk_);
    after_unknown = !token;
  }
  if (!symbols_.empty()) symbols_.back().next = -1;
}

void Bpe::add_candidate(int32_t left) {
  const Symbol& symbol = symbols_[static_cast<size_t>(left)];
  if (symbol.next < 0) return;
  const PairTable::Found* const found = merges_.find(symbol.token, symbols_[static_cast<size_t>(symbol.next)].token);
  if (found == nullptr) return;
  heap_.push_back({found->rank, static_cast<uint32_t>(left), found->merged});
}

void Bpe::join(const Candidate& best) {
  Symbol& left = symbols_[best.position];
  if (left.gone || left.next < 0) return;
  Symbol& right = symbols_[static_cast<size_t>(left.next)];
  // Another merge may have consumed one of them meanwhile.
  const PairTable::Found* const now = merges_.find(left.token, right.token);
  if (now == nullptr || now->merged != best.merged) return;
  left.token = best.merged;
  right.gone = true;
  left.next = right.next;
  const auto position = static_cast<int32_t>(best.position);
  if (right.next >= 0) symbols_[static_cast<size_t>(right.next)].previous = position;
  for (const int32_t first : {left.previous, position}) {
    const size_t before = heap_.size();
    if (first >= 0) add_candidate(first);
    if (heap_.size() > before) std::push_heap(heap_.begin(), heap_.end());
  }
}

void Bpe::merge(std::string_view word, std::vector<uint32_t>& out) {
  read_symbols(word);
  heap_.clear();
  for (size_t i = 0; i < symbols_.size(); ++i) add_candidate(static_cast<int32_t>(i));
  std::make_heap(heap_.begin(), heap_.end());
  while (!heap_.empty()) {
    std::pop_heap(heap_.begin(), heap_.end());
    const Candidate best = heap_.back();
    heap_.pop_back();
    join(best);
  }
  for (const Symbol& symbol : symbols_)
    if (!symbol.gone) out.push_back(symbol.token);
}

}  // namespace ranklab
