// Sections from the run's own record: the command, its settings, the machine; and the sentinels that fired.
#include <cmath>

#include "core/base/text.h"
#include "viz/html/report/html_text.h"
#include "viz/html/report/sections.h"

namespace ranklab::viz {
namespace {

constexpr const char* kNoRecord =
    "Not recorded: the folder has no run.json, which ranklab train writes there (an older version did not).";

HtmlTable settings_table(const RunRecord& record, bool given) {
  HtmlTable table{.head = {"setting", "value", "origin"}, .words = 3};
  for (const RunSetting& one : record.settings)
    if (one.given() == given) table.rows.push_back({one.key, one.value, one.origin});
  return table;
}

std::string value_text(double value) { return std::isnan(value) ? "not finite" : strprintf("%.4g", value); }

std::string times_text(const FiredSentinel& one) {
  if (one.times <= 1) return "step " + std::to_string(one.first_step);
  return strprintf("steps %ld to %ld, %ld times", static_cast<long>(one.first_step), static_cast<long>(one.last_step),
                   static_cast<long>(one.times));
}

std::string sentinels_of(const FiredSentinels& all) {
  if (!all.watched) return absent("Off in this run: --sentinel-mode minimal, standard or debug watches its numbers.");
  if (all.fired.empty()) return paragraph("None fired in " + std::to_string(all.steps) + " watched steps.");
  HtmlTable table{.head = {"sentinel", "of", "when", "first value", "lowest", "highest", "bounds", "did"},
                  .words = 3,
                  .last_words = 2};
  for (const FiredSentinel& one : all.fired)
    table.rows.push_back({one.name, one.tag, times_text(one), value_text(one.first_value), value_text(one.lowest),
                          value_text(one.highest), one.bounds, one.stops ? "stop" : one.action});
  return table_markup(table) +
         (all.more ? paragraph("More fired than are listed; sentinels.jsonl has them.", "dim") : "");
}

}  // namespace

std::string command_section(Runs runs) {
  return for_each_run(runs, [](const RunFacts& run, const std::string&) {
    if (!run.files.record || run.files.record->command.empty()) return absent(kNoRecord);
    const RunRecord& record = *run.files.record;
    std::string out = code_block(record.command);
    if (!record.again.empty())
      out += paragraph("Some settings came from a file, the environment or --set; as flags alone:") +
             code_block(record.again);
    return out;
  });
}

std::string settings_section(Runs runs) {
  return for_each_run(runs, [](const RunFacts& run, const std::string&) {
    if (!run.files.record) return absent(kNoRecord);
    const HtmlTable given = settings_table(*run.files.record, true), others = settings_table(*run.files.record, false);
    return (given.rows.empty() ? paragraph("All are defaults or the preset's.") : table_markup(given)) +
           (others.rows.empty() ? ""
                                : folded(std::to_string(others.rows.size()) + " defaults and values of the preset",
                                         table_markup(others)));
  });
}

std::string machine_section(Runs runs) {
  return for_each_run(runs, [](const RunFacts& run, const std::string&) {
    if (!run.files.record) return absent(kNoRecord);
    const RunRecord& record = *run.files.record;
    HtmlTable table{.head = {"", ""}, .words = 2};
    const auto add = [&](const std::string& name, const std::string& value) {
      if (!value.empty()) table.rows.push_back({name, value});
    };
    add("ranks", record.world);
    add("layout", record.layout);
    add("hardware profile", record.profile);
    add("data", record.data);
    add("weights from", record.loaded);
    if (record.parameters > 0) add("parameters", std::to_string(record.parameters));
    for (const auto& [name, value] : record.machine) add(name, value);
    add("ranklab", record.version);
    return table.rows.empty() ? absent(kNoRecord) : table_markup(table);
  });
}

std::string sentinel_section(Runs runs) {
  return for_each_run(runs, [](const RunFacts& run, const std::string&) { return sentinels_of(run.files.sentinels); });
}

}  // namespace ranklab::viz
