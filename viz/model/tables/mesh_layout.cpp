#include "viz/model/tables/mesh_layout.h"

#include <algorithm>
#include <map>

namespace ranklab::viz {
namespace {

struct MeshAxis {
  Axis axis = Axis::kWorld;
  int stride = 0, size = 0;  // distance of neighbours' global ranks; number of members in a group
};

// The axes that span the mesh, sorted by stride. Of several axes over the same ranks (dp and ep) the first is used;
// axes that are products of others are left out.
std::vector<MeshAxis> spanning_axes(const MeshTable& table) {
  std::vector<MeshAxis> axes;
  for (const Axis axis : table.axes) {
    if (axis == Axis::kWorld || axis == Axis::kEp || axis == Axis::kEtp || axis == Axis::kEdp || axis >= Axis::kDpCp)
      continue;
    const auto group = std::find_if(table.groups.begin(), table.groups.end(), [&](const MeshGroup& one) {
      return one.axis == axis && one.global_ranks.size() > 1;
    });
    if (group == table.groups.end()) continue;
    axes.push_back(
        {axis, group->global_ranks[1] - group->global_ranks[0], static_cast<int>(group->global_ranks.size())});
  }
  std::sort(axes.begin(), axes.end(), [](const MeshAxis& a, const MeshAxis& b) { return a.stride < b.stride; });
  return axes;
}

class Arranger {
 public:
  Arranger(const MeshTable& table, int widest) : table_(table), axes_(spanning_axes(table)), widest_(widest) {}

  MeshLayout arrange() {
    if (axes_.size() < 2)
      in_one_line();
    else
      in_planes();
    link();
    return std::move(out_);
  }

 private:
  int coordinate(size_t rank, size_t axis) const { return std::max(table_.coordinate(rank, axes_[axis].axis), 0); }

  void in_one_line() {
    const auto ranks = static_cast<int>(table_.ranks.size());
    out_.columns = std::clamp(ranks, 1, widest_);
    out_.rows = (ranks + out_.columns - 1) / out_.columns;
    out_.planes = {""};
    for (int rank = 0; rank < ranks; ++rank) out_.tiles.push_back({0, rank / out_.columns, rank % out_.columns});
  }

  void in_planes() {
    out_.columns = axes_[0].size;
    out_.rows = axes_[1].size;
    for (size_t rank = 0; rank < table_.ranks.size(); ++rank)
      out_.tiles.push_back({plane_of(rank), coordinate(rank, 1), coordinate(rank, 0)});
  }

  int plane_of(size_t rank) {
    std::string words;
    for (size_t i = axes_.size(); i-- > 2;) {
      if (!words.empty()) words += ", ";
      words += std::string(name(axes_[i].axis)) + " " + std::to_string(coordinate(rank, i));
    }
    const auto [at, fresh] = plane_numbers_.try_emplace(words, static_cast<int>(out_.planes.size()));
    if (fresh) out_.planes.push_back(words);
    return at->second;
  }

  // Links the neighbours in the groups of the axes.
  void link() {
    std::map<int, size_t> index;
    for (size_t rank = 0; rank < table_.ranks.size(); ++rank) index[table_.ranks[rank].global_rank] = rank;
    for (const MeshAxis& axis : axes_) {
      for (const MeshGroup& group : table_.groups) {
        if (group.axis != axis.axis) continue;
        for (size_t i = 1; i < group.global_ranks.size(); ++i) {
          const auto from = index.find(group.global_ranks[i - 1]), to = index.find(group.global_ranks[i]);
          if (from != index.end() && to != index.end()) out_.links.push_back({axis.axis, from->second, to->second});
        }
      }
    }
  }

  const MeshTable& table_;
  std::vector<MeshAxis> axes_;
  int widest_;
  MeshLayout out_;
  std::map<std::string, int> plane_numbers_;
};

}  // namespace

MeshLayout mesh_layout(const MeshTable& table, int widest) { return Arranger(table, widest).arrange(); }

}  // namespace ranklab::viz
