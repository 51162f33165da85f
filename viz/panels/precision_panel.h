// The effect of quantization on the tensors of a step: a table of all of them; for the selected one its magnitudes
// compared with the ranges of the formats, its curves over the sampled steps, the scales of its groups; underflow by
// layer and step; and an estimate for another format or scale. The numbers come from viz/model/tables/precision_table.h
// and requantize.h. Thread rule: the window's thread.
#pragma once
#include <imgui.h>

#include <string>
#include <utility>
#include <vector>

#include "viz/model/tables/precision_table.h"
#include "viz/model/tables/requantize.h"
#include "viz/panels/panel.h"
#include "viz/panels/parts/cached.h"
#include "viz/panels/parts/precision_plots.h"
#include "viz/panels/parts/workspace.h"

namespace ranklab::viz {

class PrecisionPanel final : public Panel {
 public:
  void draw(Workspace& workspace) override;
  std::string nothing_to_show(Workspace& workspace) override;

  // The tensor that the plots show, and its sample at the cursor's step; null if there is none.
  const TensorSeries* series(Workspace& workspace);
  const TensorSample* shown(Workspace& workspace);
  // The format and scale chosen for the estimate.
  const FormatRange& tried_format(const TensorSample& sample) const;
  ScaleChoice tried_scale() const { return scale_; }
  int chosen_group() const { return group_; }

 private:
  enum class Plot : uint8_t { kMagnitudes, kCurves, kScales, kLayers };
  enum class Roles : uint8_t { kAll, kActivation, kWeight, kGradient };

  const PrecisionTable& table(Workspace& workspace);
  void choose(const TensorSeries& series);
  void controls(Workspace& workspace, const PrecisionTable& all);
  void tensors(Workspace& workspace, const PrecisionTable& all);
  void tensor_row(const TensorSeries& series, const TensorSample& sample);
  void details(Workspace& workspace, const PrecisionTable& all, const TensorSeries& series, const TensorSample& sample);
  void plot(Workspace& workspace, const PrecisionTable& all, const TensorSeries& series, const TensorSample& sample,
            Plot which, ImVec2 size);
  void requantize_line(const TensorSample& sample);

  Cached<std::pair<ContentKey, int>, PrecisionTable> table_;
  Roles roles_ = Roles::kAll;
  int rank_ = -1;       // rank index; -1: all ranks together
  std::string module_;  // module of the tensor in the plots
  TensorRole role_ = TensorRole::kActivation;
  int format_ = -1;  // index into format_ranges(); -1: the run's
  ScaleChoice scale_ = ScaleChoice::kAmax;
  Plot plot_ = Plot::kMagnitudes;  // the only one shown if space is scarce
  PrecisionCurve curve_ = PrecisionCurve::kLosses;
  int group_ = -1;  // the one selected in the heatmap of scales
  int sort_column_ = -1;
  bool ascending_ = false;
};

}  // namespace ranklab::viz
