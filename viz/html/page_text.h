// The source files in viz/html from which HTML pages are made: a page with marks, its style, and its program in the
// order in which a browser reads it. Thread rule: pure.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ranklab::viz {

struct PagePart {
  std::string_view name;  // "page.html"
  std::string_view text;
};
std::span<const PagePart> page_parts();    // used by stage_page.h
std::span<const PagePart> report_parts();  // used by report/report_page.h and parity/parity_page.h
// The text of a file in either list. Throws kInternal for another name.
std::string_view page_part(std::string_view name);

// Replaces each mark of the page by a text, in one pass, so that a mark inside a trace's own text is not replaced.
// `marks`: in the order of the page. Throws kInternal if one is missing.
std::string filled_page(std::string_view page, const std::vector<std::pair<std::string_view, std::string>>& marks);

}  // namespace ranklab::viz
