// The release date of the software of a published run, as far as its row mentions it. Thread rule: pure.
#pragma once
#include <algorithm>
#include <string>

namespace ranklab {

// The release in texts such as "nvcr.io/nvidia/nemo:25.04" or "NeMo 25.04"; "" if there is none.
inline std::string release_in(const std::string& container) {
  const auto digit = [&](size_t at) { return container[at] >= '0' && container[at] <= '9'; };
  for (size_t at = 0; at + 5 <= container.size(); ++at)
    if (digit(at) && digit(at + 1) && container[at + 2] == '.' && digit(at + 3) && digit(at + 4))
      return container.substr(at, 5);
  return "";
}

// The first year of this century in the text; 0 if there is none. Numbers of arXiv papers contain a point, so they are
// not years.
inline int year_in(const std::string& source) {
  constexpr const char* kDigits = "0123456789.";
  for (size_t at = 0; (at = source.find_first_of(kDigits, at)) != std::string::npos;) {
    const size_t end = std::min(source.find_first_not_of(kDigits, at), source.size());
    const std::string number = source.substr(at, end - at);
    if (number.size() == 4 && number.starts_with("20") && number[2] != '.' && number[3] != '.')
      return std::stoi(number);
    at = end;
  }
  return 0;
}

}  // namespace ranklab
