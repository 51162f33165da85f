// XXH3 of 64 bits (Yann Collet, xxhash.com): an accident goes unseen once in 2^64 times. It guards against flipped
// bits, swapped and cut files, not against someone who means it. Cost: one pass over the bytes, a small part of what
// writing them takes. Thread rule: one thread an object.
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
// Reads xxh3_text() and nothing else.
bool parse_xxh3_text(std::string_view text, uint64_t& hash);

}  // namespace ranklab
