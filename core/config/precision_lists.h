// Lists of the command line: names with commas between them, and such with a type each ("head=fp32, *.router=fp32").
// Torch-free. Thread rule: pure functions.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "core/base/dtype.h"

namespace ranklab {

// "" is no name. Throws kInvalidArgument for an empty name between commas; `flag` says where.
std::vector<std::string> parse_list(const char* flag, const std::string& text);
// Throws kInvalidArgument for an entry without a type, or with one that no product is computed in.
std::vector<std::pair<std::string, DType>> parse_typed_list(const char* flag, const std::string& text);

}  // namespace ranklab
