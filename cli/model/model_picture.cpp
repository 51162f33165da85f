#include "cli/model/model_picture.h"

#include "cli/model/roofline.h"
#include "cli/model/roofline_text.h"
#include "core/base/text.h"
#include "core/spec/module_table.h"

namespace ranklab {
namespace {

std::vector<viz::ModelPicture::Module> modules_of(const ModelConfig& model) {
  std::vector<viz::ModelPicture::Module> modules;
  for (const ModuleRow& row : module_table(model)) {
    const auto parameters = static_cast<double>(row.parameters());
    const double flops = row.forward_flops_per_token();
    // Layers of two kinds may each have a row with the same name, so the names get the numbers of layers.
    const std::string name =
        row.layers > 1 ? strprintf("%s x %ld", row.parameter.c_str(), static_cast<long>(row.layers)) : row.parameter;
    modules.push_back({.name = name,
                       .parameters = parameters,
                       .active = static_cast<double>(row.active_parameters()),
                       .flops = flops,
                       .parameters_text = row.tied ? "tied" : human_count(parameters),
                       .flops_text = flops > 0 ? human_count(flops) : ""});
  }
  return modules;
}

viz::RooflinePicture roofline_of(const RunPlan& plan) {
  viz::RooflinePicture picture;
  const DType dtype = plan.config.element_dtype();
  picture.title = strprintf(
      "roofline of %s in %s, length %ld: %.0f TFLOP/s, memory %.2f TB/s, which bounds below %.0f FLOP per byte",
      plan.profile.title.c_str(), std::string(name(dtype)).c_str(), static_cast<long>(plan.config.model.seq_length),
      plan.profile.peak_flops(dtype) * 1e-12, plan.profile.memory_bandwidth * 1e-12, roofline_knee(plan));
  picture.peak_flops = plan.profile.peak_flops(dtype);
  picture.bytes_per_s = plan.profile.memory_bandwidth;
  picture.sweep = "decoding of as many sequences";
  for (const RooflinePoint& point : roofline_points(plan)) {
    const bool decodes = point.load.phase == RooflinePhase::kDecode;
    picture.points.push_back(
        {.name = decodes ? std::to_string(point.load.sequences) : std::string(name(point.load.phase)),
         .intensity = point.intensity(),
         .flops = point.theoretical_flops / point.seconds(),
         .in_sweep = decodes});
  }
  picture.notes = {
      "As if one GPU did all of the model's work: points lie below the roof where products leave matrix "
      "units idle."};
  for (const std::string& line : spread_lines(plan)) picture.notes.push_back(line);
  return picture;
}

std::string facts_of(const ValueSpread& s) {
  const std::string text = strprintf("%.3g to %.3g, std %.3g, kurtosis %.3g, outliers %.2g", s.least, s.most, s.std(),
                                     s.kurtosis(), s.outlier_share());
  const uint64_t strange = s.nans + s.infinities;
  return strange == 0 ? text : strprintf("%llu not finite; ", static_cast<unsigned long long>(strange)) + text;
}

std::vector<viz::ModelPicture::Histogram> histograms_of(const std::vector<WeightGroup>& groups) {
  std::vector<viz::ModelPicture::Histogram> histograms;
  for (const WeightGroup& group : groups) {
    const ValueSpread& s = group.spread;
    const bool constant = s.least == s.most && s.nans + s.infinities == 0;
    histograms.push_back({.name = group.parameter,
                          .facts = constant ? strprintf("all %g", s.least) : facts_of(s),
                          .counts = s.counts(),
                          .constant = constant});
  }
  return histograms;
}

}  // namespace

viz::ModelPicture model_picture(const RunPlan& plan, const CategoryBytes& memory, const ModelPictureParts& parts) {
  viz::ModelPicture picture{.title = parts.title, .facts = parts.facts, .modules = modules_of(plan.config.model)};
  picture.rank = parts.rank;
  for (size_t c = 0; c < memory.size(); ++c)
    if (memory[c] > 0)
      picture.memory.push_back({.category = static_cast<MemoryCategory>(c), .bytes = static_cast<double>(memory[c])});
  if (parts.roofline) picture.roofline = roofline_of(plan);
  if (parts.weights != nullptr) picture.histograms = histograms_of(*parts.weights);
  return picture;
}

}  // namespace ranklab
