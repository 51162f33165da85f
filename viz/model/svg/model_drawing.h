// `ranklab model info` as a drawing: a model's parameters and FLOPs by module, the memory of a rank, its roofline, and
// the distribution of its weights. Thread rule: pure.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "core/base/vocabulary.h"
#include "viz/model/svg/drawing.h"
#include "viz/model/svg/roofline_drawing.h"

namespace ranklab::viz {

struct ModelPicture {
  struct Module {
    std::string name = {};
    double parameters = 0, active = 0, flops = 0;  // `active`: the parameters that are used for one token
    std::string parameters_text = {}, flops_text = {};
  };
  struct Memory {
    MemoryCategory category = MemoryCategory::kCount;
    double bytes = 0;
  };
  struct Histogram {
    std::string name = {}, facts = {};
    std::vector<double> counts = {};  // per bin of ValueHistogram
    bool constant = false;            // all elements are equal, which `facts` says; no histogram is drawn
  };
  std::string title = {};
  std::vector<std::string> facts = {};
  std::vector<Module> modules = {};
  std::string rank = {};  // the rank whose memory is shown
  std::vector<Memory> memory = {};
  std::optional<RooflinePicture> roofline = {};
  std::vector<Histogram> histograms = {};
};

Drawing model_drawing(const ModelPicture& picture);

}  // namespace ranklab::viz
