// Parses the metadata of dumped tensor files: which part of a global tensor a tensor is, and where a rank is in the
// mesh. The files are not trusted: any program may have written them. Torch-free. Thread rule: pure.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "core/base/vocabulary.h"

namespace ranklab {

// The same as GlobalSlice (global_slice.h), without torch.
struct DumpSlice {
  std::vector<int64_t> shape;
  std::vector<std::vector<int64_t>> positions;  // per dim; empty: all of it
  int64_t begin = 0, end = -1;

  int64_t cut_elements() const;  // number of elements at the positions, before the cut to [begin, end)
};

// The slice of a tensor with this local shape. `where` is the file and `name` the tensor, for errors. Throws kBadFile.
DumpSlice parse_dump_slice(const std::string& json, const std::vector<int64_t>& local, const std::string& where,
                           const std::string& name);

struct AxisPlace {
  Axis axis = Axis::kWorld;
  int place = 0, size = 1;
};
// Reads "dp 0 of 2, tp 1 of 4" or "one rank". Throws kBadFile.
std::vector<AxisPlace> parse_coordinates(const std::string& text);

}  // namespace ranklab
