// The merges, keyed by pair, in a flat table with linear probing; a new word takes a few look-ups per byte. Cost: 16 to
// 48 bytes of memory per merge. Thread rule: const calls from any thread.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "core/data/tokenizer/tokenizer_spec.h"

namespace ranklab {

class PairTable {
 public:
  struct Found {
    uint32_t rank, merged;
  };
  // The last one of equal pairs counts.
  explicit PairTable(std::span<const MergeRule> merges) {
    size_t size = 16;
    while (size < 2 * merges.size()) size *= 2;
    slots_.resize(size);
    for (size_t i = 0; i < merges.size(); ++i) {
      Slot& slot = slots_[place_of(merges[i].left, merges[i].right)];
      slot = {merges[i].left, merges[i].right, {static_cast<uint32_t>(i), merges[i].merged}};
    }
  }
  // Null when the pair has no merge.
  const Found* find(uint32_t left, uint32_t right) const {
    const Slot& slot = slots_[place_of(left, right)];
    return slot.left == kNone ? nullptr : &slot.found;
  }

 private:
  static constexpr uint32_t kNone = ~uint32_t{0};
  struct Slot {
    uint32_t left = kNone, right = 0;
    Found found = {};
  };
  size_t place_of(uint32_t left, uint32_t right) const {
    const uint64_t mixed = (uint64_t{left} << 32 | right) * 0x9E3779B97F4A7C15u;
    size_t place = (mixed ^ mixed >> 32) & (slots_.size() - 1);
    while (slots_[place].left != kNone && (slots_[place].left != left || slots_[place].right != right))
      place = (place + 1) & (slots_.size() - 1);
    return place;
  }
  std::vector<Slot> slots_;
};

}  // namespace ranklab
