// Lists of rows that have a `name`: all names, the row of a name, and what to say about a name that no row has.
// Thread rule: pure.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/error.h"

namespace ranklab {

// "did you mean 'adamw'?", or `otherwise` if none of the names is near (nearest_name() of text.h).
std::string did_you_mean(std::string_view text, std::span<const std::string> names, const std::string& otherwise);

// The kInvalidArgument for `name`, which is none of `names`. Adds to the text what was got, what is wanted unless the
// text says it, and the nearest name in place of the fix, if one is near.
Error unknown_name(std::string_view name, std::span<const std::string> names, ErrorText text);

template <typename Rows>
std::vector<std::string> row_names(const Rows& rows) {
  std::vector<std::string> names;
  for (const auto& row : rows) names.emplace_back(row.name);
  return names;
}

// Throws unknown_name() with this text.
template <typename Rows>
const auto& named_row(const Rows& rows, std::string_view name, ErrorText text) {
  for (const auto& row : rows)
    if (row.name == name) return row;
  throw unknown_name(name, row_names(rows), std::move(text));
}

}  // namespace ranklab
