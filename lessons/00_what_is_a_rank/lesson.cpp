// Lesson 0: coordinates and groups of a 2 x 2 x 2 mesh, compared with DeviceMesh.

#include <algorithm>
#include <map>

#include "core/base/text.h"
#include "core/sim/aten.h"
#include "lessons/00_what_is_a_rank/exercise.h"
#include "lessons/lesson.h"
#include "lessons/picture.h"
#include "lessons/rank_run.h"

namespace ranklab::lesson {
namespace {

constexpr int kAskedRank = 5;

ParallelDims dims_of(const MeshSize& size) {
  return {.world = size.tp * size.cp * size.dp * size.pp, .tp = size.tp, .cp = size.cp, .pp = size.pp};
}

constexpr MeshSize kCube = {.tp = 2, .cp = 1, .dp = 2, .pp = 2};
constexpr int kCubeRanks = 8;
// Meshes checked in full: sizes that are not powers of two, and each axis alone.
constexpr MeshSize kFurther[] = {{3, 2, 2, 2}, {2, 4, 3, 2}, {8, 1, 1, 1}, {1, 8, 1, 1}, {1, 1, 8, 1}, {1, 1, 1, 8}};

std::string text_of(const Coordinates& c) { return strprintf("tp %d, dp %d, pp %d", c.tp, c.dp, c.pp); }

bool equal(const Coordinates& a, const Coordinates& b) {
  return a.tp == b.tp && a.cp == b.cp && a.dp == b.dp && a.pp == b.pp;
}

Coordinates twin(const DeviceMesh& mesh, int rank) {
  return {mesh.coordinate(Axis::kTp, rank), mesh.coordinate(Axis::kCp, rank), mesh.coordinate(Axis::kDp, rank),
          mesh.coordinate(Axis::kPp, rank)};
}

int& on_axis(Coordinates& place, Axis axis) {
  return axis == Axis::kTp ? place.tp : axis == Axis::kCp ? place.cp : axis == Axis::kDp ? place.dp : place.pp;
}

std::string members(const std::vector<int>& ranks) { return "[" + join(std::span<const int>(ranks), " ") + "]"; }

std::string groups_text(const DeviceMesh& mesh, Axis axis) {
  std::string text;
  for (const Group& group : mesh.groups(axis)) text += members(group.global_ranks);
  return text;
}

// Ranks whose coordinates agree except on `axis` form a group.
std::string groups_text(const std::vector<Coordinates>& places, Axis axis) {
  std::map<std::string, std::vector<int>> groups;  // keyed by first member
  for (int rank = 0; rank < static_cast<int>(places.size()); ++rank) {
    Coordinates others = places[static_cast<size_t>(rank)];
    on_axis(others, axis) = 0;
    groups[text_of(others) + std::to_string(others.cp)].push_back(rank);
  }
  std::map<int, std::string> ordered;
  for (const auto& [key, ranks] : groups) ordered[ranks.front()] = members(ranks);
  std::string text;
  for (const auto& [rank, group] : ordered) text += group;
  return text;
}

// Draws one pipeline stage: tp to the right, dp downwards.
Cells plane(const Screen& screen, const DeviceMesh& mesh, int pp) {
  const auto rank_at = [&](int tp, int dp) { return tp + 2 * dp + 4 * pp; };
  const auto box = [&](int tp, int dp) { return screen.paint(Ink::kBold, strprintf("rank %d", rank_at(tp, dp))); };
  return {strprintf("             pp %d", mesh.coordinate(Axis::kPp, rank_at(0, 0))),
          "       tp 0        tp 1",
          "dp 0  " + box(0, 0) + " ──tp── " + box(1, 0),
          "        │             │",
          "        dp            dp",
          "        │             │",
          "dp 1  " + box(0, 1) + " ──tp── " + box(1, 1)};
}

// The ranks at each place of the cube: one row for each pp and dp.
Cells places_picture(const Screen& screen, const std::string& title, const std::vector<Coordinates>& places) {
  const auto ranks_at = [&](const Coordinates& where) {
    std::vector<int> ranks;
    for (size_t rank = 0; rank < places.size(); ++rank)
      if (equal(places[rank], where)) ranks.push_back(static_cast<int>(rank));
    const std::string text = ranks.empty() ? "·" : join(std::span<const int>(ranks), " ");
    return screen.paint(ranks.size() == 1 ? Ink::kBold : Ink::kRed, text);
  };
  constexpr int kCell = 15;  // enough for all eight ranks at one place
  Cells lines = {title, "            " + padded("tp 0", kCell) + "  tp 1"};
  int placed = 0;
  for (const int pp : {0, 1}) {
    for (const int dp : {0, 1}) {
      lines.push_back(strprintf("pp %d, dp %d  ", pp, dp) + padded(ranks_at({0, 0, dp, pp}), kCell) + "  " +
                      ranks_at({1, 0, dp, pp}));
    }
  }
  for (const Coordinates& c : places)
    placed += c.cp == 0 && std::min({c.tp, c.dp, c.pp}) >= 0 && std::max({c.tp, c.dp, c.pp}) <= 1 ? 1 : 0;
  if (placed < kCubeRanks) lines.push_back(strprintf("outside the mesh: %d ranks", kCubeRanks - placed));
  return lines;
}

class WhatIsARank final : public Lesson {
 public:
  std::vector<Figure> figures() const override {
    const DeviceMesh mesh(dims_of(kCube));
    const auto groups = mesh.groups(Axis::kDp);
    const auto sums = group_sums();
    const auto sum_of = [&](size_t axis) { return std::to_string(sums[kAskedRank][axis]); };
    return {{"groups per axis", std::to_string(groups.size())},
            {"ranks per group", std::to_string(groups[0].size())},
            {"dp partner of rank 5", std::to_string(partner(mesh))},
            {"sum over rank 5's tp group", sum_of(0)},
            {"sum over rank 5's dp group", sum_of(1)},
            {"sum over rank 5's pp group", sum_of(2)}};
  }

