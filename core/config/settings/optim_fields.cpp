// Settings of the optimizers (core/optim/optimizer_list.h).
#include "core/base/named_rows.h"
#include "core/config/settings/field_makers.h"

namespace ranklab::fields {
namespace {

void add_muon(FieldRows& rows) {
  rows.number("optim.muon_momentum", {"--muon-momentum"}, "Muon's momentum", RANKLAB_FIELD(muon_momentum), below_one());
  rows.flag("optim.muon_nesterov", {"--muon-use-nesterov"}, "use Nesterov momentum in Muon",
            RANKLAB_FIELD(muon_nesterov));
  rows.number("optim.muon_ns_steps", {"--muon-num-ns-steps"}, "Newton-Schulz steps of Muon",
              RANKLAB_FIELD(muon_ns_steps), within(1, 100));
  rows.text("optim.muon_ns_dtype", {"--muon-ns-dtype"}, "type of the Newton-Schulz steps (auto: that of the update)",
            RANKLAB_FIELD(muon_ns_dtype), {"auto", "bf16"});
  rows.choice("optim.muon_distribution", {"--muon-distribution"},
              "which data-parallel rank orthogonalizes a matrix: all (duplicated), one that it is sent to "
              "(distributed), or the one whose shard is the whole matrix (layer-sharded)",
              names(kMuonDistributions), RANKLAB_FIELD(muon_distribution));
}

void add_qk_clip(FieldRows& rows) {
  rows.flag("optim.qk_clip", {"--qk-clip"},
            "after each update, scale down query and key weights of heads whose largest logit exceeded the threshold",
            RANKLAB_FIELD(qk_clip));
  rows.number("optim.qk_clip_threshold", {"--qk-clip-threshold"}, "largest attention logit that is not clipped",
              RANKLAB_FIELD(qk_clip_threshold), above(0));
  rows.number("optim.qk_clip_alpha", {"--qk-clip-alpha"},
              "share of the scaling that queries take; keys take the rest (Kimi K2: 0.5, equal shares)",
              RANKLAB_FIELD(qk_clip_alpha), within(0, 1));
}

}  // namespace

void add_optimizers(FieldRows& rows) {
  rows.begin("Training");
  rows.choice("optim.optimizer", {"--optimizer"}, "optimizer", row_names(kOptimizers), RANKLAB_FIELD(optimizer));
  add_learning_rate(rows);
  rows.number("optim.weight_decay", {"--weight-decay"},
              "weight decay of matrices, decoupled (with SGD: added to the gradient)", RANKLAB_FIELD(weight_decay),
              at_least(0));
  rows.choice("optim.weight_decay_incr_style", {"--weight-decay-incr-style"}, "how weight decay changes over the run",
              {"constant", "linear", "cosine"}, RANKLAB_FIELD(weight_decay_style));
  rows.number("optim.start_weight_decay", {"--start-weight-decay"},
              "weight decay at the first step (-1: --weight-decay)", RANKLAB_FIELD(start_weight_decay),
              at_least(-1, "-1 (none), 0 or more"));
  rows.number("optim.end_weight_decay", {"--end-weight-decay"}, "weight decay at the last step (-1: --weight-decay)",
              RANKLAB_FIELD(end_weight_decay), at_least(-1, "-1 (none), 0 or more"));
  rows.number("optim.adam_beta1", {"--adam-beta1"}, "AdamW beta 1", RANKLAB_FIELD(adam_beta1), below_one());
  rows.number("optim.adam_beta2", {"--adam-beta2"}, "AdamW beta 2", RANKLAB_FIELD(adam_beta2), below_one());
  rows.number("optim.adam_eps", {"--adam-eps"}, "AdamW epsilon", RANKLAB_FIELD(adam_eps), at_least(0));
  rows.number("optim.sgd_momentum", {"--sgd-momentum"}, "SGD momentum", RANKLAB_FIELD(sgd_momentum), below_one());
  rows.number("optim.lion_beta1", {"--lion-beta1"}, "Lion beta 1", RANKLAB_FIELD(lion_beta1), below_one());
  rows.number("optim.lion_beta2", {"--lion-beta2"}, "Lion beta 2", RANKLAB_FIELD(lion_beta2), below_one());
  add_muon(rows);
  add_qk_clip(rows);
}

}  // namespace ranklab::fields
