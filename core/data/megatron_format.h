// The format of Megatron-LM's indexed datasets, shared by reader and writer
// (megatron/core/datasets/indexed_dataset.py):
//   PREFIX.bin   the tokens
//   PREFIX.idx   "MMIDIDX\0\0", version (uint64), type of a token (uint8), number of sequences and of document ends
//                (uint64 each); for each sequence its number of tokens (int32), then for each its first byte (int64);
//                then the index of the sequence with which each document begins, and the end of the last (int64)
// Little-endian. Thread rule: pure.
#pragma once
#include <array>
#include <cstdint>
#include <cstring>
#include <string>

namespace ranklab::megatron {

inline constexpr std::array<char, 9> kMagic = {'M', 'M', 'I', 'D', 'I', 'D', 'X', '\0', '\0'};
inline constexpr size_t kHeadBytes = 9 + 8 + 1 + 8 + 8;

struct Head {
  uint64_t version = 1;
  uint8_t dtype = 0;
  uint64_t sequences = 0;
  uint64_t documents = 0;  // number of document ends, plus one
};

inline constexpr uint64_t index_bytes(uint64_t sequences, uint64_t documents) {
  return kHeadBytes + sequences * (sizeof(int32_t) + sizeof(int64_t)) + documents * sizeof(int64_t);
}

inline constexpr uint8_t kUint8 = 1, kInt32 = 4, kInt64 = 5, kUint16 = 8;  // DType of indexed_dataset.py
struct TokenType {
  uint8_t code;
  const char* name;
  size_t bytes;
};
inline constexpr std::array kTypes = {TokenType{kUint8, "uint8", 1}, TokenType{kInt32, "int32", 4},
                                      TokenType{kInt64, "int64", 8}, TokenType{kUint16, "uint16", 2}};
inline constexpr const TokenType* find_type(uint8_t code) {
  for (const TokenType& type : kTypes)
    if (type.code == code) return &type;
  return nullptr;
}
// The type for a vocabulary, as DType.optimal_dtype() chooses it.
inline constexpr uint8_t type_of(int64_t vocab_size) { return vocab_size < 65500 ? kUint16 : kInt32; }

// REQUIRES: the type is one of kTypes.
inline int64_t token_at(const char* bytes, uint8_t dtype) {
  const auto read = [bytes](auto token) {
    std::memcpy(&token, bytes, sizeof token);
    return static_cast<int64_t>(token);
  };
  switch (dtype) {
    case kUint8:
      return read(uint8_t{});
    case kInt32:
      return read(int32_t{});
    case kInt64:
      return read(int64_t{});
    default:
      return read(uint16_t{});
  }
}

// A user may name either file, or their common prefix.
inline std::string prefix_of(const std::string& path) {
  return path.ends_with(".bin") || path.ends_with(".idx") ? path.substr(0, path.size() - 4) : path;
}

}  // namespace ranklab::megatron
