#include "core/checkpoint/hf/transform.h"

#include <cstring>

namespace ranklab {
namespace {

// Calls move(their offset, our offset, bytes) for every contiguous run of bytes.
template <typename Move>
void for_each_run(const HfPart& part, const std::vector<int64_t>& shape, uint64_t element_bytes, const Move& move) {
  const auto columns = static_cast<uint64_t>(shape.size() == 2 ? shape[1] : 1);
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
  const auto columns = static_cast<uint64_t>(shape.size() == 2 ? shape[1] : 1);
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
