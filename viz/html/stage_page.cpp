#include "viz/html/stage_page.h"

#include "core/base/error.h"
#include "core/base/text.h"
#include "viz/html/page_data.h"
#include "viz/html/page_text.h"

namespace ranklab::viz {
namespace {

std::string_view part(std::string_view name) {
  for (const PagePart& one : page_parts())
    if (one.name == name) return one.text;
  throw Error(ErrorKind::kInternal, {.where = "viz --html", .what = "the page lacks a part", .got = std::string(name)});
}

std::string program() {
  std::string out;
  for (const PagePart& one : page_parts())
    if (one.name.ends_with(".js")) out += one.text;
  return out;
}

// As text between tags.
std::string as_markup(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else
      out += c;
  }
  return out;
}

// JSON inside a script element: there only "<" could end it or begin a comment. Such characters occur in strings alone.
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

// The template in one pass, so that a mark inside the trace's own text is no mark.
std::string filled(std::string_view page, const std::vector<std::pair<std::string_view, std::string>>& marks) {
  std::string out;
  for (const auto& [mark, text] : marks) {
    const size_t at = page.find(mark);
    RANKLAB_CHECK(at != std::string_view::npos, ErrorKind::kInternal, .where = "viz --html",
                  .what = "page.html lacks a mark", .got = std::string(mark));
    out.append(page.substr(0, at)).append(text);
    page.remove_prefix(at + mark.size());
  }
  return out.append(page);
}

}  // namespace

std::string stage_page(const TraceStore& store, const StageScript& script, std::optional<int64_t> open_ns) {
  RANKLAB_CHECK(!script.empty(), ErrorKind::kInvalidArgument, .where = "viz --html",
                .what = "the trace has nothing to play", .got = quote(store.source()), .want = "events of some length",
                .fix = "ranklab train --train-iters 3, then ranklab viz last --html step.html");
  const std::string title = script.title.empty() ? store.source() : script.title;
  return filled(part("page.html"),
                {{"@TITLE@", as_markup("ranklab: " + without_controls(title))},
                 {"@STYLE@", std::string(part("style.css"))},
                 {"@DATA@", inside_script(page_data(store, script, open_ns.value_or(telling_moment(script))))},
                 {"@PROGRAM@", program()}});
}

}  // namespace ranklab::viz
