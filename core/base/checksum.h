// XXH3, 64 bits (Yann Collet, xxhash.com): an accidental change goes unnoticed with probability 2^-64. It guards
// against flipped bits and swapped or truncated files, not against an attacker. Cost: one pass over the bytes, a small
// fraction of the time to write them. Thread rule: one thread per object.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace ranklab {

class Xxh3 {
 public:
  Xxh3();
  ~Xxh3();
  Xxh3(const Xxh3&) = delete;
  Xxh3& operator=(const Xxh3&) = delete;
  void add(std::string_view bytes);
  uint64_t value() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

uint64_t xxh3(std::span<const std::byte> bytes);
std::string xxh3_text(uint64_t hash);  // 16 hexadecimal digits
// Accepts only the format of xxh3_text().
bool parse_xxh3_text(std::string_view text, uint64_t& hash);

}  // namespace ranklab
