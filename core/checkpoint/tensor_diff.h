// Compares the tensors of safetensors files: tensors that only one side has, differing types and shapes, and, where
// these agree, the elements whose bits differ. Cost: reads every byte of both once (and verifies its checksum); two
// buffers of a chunk. Thread rule: pure.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "core/base/text.h"
#include "core/checkpoint/safetensors.h"
#include "core/checkpoint/slices.h"

namespace ranklab {

struct TensorDifference {
  enum class Kind { kOnlyInA, kOnlyInB, kType, kShape, kValues };
  std::string name = {};
  Kind kind = Kind::kValues;
  std::string a = {}, b = {};  // type and shape; "" if there is no such tensor
  // kValues:
  uint64_t elements = 0;
  uint64_t differing = 0;           // in any bit
  std::vector<int64_t> first = {};  // index of the first differing element
  bool has_values = false;          // whether the values below are set: float types only
  // Largest |a - b| and |a - b| / max(|a|, |b|). Two NaNs, or 0 and -0, have distance 0; NaN or infinity and anything
  // else have distance infinity.
  double max_absolute = 0, max_relative = 0;
};

struct TensorDifferences {
  std::vector<TensorDifference> tensors = {};  // by name
  uint64_t same_tensors = 0;
};

// Where a tensor lies: a model may be in several files.
struct TensorPlace {
  const SafetensorsFile* file = nullptr;
  const TensorEntry* entry = nullptr;
};
using TensorPlaces = std::map<std::string, TensorPlace>;  // by name
// REQUIRES: `file` outlives them.
TensorPlaces tensor_places(const SafetensorsFile& file);

// Compares type and shape of two tensors of the same name; null: that side has none. If both agree, the kind is
// kValues, and the elements have yet to be compared.
template <typename Tensor>
TensorDifference difference_of_form(const std::string& tensor_name, const Tensor* a, const Tensor* b) {
  using Kind = TensorDifference::Kind;
  const auto text = [](const Tensor* tensor) {
    return tensor == nullptr ? "" : std::string(name(tensor->type)) + " " + shape_text(tensor->shape);
  };
  TensorDifference difference{.name = tensor_name, .a = text(a), .b = text(b)};
  if (a == nullptr || b == nullptr) {
    difference.kind = b == nullptr ? Kind::kOnlyInA : Kind::kOnlyInB;
  } else if (a->type != b->type || a->shape != b->shape) {
    difference.kind = a->type != b->type ? Kind::kType : Kind::kShape;
  } else {
    difference.elements = static_cast<uint64_t>(shape_elements(a->shape));
    difference.has_values = is_float(a->type);
  }
  return difference;
}

// Adds to `difference` how two runs of elements differ, for a tensor of this type and shape; `first` is the index of
// the runs' first element.
void compare_elements(TensorType type, const std::vector<int64_t>& shape, uint64_t first, std::span<const std::byte> a,
                      std::span<const std::byte> b, TensorDifference& difference);

TensorDifferences diff_tensors(const TensorPlaces& a, const TensorPlaces& b);

// Of two files' metadata: keys that one side lacks, or that have another value there.
std::set<std::string> keys_that_differ(const std::map<std::string, std::string>& a,
                                       const std::map<std::string, std::string>& b);

}  // namespace ranklab
