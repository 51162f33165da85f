// Places the rooms: the stages of a pipeline from left to right (and back in the next line if there are many), the
// ranks of a stage as a block of rows and columns.
#include <algorithm>
#include <cmath>
#include <map>

#include "viz/model/stage/parts.h"
#include "viz/model/tables/mesh_table.h"

namespace ranklab::viz {
namespace {

constexpr double kWidthPerHeight = 1.8;  // of the picture for which places are chosen, in rooms

// The ranks that get a room. If there are too many, replicas with the highest dp coordinates are left out, because they
// do the same as the others.
std::vector<size_t> shown_ranks(const MeshTable& mesh) {
  std::vector<size_t> ranks(mesh.ranks.size());
  for (size_t i = 0; i < ranks.size(); ++i) ranks[i] = i;
  if (ranks.size() <= kMostRooms) return ranks;
  std::vector<int> replicas;
  for (const size_t rank : ranks) replicas.push_back(std::max(0, mesh.coordinate(rank, Axis::kDp)));
  int kept = *std::max_element(replicas.begin(), replicas.end());
  const auto fit = [&] {
    return static_cast<size_t>(
        std::count_if(replicas.begin(), replicas.end(), [&](int replica) { return replica <= kept; }));
  };
  while (kept > 0 && fit() > kMostRooms) --kept;
  std::erase_if(ranks, [&](size_t rank) { return replicas[rank] > kept; });
  ranks.resize(std::min(ranks.size(), kMostRooms));
  return ranks;
}

// The ranks of each pipeline stage; without a pipeline, all ranks are in one block.
std::vector<std::vector<size_t>> blocks_of(const MeshTable& mesh, const std::vector<size_t>& ranks) {
  std::map<int, std::vector<size_t>> blocks;
  for (const size_t rank : ranks) blocks[mesh.coordinate(rank, Axis::kPp)].push_back(rank);
  std::vector<std::vector<size_t>> out;
  for (auto& [stage, members] : blocks) out.push_back(std::move(members));
  return out;
}

struct Arrangement {
  int across = 1, down = 1;  // ranks in a block
  int in_line = 1;           // blocks next to each other
  int columns = 1, rows = 1;
};

Arrangement arrange(int blocks, int largest, int gpus_per_node) {
  Arrangement best;
  double least = INFINITY;
  for (int lines = 1; lines <= blocks; ++lines) {
    for (int across = 1; across <= largest; ++across) {
      Arrangement one{.across = across, .down = (largest + across - 1) / across};
      one.in_line = (blocks + lines - 1) / lines;
      one.columns = one.in_line * across;
      one.rows = lines * one.down;
      const double cells = static_cast<double>(one.columns) * one.rows;
      const double empty = 1 - static_cast<double>(blocks) * largest / cells;
      const bool splits_nodes = gpus_per_node > 0 && across % gpus_per_node != 0 && gpus_per_node % across != 0;
      const double cost = std::abs(std::log(static_cast<double>(one.columns) / one.rows / kWidthPerHeight)) +
                          3 * empty + 0.35 * (lines - 1) + (splits_nodes ? 1 : 0);
      if (cost >= least - 1e-9) continue;
      least = cost;
      best = one;
    }
  }
  return best;
}

// The part of its cell that a room fills; with fewer cells, more of each cell stays empty.
double share_of_cell(int cells) { return cells <= 2 ? 0.66 : cells <= 4 ? 0.72 : cells <= 8 ? 0.76 : 0.82; }

// The positions of a picture's cells: a regular grid, with more space between pipeline stages that have several
// columns.
class Grid {
 public:
  explicit Grid(const Arrangement& plan) : plan_(plan) {
    const int between = plan.across > 1 ? plan.in_line - 1 : 0;
    cell_x_ = 1 / (plan.columns + kBetweenStages * between);
    cell_y_ = 1.0 / plan.rows;
    width_ = cell_x_ * share_of_cell(plan.columns);
    height_ = cell_y_ * share_of_cell(plan.rows);
  }

