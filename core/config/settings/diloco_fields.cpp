// Settings of DiLoCo (core/config/diloco/diloco_config.h).
#include "core/config/settings/field_makers.h"

namespace ranklab::fields {

void add_diloco(FieldRows& rows) {
  rows.begin("Training");
  rows.number("diloco.sync_steps", {"--diloco-sync-steps"},
              "DiLoCo: data-parallel replicas train on their own, and every N steps an outer optimizer updates all of "
              "them (0: off)",
              RANKLAB_FIELD(diloco.sync_steps), count(0));
  rows.number("diloco.replicas", {"--diloco-replicas"},
              "number of DiLoCo replicas, each of which may have several data-parallel ranks (0: one rank each)",
              RANKLAB_FIELD(diloco.replicas), count(0));
  rows.number("diloco.fragments", {"--diloco-fragments"}, "streaming DiLoCo: synchronize the model in N parts, in turn",
              RANKLAB_FIELD(diloco.fragments), count(1));
  rows.number("diloco.sync_delay", {"--diloco-sync-delay"},
              "streaming DiLoCo: steps during which a synchronization overlaps with training",
              RANKLAB_FIELD(diloco.sync_delay), count(0));
  rows.number("diloco.update_alpha", {"--diloco-update-alpha"},
              "streaming DiLoCo: share of its own parameters that a replica keeps at an outer update",
              RANKLAB_FIELD(diloco.update_alpha), within(0, 1));
  rows.number("diloco.outer_lr", {"--diloco-outer-lr"}, "learning rate of DiLoCo's outer SGD (local SGD: 1)",
              RANKLAB_FIELD(diloco.outer_lr), above(0));
  rows.number("diloco.outer_momentum", {"--diloco-outer-momentum"}, "momentum of DiLoCo's outer SGD (local SGD: 0)",
              RANKLAB_FIELD(diloco.outer_momentum), below_one());
  rows.flag("diloco.outer_nesterov", {"--diloco-outer-nesterov"}, "use Nesterov momentum in DiLoCo's outer SGD",
            RANKLAB_FIELD(diloco.outer_nesterov));
}

}  // namespace ranklab::fields
