// The map of a parity result: the tensors of a run compared with its reference, in causal order, one row each, with one
// cell per rank. A cell's colour is the distance of the rank's part from the reference, relative to the allowed
// distance. A plain table, so that the code that compares tensors is independent of pictures. Thread rule: pure.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "viz/model/svg/ground.h"
#include "viz/model/svg/palette.h"

namespace ranklab::viz {

// One rank's part of a tensor.
struct ParityCell {
  double eps = 0;  // distance from the reference, in epsilons
  bool wrong = false;
  std::string slice = {};  // the part of the tensor, in global coordinates
  std::string place = {};  // position of the element that differs most; "": none differs
  double got = 0, want = 0;
};

struct ParityRow {
  int64_t step = 0;
  std::string phase;                                  // "forward"
  std::string name;                                   // the module or parameter: "layers.1.attention"
  std::string kind;                                   // "output"
  double allowed = 0;                                 // in epsilons; 0: all bits must be equal
  std::vector<std::optional<ParityCell>> cells = {};  // by rank; none: the rank has no part of the tensor

  bool wrong() const;
  std::string text() const { return kind.empty() ? name : name + " " + kind; }
};

struct ParityFact {
  std::string what;  // "how far"
  std::string text;
  bool brief = false;  // one of the few facts shown next to the first wrong tensor
};

struct ParityMap {
  std::string title = {}, reference = {}, type = {};  // layouts as flags; number type: "fp32"
  std::string verdict = {};                           // "DIFFERENT, first in step 0, backward: layers.1.norm grad"
  bool same = true;
  std::vector<ParityFact> facts = {};   // about the differences
  std::vector<std::string> ranks = {};  // "dp0 tp1"
  std::vector<ParityRow> rows = {};     // in causal order

  std::optional<size_t> first_wrong() const;
};

// Rows of one step, phase and layer (or of a module outside of layers), which a picture may show as one row.
struct ParityUnit {
  size_t begin = 0, end = 0;  // rows of the map
  std::string name;           // "layers.1"
};
std::vector<ParityUnit> parity_units(const ParityMap& map);
bool same_phase(const ParityRow& one, const ParityRow& other);

// For each rank, which of the given rows is furthest from the reference.
std::vector<std::optional<size_t>> furthest_rows(const ParityMap& map, size_t begin, size_t end);
// The furthest of these over all ranks; nothing if no rank has a part of any.
struct ParityPlace {
  size_t row = 0, rank = 0;
};
std::optional<ParityPlace> furthest_place(const ParityMap& map, size_t begin, size_t end);
size_t count_wrong(const ParityMap& map, size_t begin, size_t end);

// The distance divided by the allowed distance; if all bits must be equal, the distance in epsilons.
double times_allowed(const ParityRow& row, const ParityCell& cell);
std::string distance_text(const ParityRow& row, const ParityCell& cell);  // "3.2e+05 of 16", in epsilons
// The text on a wrong cell, in addition to its colour: "✗ 3e4". `narrow`: only the cross.
std::string mark_of(const ParityRow& row, const ParityCell& cell, bool narrow);

// The colours: four pale ones for allowed distances, and six for wrong ones, each for distances ten to a hundred times
// those of the one before. Lightness falls from each colour to the next (on a dark ground it rises), so that their
// order is visible without hues.
constexpr size_t kRightLevels = 4, kParityLevels = 10;
size_t level_of(const ParityRow& row, const ParityCell& cell);
struct ParityPaint {
  Rgba fill, text;
};
// `later`: for a tensor after the first wrong one, whose error follows from it; its colour is nearer to the ground.
ParityPaint parity_paint(size_t level, Ground ground, bool later);
std::string words_of_level(size_t level);  // "10 to 100 times"

}  // namespace ranklab::viz
