#include "viz/html/stage_page.h"

#include "core/base/error.h"
#include "core/base/text.h"
#include "viz/html/page_data.h"
#include "viz/html/page_text.h"
#include "viz/model/svg/markup.h"

namespace ranklab::viz {
namespace {

std::string program() {
  std::string out;
  for (const PagePart& one : page_parts())
    if (one.name.ends_with(".js")) out += one.text;
  return out;
}

// Escapes JSON for a script element, in which only "<" could end the element or begin a comment. In JSON this character
// occurs only inside strings.
std::string inside_script(const std::string& json) {
  std::string out;
  out.reserve(json.size());
  for (const char c : json) {
    if (c == '<' || c == '>' || c == '&')
      out += strprintf("\\u%04x", static_cast<unsigned>(c));
    else
      out += c;
  }
  return out;
}

}  // namespace

std::string stage_page(const TraceStore& store, const StageScript& script, std::optional<int64_t> open_ns) {
  RANKLAB_CHECK(!script.empty(), ErrorKind::kInvalidArgument, .where = "viz --html",
                .what = "the trace has nothing to play", .got = quote(store.source()), .want = "events with a duration",
                .fix = "ranklab train --train-iters 3, then ranklab viz last --html step.html");
  const std::string title = script.title.empty() ? store.source() : script.title;
  return filled_page(page_part("page.html"),
                     {{"@TITLE@", as_markup("ranklab: " + title)},
                      {"@STYLE@", std::string(page_part("colors.css")) + std::string(page_part("style.css"))},
                      {"@DATA@", inside_script(page_data(store, script, open_ns.value_or(telling_moment(script))))},
                      {"@PROGRAM@", program()}});
}

}  // namespace ranklab::viz
