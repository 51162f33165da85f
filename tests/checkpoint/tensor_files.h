// Small safetensors files for tests: known tensors, reading and writing a file's bytes, messages of rejected files.
#pragma once
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/checkpoint/safetensors.h"
#include "tests/cli/run_program.h"

namespace ranklab::checkpoint_samples {

// Tensors with the bytes they point to.
class Tensors {
 public:
  template <typename T>
  Tensors& add(const std::string& name, TensorType type, std::vector<int64_t> shape, const std::vector<T>& values) {
    const auto bytes = std::make_shared<std::vector<std::byte>>(values.size() * sizeof(T));
    if (!values.empty()) std::memcpy(bytes->data(), values.data(), bytes->size());
    list_.push_back({.name = name, .type = type, .shape = std::move(shape), .bytes = *bytes});
    bytes_.push_back(bytes);
    return *this;
  }
  operator std::span<const TensorToWrite>() const { return list_; }  // NOLINT: reads as the tensors
  const std::vector<TensorToWrite>& list() const { return list_; }

 private:
  std::vector<std::shared_ptr<const std::vector<std::byte>>> bytes_;  // a copy of this object shares them
  std::vector<TensorToWrite> list_;
};

inline std::string bytes_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline void put_bytes(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

// A file of this header, with so many zero bytes of data.
inline std::string file_bytes(const std::string& json, size_t data_bytes) {
  std::string bytes(8, '\0');
  for (size_t i = 0; i < 8; ++i) bytes[i] = static_cast<char>(json.size() >> (8 * i));
  return bytes + json + std::string(data_bytes, '\0');
}

// What opening and verifying says; "" when the file is sound. An error of another kind fails the test.
inline std::string refusal(const std::string& path, ErrorKind kind = ErrorKind::kBadFile) {
  try {
    SafetensorsFile(path).verify();
    return {};
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    return error.what();
  }
}

}  // namespace ranklab::checkpoint_samples
