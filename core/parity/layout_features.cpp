#include "core/parity/layout_features.h"

#include "core/base/zero_stage.h"
#include "core/pipeline/schedules.h"

namespace ranklab {

LayoutFeature zero_stage_choices() {
  LayoutFeature feature{"ZeRO", {}, [](const TrainConfig& c) { return c.parallel.dp * c.parallel.cp > 1; }};
  for (int stage = 0; stage < static_cast<int>(kZeroStages.size()); ++stage)
    feature.choices.push_back({std::to_string(stage), [stage](TrainConfig& c) { c.zero_stage = stage; }});
  feature.choices.push_back({"3, each microbatch", [](TrainConfig& c) {
                               c.zero_stage = 3;
                               c.grad_sync = GradSync::kMicrobatch;
                             }});
  return feature;
}

LayoutFeature schedule_choices() {
  LayoutFeature feature{"schedule", {}, [](const TrainConfig& c) { return c.parallel.pp > 1; }};
  for (const ScheduleKind& kind : schedule_kinds()) {
    feature.choices.push_back({kind.name, [&kind](TrainConfig& c) {
                                 c.pipeline_schedule = kind.name;
                                 c.virtual_stages = kind.chunks == 0 && std::string(kind.name) != "1f1b" ? 2 : 1;
                               }});
  }
  return feature;
}

LayoutFeature context_exchange_choices() {
  LayoutFeature feature{"context", {}, [](const TrainConfig& c) { return c.parallel.cp > 1; }};
  for (const ContextExchange exchange :
       {ContextExchange::kP2p, ContextExchange::kAllGather, ContextExchange::kAllToAll, ContextExchange::kAllToAllP2p})
    feature.choices.push_back(
        {std::string(name(exchange)), [exchange](TrainConfig& c) { c.context_split.exchange = exchange; }});
  return feature;
}

LayoutFeature sequence_parallel_choices() {
  return {"sequence parallelism",
          {{"no", [](TrainConfig& c) { c.sequence_parallel = false; }},
           {"yes", [](TrainConfig& c) { c.sequence_parallel = true; }}},
          [](const TrainConfig& c) { return c.parallel.tp > 1; }};
}

LayoutFeature expert_spread_choices() {
  const auto over = [](int ep, int etp) {
    return [=](TrainConfig& c) {
      c.parallel.ep = ep > 0 ? ep : c.parallel.world / c.parallel.pp;
      c.parallel.etp = etp;
    };
  };
  return {"experts",
          {{"on each rank", over(1, 1)},
           {"ep 2", over(2, 1)},
           {"ep 4", over(4, 1)},
           {"over all ranks", over(0, 1)},
           {"etp 2", over(1, 2)}},
          [](const TrainConfig& c) { return c.model.moe.enabled(); }};
}

std::vector<LayoutFeature> layout_features() {
  return {zero_stage_choices(), schedule_choices(), context_exchange_choices(), sequence_parallel_choices(),
          expert_spread_choices()};
}

}  // namespace ranklab
