// Training curves over steps: raw, with the range over ranks, optionally smoothed, together with those of a second
// trace. Thread rule: the window's thread.
#pragma once
#include <set>
#include <string>
#include <vector>

#include "viz/model/curves.h"
#include "viz/panels/panel.h"
#include "viz/panels/parts/cached.h"
#include "viz/panels/parts/workspace.h"

namespace ranklab::viz {

class CurvesPanel final : public Panel {
 public:
  void draw(Workspace& workspace) override;
  std::string nothing_to_show(Workspace& workspace) override;

 private:
  // A curve as arrays, as plots need it.
  struct Series {
    std::string name, unit, source;
    std::vector<double> step, value, low, high, smooth;
    std::vector<double> bad_steps;  // steps where a value is not finite, or where the run failed
    double last_step = 0;           // on the axis: also where the run failed
  };
  using Key = std::pair<ContentKey, float>;
  const std::vector<Series>& series(Workspace& workspace);
  void setup_axes(const Series& series);
  void plot(Workspace& workspace, const Series& series);

  Cached<Key, std::vector<Series>> series_;
  std::set<std::string> hidden_;
  uint64_t hidden_for_ = 0;  // the loaded trace for which hidden_ was chosen
  float smoothing_ = 0;
  bool logarithmic_ = false;
};

}  // namespace ranklab::viz
