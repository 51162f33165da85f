#include "viz/html/parity/parity_page.h"

#include <algorithm>
#include <sstream>

#include "core/base/text.h"
#include "viz/html/page_text.h"
#include "viz/html/report/html_text.h"
#include "viz/model/parity/parity_lines.h"
#include "viz/model/svg/markup.h"

namespace ranklab::viz {
namespace {

constexpr size_t kNarrowFrom = 17;  // ranks

std::string colours_css() {
  const auto rules = [](Ground ground) {
    std::string out;
    for (const bool later : {false, true})
      for (size_t level = 0; level < kParityLevels; ++level) {
        const ParityPaint paint = parity_paint(level, ground, later);
        out += strprintf("%s.l%zu { background: %s; color: %s; }\n", later ? ".later " : "", level,
                         hex(paint.fill).c_str(), hex(paint.text).c_str());
      }
    return out;
  };
  return rules(Ground::kLight) + "@media screen and (prefers-color-scheme: dark) {\n" + rules(Ground::kDark) + "}\n";
}

// Whether cells are too narrow for numbers.
bool is_narrow(const ParityMap& map) { return map.ranks.size() >= kNarrowFrom; }

std::string facts_markup(const ParityMap& map, bool brief) {
  std::string out;
  for (const ParityFact& fact : map.facts)
    if (fact.brief || !brief) out += "<dt>" + as_markup(fact.what) + "</dt><dd>" + as_markup(fact.text) + "</dd>\n";
  return out.empty() ? "" : "<dl>\n" + out + "</dl>\n";
}

class Table {
 public:
  explicit Table(const ParityMap& map) : map_(map), first_(map.first_wrong()), narrow_(is_narrow(map)) {}

  std::string markup() const {
    std::string out = std::string("<table class=\"map") + (narrow_ ? " narrow" : "") + "\">\n" + head();
    size_t seen = 0;
    for (const ParityUnit& unit : parity_units(map_)) {
      if (unit.begin == 0 || !same_phase(map_.rows[unit.begin - 1], map_.rows[unit.begin])) out += phase(unit.begin);
      out += unit_markup(unit, seen++);
    }
    return out + "</table>\n";
  }

 private:
  std::string head() const {
    std::string out = "<thead><tr><th class=\"words\" scope=\"col\">tensor</th>";
    for (size_t rank = 0; rank < map_.ranks.size(); ++rank) {
      out += "<th scope=\"col\" title=\"rank " + std::to_string(rank) + ", " + as_markup(map_.ranks[rank]) + "\">" +
             std::to_string(rank);
      std::istringstream in(map_.ranks[rank]);
      if (narrow_) out += "<br><small class=\"turned\">" + as_markup(map_.ranks[rank]) + "</small>";
      for (std::string word; !narrow_ && in >> word;) out += "<br><small>" + as_markup(word) + "</small>";
      out += "</th>";
    }
    return out + "<th scope=\"col\" class=\"far\">furthest<br><small>eps of allowed</small></th></tr></thead>\n";
  }

  std::string phase(size_t row) const {
    const bool new_step = row == 0 || map_.rows[row - 1].step != map_.rows[row].step;
    return "<tbody class=\"phase\"" +
           (new_step ? " id=\"step" + std::to_string(map_.rows[row].step) + "\"" : std::string()) +
           strprintf("><tr><th scope=\"rowgroup\" colspan=\"%zu\">", map_.ranks.size() + 2) +
           as_markup(phase_text(map_.rows[row])) + "</th></tr></tbody>\n";
  }

  std::string unit_markup(const ParityUnit& unit, size_t number) const {
    if (unit.begin + 1 == unit.end) return "<tbody>" + tensor(unit.begin) + "</tbody>\n";
    const bool open = first_ && unit.begin <= *first_ && *first_ < unit.end;
    const std::string id = "u" + std::to_string(number);
    std::string out = "<tbody><tr class=\"unit" + later(unit.begin) + "\"><th scope=\"row\"><button aria-controls=\"" +
                      id + "\" aria-expanded=\"" + (open ? "true" : "false") + "\">" +
                      as_markup(summary_text(map_, unit.begin, unit.end, unit.name)) + "</button></th>";
    const std::vector<std::optional<size_t>> rows = furthest_rows(map_, unit.begin, unit.end);
    for (size_t rank = 0; rank < rows.size(); ++rank)
      out += rows[rank] ? cell(map_.rows[*rows[rank]], rank, strprintf(" data-of=\"r%zu\"", *rows[rank])) : no_part();
    out += furthest(unit.begin, unit.end) + "</tr></tbody>\n<tbody id=\"" + id + "\"" + (open ? "" : " hidden") + ">";
    for (size_t i = unit.begin; i < unit.end; ++i) out += tensor(i);
    return out + "</tbody>\n";
  }

  std::string furthest(size_t begin, size_t end) const {
    std::string text;
    if (const std::optional<ParityPlace> place = furthest_place(map_, begin, end))
      text = distance_text(map_.rows[place->row], *map_.rows[place->row].cells[place->rank]);
    return "<td class=\"far\">" + as_markup(text) + "</td>";
  }

