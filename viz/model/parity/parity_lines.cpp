#include "viz/model/parity/parity_lines.h"

#include <algorithm>

#include "core/base/text.h"

namespace ranklab::viz {
namespace {

using Kind = ParityLine::Kind;
constexpr size_t kAllWhole = 36, kBefore = 4, kBehind = 6;

class Lines {
 public:
  explicit Lines(const ParityMap& map) : map_(map) {
    const size_t rows = map.rows.size();
    const std::optional<size_t> first = map.first_wrong();
    if (rows <= kAllWhole) whole_end_ = rows;
    if (rows <= kAllWhole || !first) return;
    whole_begin_ = *first - std::min(kBefore, *first);
    whole_end_ = std::min(rows, *first + kBehind + 1);
  }

  std::vector<ParityLine> all() {
    const std::vector<ParityRow>& rows = map_.rows;
    for (size_t begin = 0, end = 0; begin < rows.size(); begin = end) {
      while (end < rows.size() && rows[begin].step == rows[end].step) ++end;
      add_step(begin, end);
    }
    return std::move(lines_);
  }

 private:
  void add(Kind kind, size_t begin, size_t end, std::string text) {
    lines_.push_back({.kind = kind, .begin = begin, .end = end, .text = std::move(text)});
  }
  void add_summary(size_t begin, size_t end, const std::string& name) {
    if (begin + 1 == end) {
      add(Kind::kTensor, begin, end, map_.rows[begin].text());
    } else if (begin < end) {
      add(Kind::kSummary, begin, end, summary_text(map_, begin, end, name));
    }
  }
  // All tensors of a step before the first wrong tensor share one line.
  void add_step(size_t from, size_t to) {
    if (to <= whole_begin_) {
      add(Kind::kPhase, from, to, "step " + std::to_string(map_.rows[from].step));
      add_summary(from, to, "");
      return;
    }
    for (size_t begin = from, end = from; begin < to; begin = end) {
      while (end < to && same_phase(map_.rows[begin], map_.rows[end])) ++end;
      add_phase(begin, end);
    }
  }
  void add_phase(size_t begin, size_t end) {
    add(Kind::kPhase, begin, end, phase_text(map_.rows[begin]));
    const size_t from = std::clamp(whole_begin_, begin, end), to = std::clamp(whole_end_, from, end);
    add_others(begin, from, from < to);
    for (size_t i = from; i < to; ++i) add(Kind::kTensor, i, i + 1, map_.rows[i].text());
    add_others(to, end, from < to);
  }
  // In the phase of the first wrong tensor, layers with wrong tensors have a line each.
  void add_others(size_t begin, size_t end, bool by_layer) {
    if (!by_layer || count_wrong(map_, begin, end) == 0) return add_summary(begin, end, "");
    size_t right = begin;
    for (const ParityUnit& unit : units_) {
      const size_t from = std::clamp(unit.begin, begin, end), to = std::clamp(unit.end, from, end);
      if (count_wrong(map_, from, to) == 0) continue;
      add_summary(right, from, "");
      add_summary(from, to, unit.name);
      right = to;
    }
    add_summary(right, end, "");
  }

  const ParityMap& map_;
  std::vector<ParityUnit> units_ = parity_units(map_);
  size_t whole_begin_ = 0, whole_end_ = 0;  // rows that have a line each
  std::vector<ParityLine> lines_;
};

}  // namespace

std::string phase_text(const ParityRow& row) { return "step " + std::to_string(row.step) + ", " + row.phase; }

std::string summary_text(const ParityMap& map, size_t begin, size_t end, const std::string& name) {
  const size_t count = end - begin, wrong = count_wrong(map, begin, end);
  const std::string of = name.empty() ? "" : name + ": ", tensors = count == 1 ? " tensor" : " tensors";
  if (wrong == 0) return of + std::to_string(count) + " right" + tensors;
  if (wrong == count) return of + std::to_string(count) + " wrong" + tensors;
  return of + strprintf("%zu of %zu tensors wrong", wrong, count);
}

std::vector<ParityLine> parity_lines(const ParityMap& map) { return Lines(map).all(); }

}  // namespace ranklab::viz
