// Settings of the learning rate (core/optim/lr_schedule.h).
#include "core/config/settings/field_makers.h"

namespace ranklab::fields {

void add_learning_rate(std::vector<ConfigField>& rows) {
  const std::string g = "Training";
  rows.push_back(number(g, "optim.lr", {"--lr"}, "peak learning rate", RANKLAB_FIELD(lr), at_least(0)));
  rows.push_back(number(g, "optim.min_lr", {"--min-lr"},
                        "learning rate after decay (not given, and above --lr: a tenth of that)", RANKLAB_FIELD(min_lr),
                        at_least(0)));
  rows.push_back(choice(g, "optim.lr_decay_style", {"--lr-decay-style"}, "shape after warm-up",
                        {"constant", "cosine", "linear", "inverse-square-root", "WSD", "exponential"},
                        RANKLAB_FIELD(lr_decay)));
  rows.push_back(number(g, "optim.lr_warmup_iters", {"--lr-warmup-iters"},
                        "steps of linear warm-up (-1: a tenth of train-iters)", RANKLAB_FIELD(lr_warmup_iters),
                        count(-1, "-1 (a tenth of --train-iters), 0 or more")));
  rows.push_back(number(g, "optim.lr_warmup_fraction", {"--lr-warmup-fraction"},
                        "the same as a part of the decay's steps (-1: by --lr-warmup-iters)",
                        RANKLAB_FIELD(lr_warmup_fraction),
                        within(-1, 1, "0 or more and below 1, or -1 (by --lr-warmup-iters)")));
  rows.push_back(number(g, "optim.lr_warmup_init", {"--lr-warmup-init"}, "learning rate at which the warm-up begins",
                        RANKLAB_FIELD(lr_warmup_init), at_least(0)));
  rows.push_back(number(g, "optim.lr_decay_iters", {"--lr-decay-iters"}, "steps until min-lr (0: train-iters)",
                        RANKLAB_FIELD(lr_decay_iters), count(0)));
  rows.push_back(number(g, "optim.lr_wsd_decay_iters", {"--lr-wsd-decay-iters"},
                        "with --lr-decay-style WSD: last steps, in which the rate comes down (0: a tenth of them)",
                        RANKLAB_FIELD(lr_wsd_decay_iters), count(0)));
  rows.push_back(number(g, "optim.lr_warmup_samples", {"--lr-warmup-samples"},
                        "sequences of linear warm-up (-1: by --lr-warmup-iters)", RANKLAB_FIELD(lr_warmup_samples),
                        count(-1, "-1 (by --lr-warmup-iters), 0 or more")));
  rows.push_back(number(g, "optim.lr_decay_samples", {"--lr-decay-samples"},
                        "sequences until min-lr (0: by --lr-decay-iters, else train-samples)",
                        RANKLAB_FIELD(lr_decay_samples), count(0)));
  rows.push_back(number(g, "optim.lr_wsd_decay_samples", {"--lr-wsd-decay-samples"},
                        "last sequences of WSD, in which the rate comes down (0: by --lr-wsd-decay-iters)",
                        RANKLAB_FIELD(lr_wsd_decay_samples), count(0)));
  rows.push_back(choice(g, "optim.lr_wsd_decay_style", {"--lr-wsd-decay-style"}, "the shape of these steps",
                        {"exponential", "linear", "cosine", "minus_sqrt"}, RANKLAB_FIELD(lr_wsd_decay)));
}

}  // namespace ranklab::fields
