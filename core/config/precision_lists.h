// Lists on the command line: comma-separated names, or names with a dtype each ("head=fp32, *.router=fp32").
// Torch-free. Thread rule: pure functions.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "core/base/dtype.h"

namespace ranklab {

// "" is an empty list. Throws kInvalidArgument for an empty name between commas; `flag` is named in the error.
std::vector<std::string> parse_list(const char* flag, const std::string& text);
// Throws kInvalidArgument for an entry without a dtype, or with one that no GEMM is computed in.
std::vector<std::pair<std::string, DType>> parse_typed_list(const char* flag, const std::string& text);

}  // namespace ranklab
