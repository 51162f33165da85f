// Prepares what `ranklab model info --out` draws (viz/model/svg/model_drawing.h). Thread rule: main thread.
#pragma once
#include <string>
#include <vector>

#include "cli/model/weight_histograms.h"
#include "core/config/train_config.h"
#include "core/sim/category_bytes.h"
#include "viz/model/svg/model_drawing.h"

namespace ranklab {

struct ModelPictureParts {
  std::string title = {};
  std::vector<std::string> facts = {};
  std::string rank = {};  // the rank whose memory is shown
  bool roofline = false;
  const std::vector<WeightGroup>* weights = nullptr;  // null: no histograms
};

viz::ModelPicture model_picture(const RunPlan& plan, const CategoryBytes& memory, const ModelPictureParts& parts);

}  // namespace ranklab
