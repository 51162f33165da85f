#include "viz/html/report/report_page.h"

#include <cctype>

#include "core/base/counted.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "viz/html/page_text.h"
#include "viz/html/report/html_text.h"
#include "viz/html/report/sections.h"
#include "viz/model/run/run_end.h"
#include "viz/model/svg/markup.h"

namespace ranklab::viz {
namespace {

struct SectionRow {
  const char* id;
  const char* title;
  std::string (*markup)(Runs);
};

constexpr SectionRow kSections[] = {
    {"glance", "At a glance", glance_section},      {"differences", "Settings that differ", difference_section},
    {"command", "Run it again", command_section},   {"insights", "What costs most", insight_section},
    {"curves", "Curves", curves_section},           {"sentinels", "Sentinels", sentinel_section},
    {"layout", "Layout", layout_section},           {"timeline", "Timeline of a step", timeline_section},
    {"traffic", "Traffic", traffic_section},        {"memory", "Memory", memory_section},
    {"zero", "ZeRO: who holds what", zero_section}, {"experts", "Experts", expert_section},
    {"precision", "Precision", precision_section},  {"settings", "Settings", settings_section},
    {"machine", "Machine", machine_section},
};

// How far the run came.
std::string end_text(const RunFiles& run) {
  if (!run.record) return "";
  std::string out;
  if (run.record->outcome)
    out =
        counted(run.record->outcome->steps_done, "step") + " in " + human_ns(run.record->outcome->seconds * 1e9) + ". ";
  return out;
}

std::string as_sentence(std::string words) {
  words[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(words[0])));
  return words + ".";
}

std::string about_text(const RunFiles& run) {
  std::string out = end_text(run);
  if (run.record && !run.record->began.empty()) out += "Began " + run.record->began + ". ";
  return out + "Folder " + run.folder + ".";
}

std::string head_markup(Runs runs) {
  std::string out = "<h1>" + as_markup(runs.size() == 1 ? runs[0].files.title() : "Two runs side by side") + "</h1>\n";
  for (size_t i = 0; i < runs.size(); ++i) {
    if (runs.size() > 1) out += run_heading(runs[i], i);
    out += paragraph(about_text(runs[i].files), "dim");
    const RunEnd end = run_end(runs[i].files.record, runs[i].files.curves);
    if (!end.words.empty()) out += paragraph(as_sentence(end.words), end.failed ? "bad" : "dim");
    for (const std::string& problem : runs[i].files.problems) out += paragraph("Incomplete: " + problem, "bad");
  }
  return out;
}

}  // namespace

std::string report_page(Runs runs) {
  RANKLAB_CHECK(runs.size() == 1 || runs.size() == 2, ErrorKind::kInternal, .where = "report",
                .what = "a report covers one run or two", .got = std::to_string(runs.size()));
  std::string contents, sections;
  for (const SectionRow& row : kSections) {
    const std::string body = row.markup(runs);
    if (body.empty()) continue;
    contents += std::string("<a href=\"#") + row.id + "\">" + as_markup(row.title) + "</a>\n";
    sections += section_markup({row.id, row.title, body});
  }
  std::string title = "ranklab: " + runs[0].files.title();
  if (runs.size() == 2) title += " and " + runs[1].files.title();
  return filled_page(page_part("report/report.html"),
                     {{"@TITLE@", as_markup(title)},
                      {"@STYLE@", std::string(page_part("colors.css")) + std::string(page_part("report/report.css"))},
                      {"@HEAD@", head_markup(runs)},
                      {"@CONTENTS@", contents},
                      {"@MAIN@", sections},
                      {"@PROGRAM@", std::string(page_part("report/report.js"))}});
}

}  // namespace ranklab::viz
