// What `ranklab parity` found: tensors in causal order down, ranks across, coloured by their distance from the
// reference in units of what is allowed. Layers open and close; a cell tells its numbers. Thread rule: the window's
// thread.
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

  // For tests: the chosen cell, how many lines there are, and where a cell was drawn last (of the tensor's row, or of
  // its layer's where that is closed).
  std::optional<ParityPlace> chosen() const { return chosen_; }
  size_t lines() const { return lines_.size(); }
  std::optional<ImVec2> middle_of(ParityPlace place) const;

 private:
  struct Line {
    enum class Kind : uint8_t { kPhase, kUnit, kTensor };
    Kind kind;
    size_t begin, end;  // of the map's rows
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
  std::vector<bool> open_;  // by unit
  std::vector<Line> lines_;
  std::optional<size_t> first_wrong_;
  std::optional<ParityPlace> chosen_;
  bool only_wrong_ = false, show_first_ = false;
  // Measures of this frame.
  float label_width_ = 0, cell_width_ = 0, line_height_ = 0;
  ImVec2 corner_;
};

}  // namespace ranklab::viz