  std::string later(size_t row) const { return first_ && row > *first_ ? " later" : ""; }

  std::string tensor(size_t at) const {
    const ParityRow& row = map_.rows[at];
    const bool is_first = first_ && at == *first_;
    std::string out = strprintf("<tr id=\"r%zu\" class=\"tensor%s%s\"><th scope=\"row\">", at, later(at).c_str(),
                                is_first ? " first" : "") +
                      as_markup(row.text()) + "</th>";
    for (size_t rank = 0; rank < map_.ranks.size(); ++rank) {
      const bool has = rank < row.cells.size() && row.cells[rank];
      out += has ? cell(row, rank, numbers(row, *row.cells[rank])) : no_part();
    }
    out += furthest(at, at + 1) + "</tr>\n";
    if (is_first)
      out += strprintf("<tr class=\"sentence\"><td colspan=\"%zu\">", map_.ranks.size() + 2) +
             facts_markup(map_, true) + "</td></tr>\n";
    return out;
  }

  // The numbers of a cell, line by line, which the page's program shows.
  static std::string numbers(const ParityRow& row, const ParityCell& one) {
    std::string text = distance_text(row, one) + (row.allowed > 0 ? " eps allowed" : " allowed");
    if (!one.slice.empty()) text += "\npart " + one.slice;
    if (!one.place.empty()) text += strprintf("\nat %s: %.9g instead of %.9g", one.place.c_str(), one.got, one.want);
    return " data-n=\"" + as_lines(text) + "\"";
  }
  // as_markup() would replace line ends by spaces.
  static std::string as_lines(const std::string& text) {
    std::istringstream in(text);
    std::string out;
    for (std::string line; std::getline(in, line);) out += (out.empty() ? "" : "&#10;") + as_markup(line);
    return out;
  }

  std::string cell(const ParityRow& row, size_t rank, const std::string& attributes) const {
    const ParityCell& one = *row.cells[rank];
    return strprintf("<td class=\"l%zu\"%s>", level_of(row, one), attributes.c_str()) + mark_of(row, one, narrow_) +
           "</td>";
  }
  static std::string no_part() { return "<td class=\"no\">\u2013</td>"; }

  const ParityMap& map_;
  std::optional<size_t> first_;
  bool narrow_;
};

std::string legend_markup(bool narrow) {
  std::string out = "<p class=\"legend\" aria-label=\"what the colours mean\"><span>distance / tolerance</span>";
  for (size_t level = 0; level < kParityLevels; ++level)
    out += strprintf("<span class=\"chip l%zu\">", level) + (level >= kRightLevels ? "\u2717 " : "") +
           as_markup(words_of_level(level)) + "</span>";
  return out + "<span class=\"chip no\">\u2013 no part of it</span></p>\n" +
         paragraph(
             std::string("\u2717 is wrong") +
                 (narrow ? "" : ", with its multiple of the tolerance; without a number, copies or types differ") +
                 ". What follows from the first wrong tensor is paler. Point at a cell, or go there with Tab and the "
                 "arrow keys, for its numbers.",
             "dim");
}

std::string contents_markup(const ParityMap& map) {
  std::string out;
  if (const std::optional<size_t> first = map.first_wrong())
    out += "<a href=\"#r" + std::to_string(*first) + "\">first wrong tensor</a>\n";
  for (size_t i = 0; i < map.rows.size(); ++i) {
    const std::string step = std::to_string(map.rows[i].step);
    if (i == 0 || map.rows[i - 1].step != map.rows[i].step)
      out += "<a href=\"#step" + step + "\">step " + step + "</a>\n";
  }
  return out;
}

}  // namespace

std::string parity_page(const ParityMap& map) {
  const std::string verdict = "<p class=\"verdict" + std::string(map.same ? "" : " bad") + "\">" +
                              as_markup(map.verdict) + "</p>\n" + facts_markup(map, false);
  const std::string buttons =
      "<p class=\"buttons\"><button data-all=\"open\">open all</button> <button data-all=\"close\">close "
      "all</button></p>\n";
  return filled_page(page_part("report/report.html"),
                     {{"@TITLE@", as_markup("ranklab parity: " + map.title)},
                      {"@STYLE@", std::string(page_part("colors.css")) + std::string(page_part("report/report.css")) +
                                      std::string(page_part("parity/parity.css")) + colours_css()},
                      {"@HEAD@", "<h1>" + as_markup("Parity of " + map.title) + "</h1>\n" +
                                     paragraph("against " + map.reference + ", " + map.type, "dim")},
                      {"@CONTENTS@", contents_markup(map)},
                      {"@MAIN@", section_markup({"verdict", "Verdict", verdict}) +
                                     section_markup({"map", "Tensors in causal order",
                                                     legend_markup(is_narrow(map)) + buttons + Table(map).markup()})},
                      {"@PROGRAM@", std::string(page_part("parity/parity.js"))}});
}

}  // namespace ranklab::viz
