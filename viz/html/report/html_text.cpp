#include "viz/html/report/html_text.h"

#include <algorithm>

#include "viz/model/svg/markup.h"

namespace ranklab::viz {

std::string table_markup(const HtmlTable& table) {
  const size_t columns = table.head.size();
  const auto row = [&](const std::vector<std::string>& cells, const char* tag) {
    std::string out = "<tr>";
    for (size_t i = 0; i < cells.size(); ++i) {
      const bool words = i < table.words || i + table.last_words >= columns;
      out += std::string("<") + tag + (words ? " class=\"words\">" : ">") + as_markup(cells[i]) + "</" + tag + ">";
    }
    return out + "</tr>\n";
  };
  const bool named = std::any_of(table.head.begin(), table.head.end(), [](const std::string& h) { return !h.empty(); });
  std::string out = "<div class=\"scroll\"><table>\n";
  if (named) out += "<thead>" + row(table.head, "th") + "</thead>\n";
  out += "<tbody>\n";
  for (const std::vector<std::string>& cells : table.rows) out += row(cells, "td");
  return out + "</tbody></table></div>\n";
}

std::string paragraph(const std::string& text, const std::string& css_class) {
  return (css_class.empty() ? "<p>" : "<p class=\"" + css_class + "\">") + as_markup(text) + "</p>\n";
}

std::string absent(const std::string& text) { return paragraph(text, "none"); }

std::string code_block(const std::string& text) { return "<pre><code>" + as_markup(text) + "</code></pre>\n"; }

std::string folded(const std::string& words, const std::string& inside_markup) {
  return "<details><summary>" + as_markup(words) + "</summary>\n" + inside_markup + "</details>\n";
}

std::string figure(const std::string& svg_markup, const std::string& caption) {
  return "<figure>" + svg_markup + (caption.empty() ? "" : "<figcaption>" + as_markup(caption) + "</figcaption>") +
         "</figure>\n";
}

std::string section_markup(const ReportSection& section) {
  return "<section id=\"" + section.id + "\">\n<h2>" + as_markup(section.title) + "</h2>\n" + section.body_markup +
         "</section>\n";
}

std::string run_heading(const RunFacts& run, size_t place) {
  return std::string("<h3 class=\"") + kLetters[place] + "\">" + (place == 0 ? "A: " : "B: ") +
         as_markup(run.files.title()) + "</h3>\n";
}

}  // namespace ranklab::viz
