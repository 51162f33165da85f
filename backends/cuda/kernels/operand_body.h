// The per-thread code of each step of device_rounding.h. The kernels (operand_kernels.cu) distribute groups, elements
// and rows over threads; a test runs the same code in loops on a CPU. C++17, as used for nvcc. Thread rule: pure except
// for what it writes.
#pragma once
#include <cstdint>
#include <type_traits>

#include "backends/cuda/kernels/numbers.h"
#include "core/precision/device_rounding.h"

namespace ranklab {

using rows::quotient;

RANKLAB_EVERYWHERE float number_at(const DeviceMatrix& m, int64_t row, int64_t col) {
  const int64_t i = row * m.stride + col;
  if (!m.bf16) return static_cast<const float*>(m.x)[i];
  return OneLane::number(static_cast<uint32_t>(static_cast<const uint16_t*>(m.x)[i]) << 16);
}

// The number of neighbours of a row that a thread handles at once if alignment allows: 16 bytes of bf16.
constexpr int kNeighbours = 8;

// Whether every pack of `kNeighbours` columns begins at a multiple of 16 bytes.
inline bool in_packs(const DeviceMatrix& m) {
  const int64_t bytes = m.bf16 ? 2 : 4;
  return m.cols % kNeighbours == 0 && m.stride * bytes % 16 == 0 && reinterpret_cast<uintptr_t>(m.x) % 16 == 0;
}

struct alignas(16) FourWords {
  uint32_t word[4];
};

// kNeighbours elements of a row as they are stored. A thread that handles several packs loads all of them before it
// converts the first one, so that the loads are in flight together.
template <bool kBf16>
struct StoredPack {
  FourWords words[kBf16 ? 1 : 2];
};

// REQUIRES: in_packs(), `col` a multiple of kNeighbours, kBf16 == m.bf16.
template <bool kBf16>
RANKLAB_EVERYWHERE StoredPack<kBf16> stored_pack(const DeviceMatrix& m, int64_t row, int64_t col) {
  using Element = std::conditional_t<kBf16, uint16_t, float>;
  return *reinterpret_cast<const StoredPack<kBf16>*>(static_cast<const Element*>(m.x) + row * m.stride + col);
}

RANKLAB_EVERYWHERE void numbers_of(const StoredPack<true>& pack, float* to) {
  for (int pair = 0; pair < 4; ++pair) {
    to[2 * pair] = OneLane::number(pack.words[0].word[pair] << 16);
    to[2 * pair + 1] = OneLane::number(pack.words[0].word[pair] & 0xffff0000U);
  }
}
RANKLAB_EVERYWHERE void numbers_of(const StoredPack<false>& pack, float* to) {
  for (int i = 0; i < kNeighbours; ++i) to[i] = OneLane::number(pack.words[i / 4].word[i % 4]);
}

// Loads kItems neighbours, starting at `col`. REQUIRES: kItems is 1; or it is kNeighbours, in_packs(), and `col` is a
// multiple of it.
template <int kItems>
RANKLAB_EVERYWHERE void load_numbers(const DeviceMatrix& m, int64_t row, int64_t col, float* to) {
  if (kItems == 1) {
    to[0] = number_at(m, row, col);
  } else if (m.bf16) {
    numbers_of(stored_pack<true>(m, row, col), to);
  } else {
    numbers_of(stored_pack<false>(m, row, col), to);
  }
}

RANKLAB_EVERYWHERE uint32_t size_bits(float x) { return OneLane::bits(x) & ~kFloatSign; }

// Bits of the largest magnitude in a group, among every `lanes`-th pack of kItems elements starting at `lane`; at most
// the bits of infinity. Compared as integers, magnitudes are ordered like the numbers, with NaN above infinity.
// REQUIRES: as load_numbers(); the groups' width is a multiple of kItems.
template <int kItems>
RANKLAB_EVERYWHERE uint32_t amax_of_share(const DeviceMatrix& m, int64_t group, int64_t lane, int64_t lanes) {
  const int64_t row = group / m.grid_cols() * m.height, col = group % m.grid_cols() * m.width;
  const int64_t height = row + m.height < m.rows ? m.height : m.rows - row;
  const int64_t width = (col + m.width < m.cols ? m.width : m.cols - col) / kItems;
  uint32_t most = 0;
  for (int64_t i = lane; i < height * width; i += lanes) {
    const int64_t down = rows::row_in_block(i, height, width);
    float x[kItems];
    load_numbers<kItems>(m, row + down, col + (i - down * width) * kItems, x);
    for (int item = 0; item < kItems; ++item) {
      const uint32_t size = size_bits(x[item]);
      most = size > most ? size : most;
    }
  }
  return most < kFloatExponent ? most : kFloatExponent;
}

// Bits of the largest magnitude in `rows` rows of a column, starting at `row`; at most the bits of infinity.
RANKLAB_EVERYWHERE uint32_t amax_of_column(const DeviceMatrix& m, int64_t row, int64_t rows, int64_t col) {
  uint32_t most = 0;
#ifdef __CUDA_ARCH__
#pragma unroll 8
#endif
  for (int64_t i = 0; i < rows; ++i) {
    const uint32_t size = size_bits(number_at(m, row + i, col));
    most = size > most ? size : most;
  }
  return most < kFloatExponent ? most : kFloatExponent;
}

// The same for the kNeighbours columns starting at `col`, written to `most`. REQUIRES: in_packs(), `col` a multiple of
// kNeighbours.
template <bool kBf16>
RANKLAB_EVERYWHERE void amax_of_columns_at_once(const DeviceMatrix& m, int64_t row, int64_t rows, int64_t col,
                                                uint32_t* most) {
  constexpr int kTogether = 4;
  for (int n = 0; n < kNeighbours; ++n) most[n] = 0;
  for (int64_t first = 0; first < rows; first += kTogether) {
    StoredPack<kBf16> stored[kTogether];
    // Past the end, the first of these rows is loaded again.
    for (int i = 0; i < kTogether; ++i)
      stored[i] = stored_pack<kBf16>(m, row + first + (first + i < rows ? i : 0), col);
    for (int i = 0; i < kTogether; ++i) {
      float x[kNeighbours];
      numbers_of(stored[i], x);
      for (int n = 0; n < kNeighbours; ++n) most[n] = size_bits(x[n]) > most[n] ? size_bits(x[n]) : most[n];
    }
  }
  for (int n = 0; n < kNeighbours; ++n) most[n] = most[n] < kFloatExponent ? most[n] : kFloatExponent;
}

RANKLAB_EVERYWHERE ScaleMaker maker_of_tensor(ScaleMaker maker, const float* tensor_amax) {
  if (maker.rule == ScaleMaker::Rule::kE4M3) maker.whole = whole_scale(maker, *tensor_amax);
  return maker;
}

RANKLAB_EVERYWHERE int64_t group_of(const DeviceMatrix& m, int64_t row, int64_t col) {
  return quotient(row, m.height) * quotient(m.cols + m.width - 1, m.width) + quotient(col, m.width);
}

RANKLAB_EVERYWHERE void round_element(const DeviceMatrix& m, const RoundingGrid& grid, const float* scales,
                                      const DeviceNoise& noise, const DeviceRounded& out, int64_t row, int64_t col) {
  const float scale = scales[group_of(m, row, col)];
  const float scaled = number_at(m, row, col) * inverse_scale(scale);
  float rounded = 0;
  if (noise.row_numbers == nullptr) {
    rounded = round_nearest<OneLane>(grid, scaled);
  } else {
    const uint64_t element =
        noise.row_numbers[row] * static_cast<uint64_t>(noise.columns) + static_cast<uint64_t>(noise.first_column + col);
    const PhiloxKey key = noise.step_key == nullptr ? noise.key : key_at_step(noise.key, noise.name, *noise.step_key);
    rounded = round_stochastic<OneLane>(grid, scaled, philox_bits(key, element));
  }
  if (out.values != nullptr) out.values[row * out.stride + col] = rounded * scale;
  if (out.codes == nullptr && out.turned == nullptr) return;
  const auto code = static_cast<uint8_t>(code_of_rounded<OneLane>(grid, rounded));
  if (out.codes != nullptr) out.codes[row * out.stride + col] = code;
  if (out.turned != nullptr) out.turned[col * out.turned_stride + row] = code;
}

// FNV-1a of the row's fp32 bytes, lowest first.
RANKLAB_EVERYWHERE uint64_t hash_of_row(const DeviceMatrix& m, int64_t row) {
  uint64_t hash = 0xcbf29ce484222325ULL;
  for (int64_t col = 0; col < m.cols; ++col) {
    const uint32_t bits = OneLane::bits(number_at(m, row, col));
    for (int byte = 0; byte < 4; ++byte) hash = (hash ^ (bits >> (8 * byte) & 0xff)) * 0x100000001b3ULL;
  }
  return hash;
}

}  // namespace ranklab