  Question question() const override {
    return {.text =
                "8 ranks, tp 2 x dp 2 x pp 2, order tp-cp-ep-dp-pp. Which rank is the data-parallel partner of "
                "rank 5?",
            .unit = ""};
  }

  double run(Screen& screen) const override {
    const DeviceMesh mesh(dims_of(kCube));
    screen.heading("The mesh: 8 ranks, tp 2 x dp 2 x pp 2");
    screen.side_by_side({plane(screen, mesh, 0), plane(screen, mesh, 1)}, 8);
    screen.line();
    screen.paragraph(
        "A line is a group of two. Along pp, each rank of the left plane talks to the one at the same place "
        "in the right plane: 0 and 4, 1 and 5, 2 and 6, 3 and 7.");
    screen.heading("8 rank threads, each adding up the numbers of its groups with real all-reduces");
    const auto sums = group_sums();
    std::vector<Cells> rows = {{"rank", "tp", "dp", "pp", "tp group", "sum", "dp group", "sum", "pp group", "sum"}};
    for (int rank = 0; rank < mesh.world_size(); ++rank) {
      const Coordinates c = twin(mesh, rank);
      Cells row = {std::to_string(rank), std::to_string(c.tp), std::to_string(c.dp), std::to_string(c.pp)};
      for (size_t i = 0; i < 3; ++i) {
        row.push_back(members(mesh.group(kAxes[i], rank).global_ranks));
        row.push_back(std::to_string(sums[static_cast<size_t>(rank)][i]));
      }
      rows.push_back(row);
    }
    screen.table(rows);
    screen.line();
    screen.paragraph("Members of one group got the same sum: they did talk to each other, and to nobody else.");
    return partner(mesh);
  }

  std::vector<CheckRow> check(const ExerciseLibrary& exercise, Picture& picture) const override {
    auto* const coord_of = exercise.function<decltype(coord)>("coord");
    const DeviceMesh mesh(dims_of(kCube));
    std::vector<CheckRow> rows;
    std::vector<Coordinates> places, twins;
    for (int rank = 0; rank < mesh.world_size(); ++rank) {
      Coordinates got{};
      coord_of(rank, kCube, got);
      places.push_back(got);
      const Coordinates want = twins.emplace_back(twin(mesh, rank));
      rows.push_back({strprintf("rank %d", rank), text_of(want), text_of(got), "exact", equal(got, want)});
    }
    for (const Axis axis : kAxes) {
      const std::string want = groups_text(mesh, axis), got = groups_text(places, axis);
      rows.push_back({std::string(name(axis)) + " groups", want, got, "exact", got == want});
    }
    rows.push_back(further_meshes(coord_of));
    picture.side_by_side({places_picture(picture, "yours: which ranks are where", places),
                          places_picture(picture, "right: one rank at each place", twins)});
    return rows;
  }

 private:
  static constexpr Axis kAxes[] = {Axis::kTp, Axis::kDp, Axis::kPp};

  static int partner(const DeviceMesh& mesh) {
    const Group group = mesh.group(Axis::kDp, kAskedRank);
    return group.global_ranks[static_cast<size_t>(1 - group.group_rank)];
  }

  // sums[rank][axis]: the sum of the global ranks of the group's members.
  static std::vector<std::vector<int>> group_sums() {
    std::vector<std::vector<int>> sums(8, std::vector<int>(3));
    run_ranks({.dims = dims_of(kCube)}, [&](RankContext& context) {
      const int rank = context.global_rank();
      for (size_t i = 0; i < 3; ++i) {
        const at::Tensor sum = context.comm(kAxes[i]).all_reduce(at::full({1}, rank, at::kDouble));
        sums[static_cast<size_t>(rank)][i] = static_cast<int>(sum.item<double>());
      }
    });
    return sums;
  }

  static CheckRow further_meshes(decltype(coord)* coord_of) {
    int right = 0, all = 0;
    std::string first_wrong;
    for (const MeshSize& size : kFurther) {
      const DeviceMesh mesh(dims_of(size));
      for (int rank = 0; rank < mesh.world_size(); ++rank, ++all) {
        Coordinates got{};
        coord_of(rank, size, got);
        if (equal(got, twin(mesh, rank))) {
          ++right;
        } else if (first_wrong.empty()) {
          first_wrong =
              strprintf("; first: rank %d of tp %d, cp %d, dp %d, pp %d", rank, size.tp, size.cp, size.dp, size.pp);
        }
      }
    }
    return {"6 further meshes", strprintf("%d ranks right", all), strprintf("%d", right) + first_wrong, "exact",
            right == all};
  }
};

}  // namespace

LessonPtr make_what_is_a_rank() { return std::make_unique<WhatIsARank>(); }

}  // namespace ranklab::lesson
