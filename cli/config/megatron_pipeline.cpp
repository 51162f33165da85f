#include "cli/config/megatron_pipeline.h"

#include <string>
#include <utility>

#include "core/base/text.h"
#include "core/pipeline/stage_layout.h"
#include "core/spec/megatron_sizes.h"

namespace ranklab {
namespace {

constexpr const char* kLayout = "--pipeline-model-parallel-layout";
constexpr const char* kPattern = "--hybrid-layer-pattern";
constexpr const char* kVirtualStages = "--num-virtual-stages-per-pipeline-rank";

class PipelineReader {
 public:
  PipelineReader(const MegatronWords& words, const MegatronLayers& layers, const char* usual)
      : words_(words), of_model_(layers.count), of_pattern_(layers.stages), usual_(usual) {}

  std::vector<ConfigSetting> read(int64_t pp) {
    stages(pp);
    return std::move(settings_);
  }

 private:
  void set(const char* key, const std::string& value) { set(key, value, usual_); }
  void set(const char* key, const std::string& value, const char* flag) { settings_.push_back({key, value, flag}); }
  void set(const char* key, int64_t value, const char* flag) { set(key, std::to_string(value), flag); }

  void stages(int64_t pp) {
    const auto layout = words_.text(kLayout, "");
    if (layout && !of_pattern_.empty())
      refuse_megatron(std::string(kLayout) + " and " + kPattern + " both split the layers", *layout, "one",
                      "leave one out");
    if (layout) return stages_given(pp, kLayout, *layout, parse_stage_layout(*layout).layers.size());
    if (!of_pattern_.empty()) return stages_given(pp, kPattern, join(of_pattern_, ","), of_pattern_.size());
    const StageEnds ends{.first = words_.number("--decoder-first-pipeline-num-layers", kMostMegatronSize),
                         .last = words_.number("--decoder-last-pipeline-num-layers", kMostMegatronSize),
                         .embedding = words_.has("--account-for-embedding-in-pipeline-split"),
                         .loss = words_.has("--account-for-loss-in-pipeline-split")};
    const int64_t vpp = virtual_stages(pp, ends);
    set("parallel.pipeline_schedule", vpp > 1 ? "interleaved-1f1b" : "1f1b");
    if (ends.alike()) return set("parallel.pipeline_layout", "even");
    const auto layers = megatron_stage_layers(of_model_, pp, vpp, ends);
    if (!layers)
      refuse_megatron(
          "the layers cannot be split evenly into the pipeline's stages",
          strprintf("%lld layers, pp %lld, vpp %lld", static_cast<long long>(of_model_), static_cast<long long>(pp),
                    static_cast<long long>(vpp)),
          "as many in each stage, but for what the first and the last have by --decoder-first-, "
          "--decoder-last-pipeline-num-layers, --account-for-embedding- and --account-for-loss-in-pipeline-split",
          "change these, or write --pipeline-model-parallel-layout");
    set("parallel.pipeline_layout", join(*layers, ","),
        ends.first || ends.last ? "--decoder-first-, --decoder-last-pipeline-num-layers"
                                : "--account-for-embedding-, --account-for-loss-in-pipeline-split");
  }

  // Stages given by a layout ("Et*3|(tt|)*29m|L") or by a hybrid model's pattern, which also say how many stages a rank
  // has.
  void stages_given(int64_t pp, const std::string& flag, const std::string& layout, size_t count) {
    for (const char* other : {"--decoder-first-pipeline-num-layers", "--decoder-last-pipeline-num-layers",
                              "--account-for-embedding-in-pipeline-split", "--account-for-loss-in-pipeline-split",
                              "--num-layers-per-virtual-pipeline-stage"})
      if (words_.has(other))
        refuse_megatron(flag + " and " + other + " both split the layers", layout, "one", "leave one out");
    const auto stages = static_cast<int64_t>(count);
    const int64_t vpp = stages / pp, asked = stages_of_rank(vpp);
    if (stages % pp != 0 || asked != vpp)
      refuse_megatron(flag + " has stages that cannot be split evenly over the ranks",
                      strprintf("%lld stages, pp %lld", static_cast<long long>(stages), static_cast<long long>(pp)),
                      words_.has(kVirtualStages) ? strprintf("%lld stages", static_cast<long long>(pp * asked))
                                                 : "a multiple of pp",
                      "change the layout");
    set("parallel.vpp", vpp, flag.c_str());
    set("parallel.pipeline_schedule", vpp > 1 ? "interleaved-1f1b" : "1f1b");
    set("parallel.pipeline_layout", layout, flag.c_str());
  }

  int64_t stages_of_rank(int64_t other) const {
    return words_.number(kVirtualStages, kMostMegatronSize).value_or(other);
  }

  int64_t virtual_stages(int64_t pp, const StageEnds& ends) {
    const char* by_layers = "--num-layers-per-virtual-pipeline-stage";
    const auto chunk = words_.number(by_layers, kMostMegatronSize);
    if (!chunk) {
      const int64_t asked = stages_of_rank(1);
      if (asked > 1) set("parallel.vpp", asked, kVirtualStages);
      return asked;
    }
    const int64_t layers = of_model_ + (ends.embedding ? 1 : 0) + (ends.loss ? 1 : 0);
    if (*chunk == 0 || layers % (pp * *chunk) != 0)
      refuse_megatron("the layers of a rank are not a whole number of stages",
                      strprintf("%lld layers, pp %lld, %lld a stage", static_cast<long long>(layers),
                                static_cast<long long>(pp), static_cast<long long>(*chunk)),
                      "a stage that divides --num-layers / pp", std::string("change ") + by_layers);
    const int64_t vpp = layers / pp / *chunk;
    set("parallel.vpp", vpp, by_layers);
    return vpp;
  }

  const MegatronWords& words_;
  int64_t of_model_;
  std::vector<int64_t> of_pattern_;
  const char* usual_;
  std::vector<ConfigSetting> settings_;
};

}  // namespace

std::vector<ConfigSetting> read_megatron_pipeline(const MegatronWords& words, const MegatronLayers& layers, int64_t pp,
                                                  const char* usual) {
  if (pp == 1) return {};
  return PipelineReader(words, layers, usual).read(pp);
}

}  // namespace ranklab
