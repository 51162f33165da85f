// The files that the HTML pages are made of, as they lie in viz/html: a page with its marks, its style, and its program
// in the order in which a browser reads it. Thread rule: pure.
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
std::span<const PagePart> page_parts();    // of stage_page.h
std::span<const PagePart> report_parts();  // of report/report_page.h and parity/parity_page.h
// The text of a name in either list. Throws kInternal for another name.
std::string_view page_part(std::string_view name);

// The page with a text in the place of each mark, in one pass, so that a mark inside a trace's own text is no mark.
// `marks` in the order of the page; throws kInternal where one is missing.
std::string filled_page(std::string_view page, const std::vector<std::pair<std::string_view, std::string>>& marks);

}  // namespace ranklab::viz
