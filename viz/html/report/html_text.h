// Markup of the report's few elements. Every text that is passed in is escaped here; parameters that contain markup
// already are named so. Thread rule: pure.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "viz/model/run/run_facts.h"

namespace ranklab::viz {

constexpr double kCharacterWidth = 6.4;  // px, average width of a character in a picture

struct HtmlTable {
  std::vector<std::string> head;
  std::vector<std::vector<std::string>> rows = {};  // plain texts, not markup
  size_t words = 1;                                 // number of leading columns with words; the others have numbers
  size_t last_words = 0;                            // number of columns with words at the end
};
std::string table_markup(const HtmlTable& table);
std::string paragraph(const std::string& text, const std::string& css_class = "");
// Replaces a part that a run has not recorded: says what is missing, and which flag records it.
std::string absent(const std::string& text);
std::string code_block(const std::string& text);
std::string folded(const std::string& words, const std::string& inside_markup);
std::string figure(const std::string& svg_markup, const std::string& caption = "");

struct ReportSection {
  std::string id, title, body_markup;
};
std::string section_markup(const ReportSection& section);

// Calls `part` for each run; if there are two, each part is under a heading "A: its title", in A's or B's colour.
constexpr const char* kLetters[] = {"a", "b"};
template <typename Part>  // (const RunFacts&, const std::string& letter) -> markup
std::string for_each_run(std::span<const RunFacts> runs, const Part& part);
std::string run_heading(const RunFacts& run, size_t place);

template <typename Part>
std::string for_each_run(std::span<const RunFacts> runs, const Part& part) {
  std::string out;
  for (size_t i = 0; i < runs.size(); ++i) {
    if (runs.size() > 1) out += run_heading(runs[i], i);
    out += part(runs[i], std::string(kLetters[i]));
  }
  return out;
}

// The same for runs with a trace: part(store, facts, letter).
template <typename Part>
std::string for_each_trace(std::span<const RunFacts> runs, const Part& part) {
  constexpr const char* kNoTrace =
      "No trace: ranklab train records one unless --no-trace is given; --trace-step-start and --trace-step-end say of "
      "which steps.";
  return for_each_run(runs, [&](const RunFacts& run, const std::string& letter) {
    return run.step ? part(*run.files.trace, *run.step, letter) : absent(kNoTrace);
  });
}

}  // namespace ranklab::viz
