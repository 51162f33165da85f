// Settings of monitoring.
#include "core/config/settings/field_makers.h"

namespace ranklab::fields {

void add_sentinels(FieldRows& rows) {
  rows.begin("Sentinels");
  rows.choice("sentinel.mode", {"--sentinel-mode"},
              "sentinels: metrics that are checked against bounds (ranklab list sentinels)",
              {"off", "minimal", "standard", "debug"}, RANKLAB_FIELD(sentinels.mode));
  rows.text("sentinel.rules", {"--sentinel"},
            "change bounds and actions, e.g. 'loss_spike warn=3 stop=10 action=checkpoint; norm_rms off'",
            RANKLAB_FIELD(sentinels.rules));
  rows.number("sentinel.interval", {"--sentinel-interval"}, "measure tensors every N steps (0: 10, in debug 1)",
              RANKLAB_FIELD(sentinels.interval), count(0));
  rows.number("sentinel.probe_interval", {"--sentinel-probe-interval"},
              "run the probe, one fixed sequence, every N steps (0: 20, in debug 1)",
              RANKLAB_FIELD(sentinels.probe_interval), count(0));
  rows.number("sentinel.drift_interval", {"--sentinel-drift-interval"},
              "compare the replicas' weights every N steps (0: never)", RANKLAB_FIELD(sentinels.drift_interval),
              count(0));
  rows.number("sentinel.histogram_interval", {"--sentinel-histogram-interval"},
              "write histograms of gradients and weights to --tensorboard-dir every N steps (0: never)",
              RANKLAB_FIELD(sentinels.histogram_interval), count(0));
  rows.number("sentinel.parity_interval", {"--watch"},
              "every N steps, check that copies of tensors are equal on all ranks, and one layer against a "
              "single-rank computation (0: never); works in any --sentinel-mode",
              RANKLAB_FIELD(sentinels.parity_interval), count(0));
}

void add_dump(FieldRows& rows) {
  rows.begin("Output");
  rows.text("dump.modules", {"--dump"},
            "write inputs, outputs, gradients and weights of these modules to one safetensors file per rank "
            "(comma-separated patterns, e.g. 'layers.1.*')",
            RANKLAB_FIELD(dump_modules));
  rows.text("dump.at", {"--at"},
            "what to dump, e.g. 'step=3' or 'step=3..5 rank=0,4 microbatch=0 pass=forward' (default: the first step)",
            RANKLAB_FIELD(dump_at));
}

void add_museum(FieldRows& rows) {
  rows.begin("Museum");
  rows.text("museum.inject", {"--inject"}, "inject historical bugs (ranklab museum list), comma-separated",
            RANKLAB_FIELD(inject));
}

}  // namespace ranklab::fields
