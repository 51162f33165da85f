#include "viz/model/parity/parity_map.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "core/base/text.h"

namespace ranklab::viz {
namespace {

constexpr double kNotFinite = 1e100;

// "layers.1" for "layers.1.attention", "mtp.0" for its modules; for other modules their own name.
std::string unit_of(const std::string& name) {
  const size_t first = name.find('.');
  if (!name.starts_with("layers.") && !name.starts_with("mtp.")) return name.substr(0, first);
  return name.substr(0, name.find('.', first + 1));
}

constexpr Rgba kInkOnLight = 0x1B2027FF, kInkOnDark = 0xDEE3EAFF, kTextOnDeep = 0xFFFFFFFF, kTextOnBright = 0x14181DFF;
// OKLCH: hue 235 with little chroma for right tensors; hues 75 to 25 for wrong ones.
constexpr std::array<ParityPaint, kParityLevels> kOnLight = {{{0xF4F7FAFF, kInkOnLight},
                                                              {0xE8F0F6FF, kInkOnLight},
                                                              {0xDAE7F0FF, kInkOnLight},
                                                              {0xC9DDEBFF, kInkOnLight},
                                                              {0xFFCA7FFF, kInkOnLight},
                                                              {0xFBA95CFF, kInkOnLight},
                                                              {0xEE7F45FF, kInkOnLight},
                                                              {0xCC4728FF, kTextOnDeep},
                                                              {0xA32222FF, kTextOnDeep},
                                                              {0x6D0F1FFF, kTextOnDeep}}};
constexpr std::array<ParityPaint, kParityLevels> kOnDark = {{{0x1A222AFF, kInkOnDark},
                                                             {0x1F2D39FF, kInkOnDark},
                                                             {0x233544FF, kInkOnDark},
                                                             {0x2A4052FF, kInkOnDark},
                                                             {0x73351EFF, kInkOnDark},
                                                             {0x98401DFF, kTextOnDeep},
                                                             {0xD0692FFF, kTextOnBright},
                                                             {0xEC8A3CFF, kTextOnBright},
                                                             {0xFBB561FF, kTextOnBright},
                                                             {0xFFE0A0FF, kTextOnBright}}};

// A wrong cell counts as further than a right one, whatever their distances are.
std::pair<bool, double> weight(const ParityMap& map, const ParityPlace& place) {
  const ParityRow& row = map.rows[place.row];
  const ParityCell& cell = *row.cells[place.rank];
  return {cell.wrong, times_allowed(row, cell)};
}

// Mixes a share of a colour with the ground.
Rgba faded(Rgba colour, Rgba ground, double share) {
  Rgba out = 0xFF;
  for (const unsigned shift : {8U, 16U, 24U}) {
    const double part = share * (colour >> shift & 0xFFU) + (1 - share) * (ground >> shift & 0xFFU);
    out |= static_cast<Rgba>(std::lround(part)) << shift;
  }
  return out;
}

}  // namespace

bool ParityRow::wrong() const {
  return std::ranges::any_of(cells, [](const auto& cell) { return cell && cell->wrong; });
}

std::optional<size_t> ParityMap::first_wrong() const {
  const auto found = std::ranges::find_if(rows, &ParityRow::wrong);
  if (found == rows.end()) return {};
  return static_cast<size_t>(found - rows.begin());
}

bool same_phase(const ParityRow& one, const ParityRow& other) {
  return one.step == other.step && one.phase == other.phase;
}

std::vector<ParityUnit> parity_units(const ParityMap& map) {
  std::vector<ParityUnit> units;
  for (size_t i = 0; i < map.rows.size(); ++i) {
    std::string unit = unit_of(map.rows[i].name);
    if (units.empty() || units.back().name != unit || !same_phase(map.rows[i - 1], map.rows[i]))
      units.push_back({.begin = i, .end = i, .name = std::move(unit)});
    units.back().end = i + 1;
  }
  return units;
}

double times_allowed(const ParityRow& row, const ParityCell& cell) {
  return row.allowed > 0 ? cell.eps / row.allowed : cell.eps;
}

std::string distance_text(const ParityRow& row, const ParityCell& cell) {
  return (cell.eps > kNotFinite ? "not finite" : strprintf("%.3g", cell.eps)) +
         (row.allowed > 0 ? strprintf(" of %.3g", row.allowed) : ", the same bits");
}

std::vector<std::optional<size_t>> furthest_rows(const ParityMap& map, size_t begin, size_t end) {
  std::vector<std::optional<size_t>> out(map.ranks.size());
  for (size_t i = begin; i < end; ++i)
    for (size_t rank = 0; rank < std::min(out.size(), map.rows[i].cells.size()); ++rank) {
      if (!map.rows[i].cells[rank]) continue;
      if (!out[rank] || weight(map, {i, rank}) > weight(map, {*out[rank], rank})) out[rank] = i;
    }
  return out;
}

std::optional<ParityPlace> furthest_place(const ParityMap& map, size_t begin, size_t end) {
  std::optional<ParityPlace> furthest;
  const std::vector<std::optional<size_t>> rows = furthest_rows(map, begin, end);
  for (size_t rank = 0; rank < rows.size(); ++rank) {
    if (!rows[rank]) continue;
    const ParityPlace here{.row = *rows[rank], .rank = rank};
    if (!furthest || weight(map, here) > weight(map, *furthest)) furthest = here;
  }
  return furthest;
}

size_t count_wrong(const ParityMap& map, size_t begin, size_t end) {
  size_t wrong = 0;
  for (size_t i = begin; i < end; ++i) wrong += map.rows[i].wrong();
  return wrong;
}

std::string mark_of(const ParityRow& row, const ParityCell& cell, bool narrow) {
  constexpr const char* kCross = "\u2717";
  if (!cell.wrong) return "";
  const double times = times_allowed(row, cell);
  if (narrow || times <= 1) return kCross;  // a wrong cell with less than the allowed distance has no number
  if (times > kNotFinite) return std::string(kCross) + " \u221e";
  if (times < 999.5) return std::string(kCross) + strprintf(" %.*f", times < 9.95 ? 1 : 0, times);
  const std::string digits = strprintf("%.0e", times);  // "4e+05"
  return std::string(kCross) + " " + digits.substr(0, 2) + std::to_string(std::stoi(digits.substr(2)));
}

size_t level_of(const ParityRow& row, const ParityCell& cell) {
  const double times = times_allowed(row, cell), decades = times > 0 ? std::log10(times) : -300;
  if (!cell.wrong) return decades <= -2 ? 0 : decades <= -1 ? 1 : decades <= -0.5 ? 2 : 3;
  constexpr std::array<double, 5> kEnds = {1, 2, 3, 4, 6};
  const auto end = std::ranges::upper_bound(kEnds, decades);
  return kRightLevels + static_cast<size_t>(end - kEnds.begin());
}

std::string words_of_level(size_t level) {
  constexpr std::array<const char*, kParityLevels> kWords = {"under 1 %",     "1 to 10 %", "10 to 30 %", "30 to 100 %",
                                                             "1 to 10 times", "to 100",    "to 1000",    "to 1e4",
                                                             "to 1e6",        "more"};
  return kWords.at(level);
}

ParityPaint parity_paint(size_t level, Ground ground, bool later) {
  constexpr double kShare = 0.38;
  const bool light = ground == Ground::kLight;
  const ParityPaint paint = (light ? kOnLight : kOnDark).at(level);
  if (!later) return paint;
  return {faded(paint.fill, light ? 0xFFFFFFFF : 0x111317FF, kShare), light ? kInkOnLight : kInkOnDark};
}

}  // namespace ranklab::viz
