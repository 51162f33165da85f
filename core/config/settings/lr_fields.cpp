// Settings of the learning rate (core/optim/lr_schedule.h).
#include "core/config/settings/field_makers.h"

namespace ranklab::fields {

void add_learning_rate(FieldRows& rows) {
  rows.begin("Training");
  rows.number("optim.lr", {"--lr"}, "peak learning rate", RANKLAB_FIELD(lr), at_least(0));
  rows.number("optim.min_lr", {"--min-lr"},
              "learning rate after decay (a tenth of --lr if not given and the default exceeds --lr)",
              RANKLAB_FIELD(min_lr), at_least(0));
  rows.choice("optim.lr_decay_style", {"--lr-decay-style"}, "learning rate decay after warm-up",
              {"constant", "cosine", "linear", "inverse-square-root", "WSD", "exponential"}, RANKLAB_FIELD(lr_decay));
  rows.number("optim.lr_warmup_iters", {"--lr-warmup-iters"}, "steps of linear warm-up (-1: a tenth of the run)",
              RANKLAB_FIELD(lr_warmup_iters), count(-1, "-1 (a tenth of the run), 0 or more"));
  rows.number("optim.lr_warmup_fraction", {"--lr-warmup-fraction"},
              "warm-up as a fraction of the decay steps (-1: use --lr-warmup-iters)", RANKLAB_FIELD(lr_warmup_fraction),
              within(-1, 1, "0 or more and below 1, or -1 (by --lr-warmup-iters)"));
  rows.number("optim.lr_warmup_init", {"--lr-warmup-init"}, "initial learning rate of the warm-up",
              RANKLAB_FIELD(lr_warmup_init), at_least(0));
  rows.number("optim.lr_decay_iters", {"--lr-decay-iters"}, "steps until --min-lr is reached (0: --train-iters)",
              RANKLAB_FIELD(lr_decay_iters), count(0));
  rows.number("optim.lr_wsd_decay_iters", {"--lr-wsd-decay-iters"},
              "with --lr-decay-style WSD: number of final steps in which the rate decays (0: a tenth of all)",
              RANKLAB_FIELD(lr_wsd_decay_iters), count(0));
  rows.number("optim.lr_warmup_samples", {"--lr-warmup-samples"},
              "sequences of linear warm-up (-1: use --lr-warmup-iters)", RANKLAB_FIELD(lr_warmup_samples),
              count(-1, "-1 (by --lr-warmup-iters), 0 or more"));
  rows.number("optim.lr_decay_samples", {"--lr-decay-samples"},
              "sequences until --min-lr is reached (0: use --lr-decay-iters, else --train-samples)",
              RANKLAB_FIELD(lr_decay_samples), count(0));
  rows.number("optim.lr_wsd_decay_samples", {"--lr-wsd-decay-samples"},
              "with WSD: number of final sequences in which the rate decays (0: use --lr-wsd-decay-iters)",
              RANKLAB_FIELD(lr_wsd_decay_samples), count(0));
  rows.choice("optim.lr_wsd_decay_style", {"--lr-wsd-decay-style"}, "with WSD: shape of the final decay",
              {"exponential", "linear", "cosine", "minus_sqrt"}, RANKLAB_FIELD(lr_wsd_decay));
}

}  // namespace ranklab::fields
