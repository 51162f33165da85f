// The numbers by which runs are compared, and the settings in which two of them differ.
#include <cmath>
#include <map>

#include "core/base/text.h"
#include "viz/html/report/html_text.h"
#include "viz/html/report/sections.h"

namespace ranklab::viz {
namespace {

// "+12.5 %" relative to a's value; "" if it cannot be computed.
std::string change_text(double a, double b) {
  if (!std::isfinite(a) || !std::isfinite(b) || a == 0) return "";
  if (a == b) return "same";
  return strprintf("%+.1f %%", 100 * (b - a) / std::abs(a));
}

}  // namespace

std::string glance_section(Runs runs) {
  HtmlTable table{.head = {"", runs.size() == 1 ? "" : "A"}, .last_words = 1};
  if (runs.size() > 1) table.head.insert(table.head.end(), {"B", "B to A"});
  table.head.emplace_back("");
  std::map<std::string, const GlanceNumber*> other;
  for (const RunFacts& run : runs.subspan(1))
    for (const GlanceNumber& number : run.glance) other[number.name] = &number;
  for (const GlanceNumber& number : runs[0].glance) {
    std::vector<std::string> row = {number.name, glance_text(number)};
    const auto there = other.find(number.name);
    const GlanceNumber* b = there == other.end() ? nullptr : there->second;
    if (!std::isfinite(number.value) && (b == nullptr || !std::isfinite(b->value))) continue;
    if (runs.size() > 1) {
      row.push_back(b == nullptr ? "-" : glance_text(*b));
      row.push_back(b == nullptr || number.unit == "share" ? "" : change_text(number.value, b->value));
    }
    row.push_back(number.about);
    table.rows.push_back(std::move(row));
  }
  if (table.rows.empty())
    return absent("No numbers: neither metrics.jsonl nor the trace has a step. ranklab train writes both.");
  return table_markup(table);
}

std::string difference_section(Runs runs) {
  if (runs.size() < 2) return "";
  const auto &a = runs[0].files.record, &b = runs[1].files.record;
  if (!a || !b)
    return absent("Not known: a run has no run.json, which ranklab train writes into the folder of --log-dir.");
  HtmlTable table{.head = {"setting", "A", "B", "A's origin", "B's origin"}, .words = 5};
  const auto value = [](const RunSetting* one) { return one == nullptr ? std::string("-") : one->value; };
  const auto origin = [](const RunSetting* one) { return one == nullptr ? std::string() : one->origin; };
  for (const SettingDifference& one : setting_differences(*a, *b))
    table.rows.push_back({one.key, value(one.a), value(one.b), origin(one.a), origin(one.b)});
  return table.rows.empty() ? paragraph("None: both have the same settings.") : table_markup(table);
}

}  // namespace ranklab::viz
