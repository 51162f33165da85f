// An integer read from JSON. nlohmann's get<int>() turns 8.5e19 into an arbitrary value and 2^40 into its low half;
// such values in a file from elsewhere are errors here. Thread rule: pure.
#pragma once
#include <concepts>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "core/base/error.h"

namespace ranklab {

// Throws kBadFile with `name` when the value is not an integer or does not fit T.
template <std::integral T>
T json_integer(const auto& value, const char* name) {
  if (value.is_number_unsigned()) {
    if (const auto number = value.template get<uint64_t>(); std::in_range<T>(number)) return static_cast<T>(number);
  } else if (value.is_number_integer()) {
    if (const auto number = value.template get<int64_t>(); std::in_range<T>(number)) return static_cast<T>(number);
  }
  throw Error(ErrorKind::kBadFile, {.where = "JSON",
                                    .what = std::string("\"") + name + "\" is not a whole number in range",
                                    .got = value.is_structured() ? std::string(value.type_name()) : value.dump(),
                                    .want = std::to_string(std::numeric_limits<T>::min()) + " to " +
                                            std::to_string(std::numeric_limits<T>::max()),
                                    .fix = "correct the file, or write it again"});
}

}  // namespace ranklab
