// The input numbers of `ranklab precision quantize`: drawn from a distribution, or read from a file.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace ranklab {

struct NumberSource {
  std::string text = {};    // "normal(0,1e-3)", or a path: .safetensors, .txt with numbers, else raw fp32
  std::string tensor = {};  // a name in a .safetensors file; empty: all tensors
  int64_t samples = 1 << 20;
  uint64_t seed = 1234;
  int64_t cols = 1024;  // for numbers that come without a shape
};

struct NumberMatrix {
  std::string name = {};
  int64_t rows = 0, cols = 0;
  int64_t count = 0;  // number of values; zeros after them fill the last row
  std::vector<float> data = {};
};

// Throws kInvalidArgument, kIo, kBadFile.
std::vector<NumberMatrix> read_numbers(const NumberSource& source);

}  // namespace ranklab
