#include "lessons/lanes_picture.h"

#include <algorithm>
#include <cmath>

#include "core/base/text.h"

namespace ranklab::lesson {
namespace {

constexpr int kLabel = 12;
const std::string kWaiting = "·";

class Row {
 public:
  Row(int columns, TimeWindow window) : cells_(static_cast<size_t>(columns), " "), window_(window) {}

  // Adjacent spans of one kind are separated by a bar.
  void fill(int64_t begin_ns, int64_t end_ns, const std::string& glyph) {
    const int from = column(begin_ns), to = std::max(column(end_ns), from + 1);
    for (int i = std::max(from, 0); i < std::min(to, static_cast<int>(cells_.size())); ++i) {
      cells_[static_cast<size_t>(i)] =
          i == from && from > 0 && cells_[static_cast<size_t>(i - 1)] == glyph && glyph != kWaiting ? "|" : glyph;
    }
  }
  std::string text() const {
    std::string out;
    for (const std::string& cell : cells_) out += cell;
    return out.substr(0, out.find_last_not_of(' ') + 1);
  }

 private:
  int column(int64_t ns) const {
    const double share = static_cast<double>(ns - window_.begin_ns) /
                         static_cast<double>(std::max<int64_t>(1, window_.end_ns - window_.begin_ns));
    return static_cast<int>(std::lround(share * static_cast<double>(cells_.size())));
  }
  std::vector<std::string> cells_;
  TimeWindow window_;
};

}  // namespace

void draw_lanes(Screen& screen, const std::string& title, const RankTrace& trace, TimeWindow window) {
  const int columns = screen.width() - kLabel - 4;
  Row compute(columns, window), link(columns, window);
  int64_t last_ns = window.begin_ns;
  const auto shown = [&](const Event& event) {
    return (window.step < 0 || event.step == window.step) && event.virtual_end_ns > window.begin_ns &&
           event.virtual_begin_ns < window.end_ns;
  };
  for (const Event& event : trace.events) {
    if (!shown(event)) continue;
    last_ns = std::max(last_ns, std::min(event.virtual_end_ns, window.end_ns));
    if (event.kind == EventKind::kCompute) {
      compute.fill(event.virtual_begin_ns, event.virtual_end_ns, trace.names[event.name].substr(0, 1));
    } else if (event.kind == EventKind::kCollective) {
      link.fill(event.virtual_begin_ns, event.virtual_end_ns, "▒");
    }
  }
  for (const Event& event : trace.events) {  // time that the stream lost in a wait, drawn over its span
    const int64_t lost_ns = event.virtual_exposed_ns + event.virtual_peer_wait_ns;
    if (shown(event) && lost_ns > 0) compute.fill(event.virtual_end_ns - lost_ns, event.virtual_end_ns, kWaiting);
  }
  screen.line("  " + screen.paint(Ink::kBold, title) + ": " + human_ns(static_cast<double>(last_ns - window.begin_ns)));
  screen.line("  " + padded("compute", kLabel) + screen.paint(Ink::kGreen, compute.text()));
  screen.line("  " + padded("link", kLabel) + screen.paint(Ink::kYellow, link.text()));
}

void draw_rank_rows(Screen& screen, const std::vector<std::vector<GlyphSpan>>& ranks, TimeWindow window) {
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    Row row(screen.width() - kLabel - 4, window);
    row.fill(window.begin_ns, window.end_ns, kWaiting);
    for (const GlyphSpan& span : ranks[rank]) row.fill(span.begin_ns, span.end_ns, span.glyph);
    screen.line("  " + padded("rank " + std::to_string(rank), kLabel) + screen.paint(Ink::kGreen, row.text()));
  }
}

}  // namespace ranklab::lesson
