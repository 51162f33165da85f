#include "core/config/precision_lists.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/base/named_rows.h"
#include "core/base/text.h"

namespace ranklab {
namespace {

std::string trimmed(const std::string& text) {
  const size_t begin = text.find_first_not_of(" \t\n");
  return begin == std::string::npos ? "" : text.substr(begin, text.find_last_not_of(" \t\n") - begin + 1);
}

[[noreturn]] void refuse(const char* flag, const std::string& what, const std::string& got, const std::string& want,
                         const std::string& fix) {
  throw Error(ErrorKind::kInvalidArgument,
              {.where = "config", .what = std::string(flag) + " " + what, .got = got, .want = want, .fix = fix});
}

}  // namespace

std::vector<std::string> parse_list(const char* flag, const std::string& text) {
  std::vector<std::string> parts;
  if (trimmed(text).empty()) return parts;
  for (const std::string& part : split(text, ',')) {
    parts.push_back(trimmed(part));
    if (parts.back().empty())
      refuse(flag, "has an empty entry", quote(text), "names with commas between them", "take the extra comma out");
  }
  return parts;
}

std::vector<std::pair<std::string, DType>> parse_typed_list(const char* flag, const std::string& text) {
  const std::vector<std::string> types = {"fp32", "bf16", "fp16"};
  std::vector<std::pair<std::string, DType>> entries;
  for (const std::string& part : parse_list(flag, text)) {
    const size_t equals = part.find('=');
    const std::string name = trimmed(part.substr(0, equals));
    if (equals == std::string::npos || name.empty())
      refuse(flag, "has an entry without a name and a type", quote(part), "NAME=DTYPE", "as in 'head=fp32'");
    const std::string type = trimmed(part.substr(equals + 1));
    if (std::find(types.begin(), types.end(), type) == types.end())
      refuse(flag, "cannot take this type", quote(part), "one of " + join(types, ", "),
             did_you_mean(type, types, "use one of them"));
    entries.emplace_back(name, parse_dtype(type));
  }
  return entries;
}

}  // namespace ranklab