  double gap_x() const { return cell_x_ - width_; }
  double gap_y() const { return cell_y_ - height_; }
  // `block`: counted from the left.
  StageBox box(int block, int column, int row) const {
    const double before = plan_.across > 1 ? kBetweenStages * block : 0;
    const double x = (block * plan_.across + column + before + 0.5) * cell_x_, y = (row + 0.5) * cell_y_;
    return {x - width_ / 2, y - height_ / 2, x + width_ / 2, y + height_ / 2};
  }

 private:
  static constexpr double kBetweenStages = 0.3;  // cells
  Arrangement plan_;
  double cell_x_ = 1, cell_y_ = 1, width_ = 1, height_ = 1;
};

bool overlap(const StageBox& a, const StageBox& b) { return a.x0 < b.x1 && b.x0 < a.x1 && a.y0 < b.y1 && b.y0 < a.y1; }

// Draws a frame for each node, unless a room of another node would be inside it.
void frame_nodes(StageScript& script) {
  std::map<int, StageBox> frames;
  for (const StageRoom& room : script.rooms) {
    if (room.node < 0) return;
    const auto [at, is_new] = frames.try_emplace(room.node, room.box);
    StageBox& frame = at->second;
    if (!is_new)
      frame = {std::min(frame.x0, room.box.x0), std::min(frame.y0, room.box.y0), std::max(frame.x1, room.box.x1),
               std::max(frame.y1, room.box.y1)};
  }
  const double x = script.gap_x * 0.42, y = script.gap_y * 0.42;
  for (const auto& [node, around] : frames) {
    const int number = node;  // because a lambda cannot capture a structured binding
    const StageBox frame = around;
    const bool mixed = std::any_of(script.rooms.begin(), script.rooms.end(), [&](const StageRoom& room) {
      return room.node != number && overlap(room.box, frame);
    });
    if (!mixed) script.nodes.push_back({number, {frame.x0 - x, frame.y0 - y, frame.x1 + x, frame.y1 + y}});
  }
}

struct Way {
  double from_x, from_y, to_x, to_y;  // centres of the rooms
  double width, height;               // of rooms
  double gap_x, gap_y;                // between rooms
  double dx() const { return to_x - from_x; }
  double dy() const { return to_y - from_y; }
};

// A curve along a row. Between neighbours it is straight from side to side, with the two directions next to each other.
// Otherwise it is an arc in the gap above the row, or below the row in the lower half of the picture.
void along_row(const Way& way, int columns, StagePath& path) {
  const double side = way.dx() > 0 ? 1 : -1, pitch = way.width + way.gap_x;
  if (std::abs(way.dx()) < 1.6 * pitch) {
    path.x0 = way.from_x + side * way.width / 2;
    path.x1 = way.to_x - side * way.width / 2;
    path.y0 = path.y1 = path.control_y = way.from_y - side * way.height * 0.14;
    path.control_x = (path.x0 + path.x1) / 2;
    return;
  }
  const double up = way.from_y < 0.5 ? -1 : 1;
  path.x0 = way.from_x + side * way.width * 0.22;
  path.x1 = way.to_x - side * way.width * 0.22;
  path.y0 = path.y1 = way.from_y + up * way.height / 2;
  path.control_x = (path.x0 + path.x1) / 2;
  const double far = std::abs(way.dx()) / (pitch * columns);
  path.control_y = path.y0 + up * way.gap_y * (0.3 + 0.32 * far + (side > 0 ? 0.1 : 0));
}

void along_column(const Way& way, int rows, StagePath& path) {
  const double side = way.dy() > 0 ? 1 : -1, pitch = way.height + way.gap_y;
  if (std::abs(way.dy()) < 1.5 * pitch) {
    path.y0 = way.from_y + side * way.height / 2;
    path.y1 = way.to_y - side * way.height / 2;
    path.x0 = path.x1 = path.control_x = way.from_x + side * way.width * 0.14;
    path.control_y = (path.y0 + path.y1) / 2;
    return;
  }
  const double left = way.from_x < 0.5 ? -1 : 1;
  path.y0 = way.from_y + side * way.height * 0.22;
  path.y1 = way.to_y - side * way.height * 0.22;
  path.x0 = path.x1 = way.from_x + left * way.width / 2;
  path.control_y = (path.y0 + path.y1) / 2;
  const double far = std::abs(way.dy()) / (pitch * rows);
  path.control_x = path.x0 + left * way.gap_x * (0.3 + 0.32 * far + (side > 0 ? 0.1 : 0));
}

// A curve between rows: between the borders that face each other, at a place that depends on the position of the other
// room.
void across(const Way& way, StagePath& path) {
  const double side = way.dy() > 0 ? 1 : -1, lean = std::clamp(way.dx(), -0.5, 0.5) * 0.7 * way.width;
  path.x0 = way.from_x + lean;
  path.x1 = way.to_x - lean;
  path.y0 = way.from_y + side * way.height / 2;
  path.y1 = way.to_y - side * way.height / 2;
  // The curves of the two directions bend to different sides.
  path.control_x = (path.x0 + path.x1) / 2 - 0.06 * way.dy();
  path.control_y = (path.y0 + path.y1) / 2 + 0.06 * way.dx();
}

}  // namespace

void place_rooms(const TraceStore& store, StageScript& script) {
  const MeshTable mesh = mesh_table(store);
  if (mesh.ranks.empty()) return;
  const std::vector<size_t> ranks = shown_ranks(mesh);
  script.folded_ranks = mesh.ranks.size() - ranks.size();
  const std::vector<std::vector<size_t>> blocks = blocks_of(mesh, ranks);
  size_t largest = 1;
  for (const std::vector<size_t>& block : blocks) largest = std::max(largest, block.size());
  const int per_node = store.gpus_per_node();
  const Arrangement plan = arrange(static_cast<int>(blocks.size()), static_cast<int>(largest), per_node);
  const Grid grid(plan);
  script.gap_x = grid.gap_x();
  script.gap_y = grid.gap_y();
  script.columns = plan.columns;
  script.rows = plan.rows;
  for (size_t b = 0; b < blocks.size(); ++b) {
    const int line = static_cast<int>(b) / plan.in_line, place = static_cast<int>(b) % plan.in_line;
    const int from_left = line % 2 == 0 ? place : plan.in_line - 1 - place;
    for (size_t i = 0; i < blocks[b].size(); ++i) {
      const RankRows& rank = store.rank(blocks[b][i]);
      StageRoom room;
      room.rank_index = blocks[b][i];
      room.global_rank = rank.global_rank;
      room.name = "r" + std::to_string(rank.global_rank);
      room.coordinates = rank.label.starts_with(room.name + " ") ? rank.label.substr(room.name.size() + 1) : "";
      room.node = per_node > 0 ? rank.global_rank / per_node : -1;
      room.box =
          grid.box(from_left, static_cast<int>(i) % plan.across, line * plan.down + static_cast<int>(i) / plan.across);
      script.rooms.push_back(std::move(room));
    }
  }
  std::sort(script.rooms.begin(), script.rooms.end(),
            [](const StageRoom& a, const StageRoom& b) { return a.global_rank < b.global_rank; });
  frame_nodes(script);
}

StagePath path_between(const StageScript& script, size_t from, size_t to) {
  const StageRoom &a = script.rooms[from], &b = script.rooms[to];
  const Way way{(a.box.x0 + a.box.x1) / 2,
                (a.box.y0 + a.box.y1) / 2,
                (b.box.x0 + b.box.x1) / 2,
                (b.box.y0 + b.box.y1) / 2,
                a.box.width(),
                a.box.height(),
                script.gap_x,
                script.gap_y};
  StagePath path{.from = static_cast<uint16_t>(from), .to = static_cast<uint16_t>(to)};
  path.between_nodes = a.node != b.node;
  if (std::abs(way.dy()) < way.height / 2)
    along_row(way, script.columns, path);
  else if (std::abs(way.dx()) < way.width / 2)
    along_column(way, script.rows, path);
  else
    across(way, path);
  return path;
}

}  // namespace ranklab::viz
