// Squares of 128 x 128 elements of a matrix, each of which a block of threads processes and transposes in shared
// memory. A thread handles fields of four rows and eight columns; the four codes of a column are one word. A column of
// the transposed square occupies 33 words, and a warp covers four fields across and eight down, so that the words that
// it writes or reads are in different banks. Only for kernels (nvcc). Thread rule: all threads of a block call
// store_square() together, after __syncthreads().
#pragma once
#include "backends/cuda/kernels/cast_body.h"
#include "backends/cuda/kernels/thread_teams.h"

namespace ranklab {

constexpr int kSide = 128, kWord = sizeof(uint32_t), kColumnWords = kSide / kWord + 1;
constexpr int kAcross = 4, kDown = kWarp / kAcross, kWide = sizeof(FourWords);
constexpr int kWarpsAcross = kSide / (kAcross * kNeighbours);
constexpr int kFieldsOfSquare = kSide / kWord * (kSide / kNeighbours);

static_assert(kSide * kColumnWords * kWord <= 48 * 1024, "shared memory of a block");

// The first row and column of a field within the square.
struct Field {
  int row, col;
};
__device__ inline Field field_of(int i) {
  const int lane = i % kWarp, warp = i / kWarp;
  return {(warp / kWarpsAcross * kDown + lane / kAcross) * kWord,
          (warp % kWarpsAcross * kAcross + lane % kAcross) * kNeighbours};
}

// Transposes four rows of four codes, one word per row, into four columns.
__device__ inline void turn(const uint32_t (&rows)[kWord], uint32_t (&columns)[kWord]) {
  const uint32_t low = __byte_perm(rows[0], rows[1], 0x5140), high = __byte_perm(rows[0], rows[1], 0x7362);
  const uint32_t low2 = __byte_perm(rows[2], rows[3], 0x5140), high2 = __byte_perm(rows[2], rows[3], 0x7362);
  columns[0] = __byte_perm(low, low2, 0x5410), columns[1] = __byte_perm(low, low2, 0x7632);
  columns[2] = __byte_perm(high, high2, 0x5410), columns[3] = __byte_perm(high, high2, 0x7632);
}

// Writes the codes of a field into the transposed square.
__device__ inline void turn_field(const EightCodes (&codes)[kWord], Field field, uint32_t* turned) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const uint32_t rows[kWord] = {codes[0].four[half], codes[1].four[half], codes[2].four[half], codes[3].four[half]};
    uint32_t columns[kWord];
    turn(rows, columns);
#pragma unroll
    for (int n = 0; n < kWord; ++n)
      turned[(field.col + half * kWord + n) * kColumnWords + field.row / kWord] = columns[n];
  }
}

// Writes the transposed square to out.turned.
__device__ inline void store_square(const DeviceMatrix& m, const DeviceRounded& out, int64_t first_row,
                                    int64_t first_col, const uint32_t* turned) {
  constexpr int kStores = kSide / kWide;
  const bool wide = out.turned_stride % kWide == 0 && reinterpret_cast<uintptr_t>(out.turned) % kWide == 0;
#pragma unroll 4
  for (int i = static_cast<int>(threadIdx.x); i < kSide * kStores; i += kThreads) {
    const int col = i / kStores, row = i % kStores * kWide;
    const int64_t left = m.rows - first_row - row;
    if (first_col + col >= m.cols || left <= 0) continue;
    const uint32_t* from = turned + col * kColumnWords + row / kWord;
    uint8_t* to = out.turned + (first_col + col) * out.turned_stride + first_row + row;
    if (wide && left >= kWide) {
      FourWords codes;
      for (int word = 0; word < 4; ++word) codes.word[word] = from[word];
      *reinterpret_cast<FourWords*>(to) = codes;
    } else {
      const auto* bytes = reinterpret_cast<const uint8_t*>(from);
      for (int n = 0; n < kWide && n < left; ++n) to[n] = bytes[n];
    }
  }
}

}  // namespace ranklab
