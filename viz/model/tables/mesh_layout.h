// The places where the ranks of a mesh are drawn: the axis whose neighbours are closest runs along a row, the next axis
// down the rows, the others form planes next to each other. A mesh with one axis is wrapped into rows. Cost: O(ranks x
// axes). Thread rule: pure.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "viz/model/tables/mesh_table.h"

namespace ranklab::viz {

struct MeshTile {
  int plane = 0, row = 0, column = 0;
  bool operator==(const MeshTile&) const = default;
};

// Two ranks that are neighbours on an axis: indices of MeshTable::ranks.
struct MeshLink {
  Axis axis = Axis::kWorld;
  size_t from = 0, to = 0;
};

struct MeshLayout {
  std::vector<MeshTile> tiles;      // by rank
  std::vector<std::string> planes;  // "pp 1": the coordinates that a plane's ranks share; "" if there is only one plane
  int rows = 1, columns = 1;        // of one plane
  std::vector<MeshLink> links;      // along rows and columns, and from plane to plane
};

// `widest`: the largest number of columns for a mesh with one axis.
MeshLayout mesh_layout(const MeshTable& table, int widest = 8);

}  // namespace ranklab::viz
