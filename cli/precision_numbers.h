// The numbers that `ranklab precision quantize` rounds: drawn from a distribution, or of a file.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace ranklab {

struct NumberSource {
  std::string text = {};    // "normal(0,1e-3)", or a path: .safetensors, .txt with numbers, else raw fp32
  std::string tensor = {};  // of a .safetensors file; empty: all
  int64_t samples = 1 << 20;
  uint64_t seed = 1234;
  int64_t cols = 1024;  // of numbers that come without a shape
};

struct NumberMatrix {
  std::string name = {};
  int64_t rows = 0, cols = 0;
  int64_t count = 0;  // of numbers; behind them zeros fill the last row
  std::vector<float> data = {};
};

// Throws kInvalidArgument, kIo, kBadFile.
std::vector<NumberMatrix> read_numbers(const NumberSource& source);

}  // namespace ranklab
