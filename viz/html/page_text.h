// The files that the HTML page is made of, as they lie in viz/html: page.html with its marks, style.css, and the
// program in the order in which a browser reads it. Thread rule: constants.
#pragma once
#include <span>
#include <string_view>

namespace ranklab::viz {

struct PagePart {
  std::string_view name;  // "page.html"
  std::string_view text;
};
std::span<const PagePart> page_parts();

}  // namespace ranklab::viz
