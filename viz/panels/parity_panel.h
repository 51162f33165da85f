// The result of `ranklab parity`: one row per tensor in causal order, one column per rank, coloured by the distance
// from the reference relative to the allowed distance. Layers open and close; a click on a cell shows its numbers.
// Thread rule: the window's thread.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <imgui.h>

#include "viz/model/parity/parity_map.h"
#include "viz/panels/panel.h"
#include "viz/panels/parts/workspace.h"

namespace ranklab::viz {

class ParityPanel final : public Panel {
 public:
  void draw(Workspace& workspace) override;
  std::string nothing_to_show(Workspace& workspace) override;
  bool scrolls_itself() const override { return true; }

  // For tests: the chosen cell, the number of lines, and where a cell was last drawn (in the tensor's row, or in its
  // layer's row if the layer is closed).
  std::optional<ParityPlace> chosen() const { return chosen_; }
  size_t lines() const { return lines_.size(); }
  std::optional<ImVec2> middle_of(ParityPlace place) const;

 private:
  struct Line {
    enum class Kind : uint8_t { kPhase, kUnit, kTensor };
    Kind kind;
    size_t begin, end;  // rows of the map
    size_t unit = 0;
  };
  void take(const std::shared_ptr<const ParityMap>& map);
  void list_lines(const ParityMap& map);
  void controls(const ParityMap& map);
  void heads(const ParityMap& map);
  void grid(const ParityMap& map);
  void draw_line(const ParityMap& map, const Line& line, ImVec2 at);
  void draw_cell(const ParityMap& map, size_t row, size_t rank, ImVec2 at) const;
  void click(const ParityMap& map, const Line& line, float x);
  void about(const ParityMap& map) const;
  bool narrow() const;

  std::shared_ptr<const ParityMap> map_;
  std::vector<ParityUnit> units_;
  std::vector<bool> open_;  // per unit
  std::vector<Line> lines_;
  std::optional<size_t> first_wrong_;
  std::optional<ParityPlace> chosen_;
  bool only_wrong_ = false, show_first_ = false;
  // Sizes in this frame.
  float label_width_ = 0, cell_width_ = 0, line_height_ = 0;
  ImVec2 corner_;
};

}  // namespace ranklab::viz
