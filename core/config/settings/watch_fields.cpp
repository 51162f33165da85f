// Settings of monitoring.
#include "core/config/settings/field_makers.h"

namespace ranklab::fields {

void add_sentinels(std::vector<ConfigField>& rows) {
  const std::string g = "Sentinels";
  rows.push_back(choice(g, "sentinel.mode", {"--sentinel-mode"},
                        "numbers that are measured and held to bounds (ranklab list sentinels)",
                        {"off", "minimal", "standard", "debug"}, RANKLAB_FIELD(sentinels.mode)));
  rows.push_back(text(g, "sentinel.rules", {"--sentinel"},
                      "other bounds and actions, as in 'loss_spike warn=3 stop=10 action=checkpoint; norm_rms off'",
                      RANKLAB_FIELD(sentinels.rules)));
  rows.push_back(number(g, "sentinel.interval", {"--sentinel-interval"},
                        "steps between looks at tensors (0: 10, in debug 1)", RANKLAB_FIELD(sentinels.interval),
                        count(0)));
  rows.push_back(number(g, "sentinel.probe_interval", {"--sentinel-probe-interval"},
                        "steps between forwards of one fixed sequence (0: 20, in debug 1)",
                        RANKLAB_FIELD(sentinels.probe_interval), count(0)));
  rows.push_back(number(g, "sentinel.drift_interval", {"--sentinel-drift-interval"},
                        "steps between comparisons of the replicas' weights (0: never)",
                        RANKLAB_FIELD(sentinels.drift_interval), count(0)));
  rows.push_back(number(g, "sentinel.histogram_interval", {"--sentinel-histogram-interval"},
                        "steps between histograms of gradients and weights, for --tensorboard-dir (0: none)",
                        RANKLAB_FIELD(sentinels.histogram_interval), count(0)));
  rows.push_back(number(g, "sentinel.parity_interval", {"--watch"},
                        "steps between comparisons of tensors that ranks must have alike, and of a layer with what one "
                        "rank computes (0: none); in any --sentinel-mode",
                        RANKLAB_FIELD(sentinels.parity_interval), count(0)));
}

void add_dump(std::vector<ConfigField>& rows) {
  const std::string g = "Output";
  rows.push_back(text(g, "dump.modules", {"--dump"},
                      "write inputs, outputs, gradients and weights of these modules ('layers.1.*'; patterns apart by "
                      "commas) in each rank's safetensors",
                      RANKLAB_FIELD(dump_modules)));
  rows.push_back(
      text(g, "dump.at", {"--at"},
           "when and where to dump: 'step=3', 'step=3..5 rank=0,4 microbatch=0 pass=forward' (default: the first step)",
           RANKLAB_FIELD(dump_at)));
}

void add_museum(std::vector<ConfigField>& rows) {
  rows.push_back(text("Museum", "museum.inject", {"--inject"},
                      "train wrongly on purpose: historical bugs (ranklab museum list), apart by commas",
                      RANKLAB_FIELD(inject)));
}

}  // namespace ranklab::fields
