// The map of a parity result: the tensors of a run beside its reference's in causal order, one row each, with one cell
// for each rank, coloured by how far its part is from the reference in units of what is allowed. A plain table, so that
// who compares tensors knows nothing of pictures. Thread rule: pure.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "viz/model/svg/ground.h"
#include "viz/model/svg/palette.h"

namespace ranklab::viz {

// What one rank has of a tensor.
struct ParityCell {
  double eps = 0;  // from the reference, in epsilons
  bool wrong = false;
  std::string slice = {};  // which part of the tensor, in global coordinates
  std::string place = {};  // of the element that differs most; "": none differs
  double got = 0, want = 0;
};

struct ParityRow {
  int64_t step = 0;
  std::string phase;                                  // "forward"
  std::string name;                                   // of the module or parameter: "layers.1.attention"
  std::string kind;                                   // "output"
  double allowed = 0;                                 // in epsilons; 0: the bits are to be the same
  std::vector<std::optional<ParityCell>> cells = {};  // by rank; none: the rank has no part of it

  bool wrong() const;
  std::string text() const { return kind.empty() ? name : name + " " + kind; }
};

struct ParityFact {
  std::string what;  // "how far"
  std::string text;
  bool brief = false;  // of the few that stand beside the first wrong tensor
};

struct ParityMap {
  std::string title = {}, reference = {}, type = {};  // the layouts as flags, "fp32"
  std::string verdict = {};                           // "DIFFERENT, first in step 0, backward: layers.1.norm grad"
  bool same = true;
  std::vector<ParityFact> facts = {};   // about what is wrong
  std::vector<std::string> ranks = {};  // "dp0 tp1"
  std::vector<ParityRow> rows = {};     // in causal order

  std::optional<size_t> first_wrong() const;
};

// Rows of one step, phase and layer (or module outside of layers), which a picture may show as one.
struct ParityUnit {
  size_t begin = 0, end = 0;  // of the map's rows
  std::string name;           // "layers.1"
};
std::vector<ParityUnit> parity_units(const ParityMap& map);
bool same_phase(const ParityRow& one, const ParityRow& other);

// For each rank, which of several rows is furthest from the reference.
std::vector<std::optional<size_t>> furthest_rows(const ParityMap& map, size_t begin, size_t end);
// The furthest of these over all ranks; none: no rank has a part of any.
struct ParityPlace {
  size_t row = 0, rank = 0;
};
std::optional<ParityPlace> furthest_place(const ParityMap& map, size_t begin, size_t end);
size_t count_wrong(const ParityMap& map, size_t begin, size_t end);

// How many times the distance that is allowed; where the bits are to be the same, how many epsilons.
double times_allowed(const ParityRow& row, const ParityCell& cell);
std::string distance_text(const ParityRow& row, const ParityCell& cell);  // "3.2e+05 of 16", in epsilons
// On a wrong cell, beside its colour: "✗ 3e4". `narrow`: the cross alone.
std::string mark_of(const ParityRow& row, const ParityCell& cell, bool narrow);

// The colours: four of what is allowed, pale, and six of what is wrong, each ten to a hundred times the one before.
// Lightness falls from each to the next (on dark ground it rises), so that their order is seen without hues.
constexpr size_t kRightLevels = 4, kParityLevels = 10;
size_t level_of(const ParityRow& row, const ParityCell& cell);
struct ParityPaint {
  Rgba fill, text;
};
// `later`: of what follows from the first wrong tensor, which is nearer to the ground.
ParityPaint parity_paint(size_t level, Ground ground, bool later);
std::string words_of_level(size_t level);  // "10 to 100 times"

}  // namespace ranklab::viz
