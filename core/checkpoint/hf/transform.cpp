#include "core/checkpoint/hf/transform.h"

#include <cstring>
#include <numeric>

namespace ranklab {
namespace {

// Elements of a row.
uint64_t columns_of(const std::vector<int64_t>& shape) {
  return std::accumulate(shape.begin() + 1, shape.end(), uint64_t{1},
                         [](uint64_t product, int64_t size) { return product * static_cast<uint64_t>(size); });
}

// Calls move(their offset, our offset, bytes) for every contiguous run of bytes.
template <typename Move>
void for_each_run(const HfPart& part, const std::vector<int64_t>& shape, uint64_t element_bytes, const Move& move) {
  const uint64_t columns = columns_of(shape);
  const uint64_t row_bytes = columns * element_bytes, rows = static_cast<uint64_t>(part.rows);
  for (uint64_t row = 0; row < rows; ++row) {
    const uint64_t ours = static_cast<uint64_t>(part.first_row + our_row(part, static_cast<int64_t>(row))) * row_bytes;
    if (!is_transposed(part.layout)) {
      move(row * row_bytes, ours, row_bytes);
      continue;
    }
    for (uint64_t column = 0; column < columns; ++column)
      move((column * rows + row) * element_bytes, ours + column * element_bytes, element_bytes);
  }
}

}  // namespace

std::vector<std::byte> to_theirs(const HfPart& part, std::span<const std::byte> ours, const std::vector<int64_t>& shape,
                                 uint64_t element_bytes) {
  const uint64_t columns = columns_of(shape);
  std::vector<std::byte> theirs(static_cast<uint64_t>(part.rows) * columns * element_bytes);
  for_each_run(part, shape, element_bytes, [&](uint64_t their_offset, uint64_t our_offset, uint64_t bytes) {
    std::memcpy(theirs.data() + their_offset, ours.data() + our_offset, bytes);
  });
  return theirs;
}

void to_ours(const HfPart& part, std::span<const std::byte> theirs, std::span<std::byte> ours,
             const std::vector<int64_t>& shape, uint64_t element_bytes) {
  for_each_run(part, shape, element_bytes, [&](uint64_t their_offset, uint64_t our_offset, uint64_t bytes) {
    std::memcpy(ours.data() + our_offset, theirs.data() + their_offset, bytes);
  });
}

}  // namespace ranklab
