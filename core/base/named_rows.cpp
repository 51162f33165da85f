#include "core/base/named_rows.h"

#include "core/base/text.h"

namespace ranklab {

std::string did_you_mean(std::string_view text, std::span<const std::string> names, const std::string& otherwise) {
  const std::string nearest = nearest_name(text, names);
  return nearest.empty() ? otherwise : "did you mean " + quote(nearest) + "?";
}

Error unknown_name(std::string_view name, std::span<const std::string> names, ErrorText text) {
  text.got = quote(name);
  if (text.want.empty()) text.want = "one of " + join(names, ", ");
  text.fix = did_you_mean(name, names, text.fix);
  return {ErrorKind::kInvalidArgument, std::move(text)};
}

}  // namespace ranklab
