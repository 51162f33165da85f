#include "viz/html/page_text.h"

#include "core/base/error.h"

namespace ranklab::viz {

std::string_view page_part(std::string_view name) {
  for (const std::span<const PagePart> parts : {page_parts(), report_parts()})
    for (const PagePart& one : parts)
      if (one.name == name) return one.text;
  throw Error(ErrorKind::kInternal, {.where = "page", .what = "the page lacks a part", .got = std::string(name)});
}

std::string filled_page(std::string_view page, const std::vector<std::pair<std::string_view, std::string>>& marks) {
  std::string out;
  for (const auto& [mark, text] : marks) {
    const size_t at = page.find(mark);
    RANKLAB_CHECK(at != std::string_view::npos, ErrorKind::kInternal, .where = "page", .what = "the page lacks a mark",
                  .got = std::string(mark));
    out.append(page.substr(0, at)).append(text);
    page.remove_prefix(at + mark.size());
  }
  return out.append(page);
}

}  // namespace ranklab::viz
