#include "core/checkpoint/tensor_diff.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace ranklab {
namespace {

std::vector<int64_t> index_of(uint64_t element, const std::vector<int64_t>& shape) {
  std::vector<int64_t> index(shape.size());
  for (size_t dim = shape.size(); dim-- > 0;) {
    const auto size = static_cast<uint64_t>(shape[dim]);
    index[dim] = static_cast<int64_t>(element % size);
    element /= size;
  }
  return index;
}

void add_distance(double a, double b, TensorDifference& difference) {
  double absolute = std::abs(a - b), relative = absolute / std::max(std::abs(a), std::abs(b));
  if (a == b || (std::isnan(a) && std::isnan(b))) {
    absolute = relative = 0;
  } else if (!std::isfinite(a) || !std::isfinite(b)) {
    absolute = relative = std::numeric_limits<double>::infinity();
  }
  difference.max_absolute = std::max(difference.max_absolute, absolute);
  difference.max_relative = std::max(difference.max_relative, relative);
}

// Pieces end between elements and, if both files have the same chunks, between chunks.
uint64_t piece_bytes(const SafetensorsFile& a, const SafetensorsFile& b, uint64_t element_bytes) {
  uint64_t bytes = uint64_t{1} << 20;
  for (const SafetensorsFile* file : {&a, &b}) {
    if (file->checksums()) bytes = std::max(bytes, file->checksums()->chunk_bytes);
  }
  return std::max(element_bytes, bytes / element_bytes * element_bytes);
}

void compare_values(const SafetensorsFile& a, const TensorEntry& in_a, const SafetensorsFile& b,
                    const TensorEntry& in_b, TensorDifference& difference) {
  const uint64_t width = size_bytes(in_a.type), bytes = in_a.size_bytes();
  const uint64_t piece = std::min(piece_bytes(a, b, width), bytes);
  std::vector<std::byte> from_a(piece), from_b(piece);
  for (uint64_t begin = 0; begin < bytes; begin += piece) {
    const uint64_t size = std::min(piece, bytes - begin);
    a.read(in_a, begin, std::span(from_a).first(size));
    b.read(in_b, begin, std::span(from_b).first(size));
    compare_elements(in_a.type, in_a.shape, begin / width, std::span(from_a).first(size), std::span(from_b).first(size),
                     difference);
  }
}

}  // namespace

void compare_elements(TensorType type, const std::vector<int64_t>& shape, uint64_t first, std::span<const std::byte> a,
                      std::span<const std::byte> b, TensorDifference& difference) {
  if (std::ranges::equal(a, b)) return;
  const uint64_t width = size_bytes(type);
  for (uint64_t at = 0; at < a.size(); at += width) {
    if (std::memcmp(&a[at], &b[at], width) == 0) continue;
    if (difference.differing++ == 0) difference.first = index_of(first + at / width, shape);
    if (difference.has_values) add_distance(element_value(type, &a[at]), element_value(type, &b[at]), difference);
  }
}

TensorPlaces tensor_places(const SafetensorsFile& file) {
  TensorPlaces places;
  for (const TensorEntry& entry : file.tensors()) places[entry.name] = {&file, &entry};
  return places;
}

TensorDifferences diff_tensors(const TensorPlaces& a, const TensorPlaces& b) {
  TensorDifferences result;
  std::set<std::string> names;
  for (const TensorPlaces* side : {&a, &b})
    for (const auto& [name, place] : *side) names.insert(name);
  const auto find = [](const TensorPlaces& side, const std::string& name) {
    const auto found = side.find(name);
    return found == side.end() ? TensorPlace{} : found->second;
  };
  for (const std::string& name : names) {
    const TensorPlace in_a = find(a, name), in_b = find(b, name);
    TensorDifference difference = difference_of_form(name, in_a.entry, in_b.entry);
    if (difference.kind == TensorDifference::Kind::kValues) {
      compare_values(*in_a.file, *in_a.entry, *in_b.file, *in_b.entry, difference);
      if (difference.differing == 0) {
        ++result.same_tensors;
        continue;
      }
    }
    result.tensors.push_back(std::move(difference));
  }
  return result;
}

std::set<std::string> keys_that_differ(const std::map<std::string, std::string>& a,
                                       const std::map<std::string, std::string>& b) {
  std::set<std::string> keys;
  for (const auto* side : {&a, &b}) {
    const auto& other = side == &a ? b : a;
    for (const auto& [key, value] : *side) {
      const auto found = other.find(key);
      if (found == other.end() || found->second != value) keys.insert(key);
    }
  }
  return keys;
}

}  // namespace ranklab
